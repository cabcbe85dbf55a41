"""All random numbers of a block of folds, drawn before training from torch's CPU stream (MT19937), compiled.

A state is a uint32 array of 625: the 624 words of the generator and the position of the next one. ``numpy.random.RandomState(seed)`` and
``torch.manual_seed(seed)`` start from the same words for a 32-bit seed.

An engine that trains many folds at once takes its random numbers from here. They are the ones that the reference draws during training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.jit import compiled
from scoring.randomness.seeds import Split

WORDS = 624
STATE_SIZE = WORDS + 1


@compiled
def start(state: NDArray[np.uint32], seed: int) -> None:
    """Seed the generator with 32 bits."""
    word = np.uint32(seed)
    state[0] = word
    for i in range(1, WORDS):
        word = np.uint32(np.uint64(1812433253) * np.uint64(word ^ (word >> np.uint32(30))) + np.uint64(i))
        state[i] = word
    state[WORDS] = WORDS


@compiled
def _mixed(upper: np.uint32, lower: np.uint32, far: np.uint32) -> np.uint32:
    word = (upper & np.uint32(0x80000000)) | (lower & np.uint32(0x7FFFFFFF))
    return far ^ (word >> np.uint32(1)) ^ ((np.uint32(0) - (lower & np.uint32(1))) & np.uint32(0x9908B0DF))


@compiled
def _refill(state: NDArray[np.uint32]) -> None:
    for i in range(227):
        state[i] = _mixed(state[i], state[i + 1], state[i + 397])
    for i in range(227, 623):
        state[i] = _mixed(state[i], state[i + 1], state[i - 227])
    state[623] = _mixed(state[623], state[0], state[396])


@compiled
def draw(state: NDArray[np.uint32]) -> np.uint32:
    """Return the next 32 random bits."""
    position = state[WORDS]
    if position >= WORDS:
        _refill(state)
        position = np.uint32(0)
    state[WORDS] = position + np.uint32(1)
    word: np.uint32 = state[position]
    word ^= word >> np.uint32(11)
    word ^= (word << np.uint32(7)) & np.uint32(0x9D2C5680)
    word ^= (word << np.uint32(15)) & np.uint32(0xEFC60000)
    return word ^ (word >> np.uint32(18))


@compiled
def skip(state: NDArray[np.uint32], draws: int) -> None:
    """Skip a number of draws."""
    position = np.int64(state[WORDS]) + draws
    while position > WORDS:
        _refill(state)
        position -= WORDS
    state[WORDS] = np.uint32(position)


@compiled
def uniform(state: NDArray[np.uint32], low: float, high: float) -> np.float32:
    """Draw a float32 as ``Tensor.uniform_(low, high)`` does: 24 random bits, scaled."""
    fraction = np.float32(draw(state) & np.uint32(0xFFFFFF)) * np.float32(2.0**-24)
    return fraction * (np.float32(high) - np.float32(low)) + np.float32(low)


@compiled
def shuffle(state: NDArray[np.uint32], source: NDArray[np.int32], order: NDArray[np.int32]) -> None:
    """Fill ``order`` with ``source[torch.randperm(len(source))]``; len(source) - 1 draws."""
    size = len(source)
    for i in range(size):
        order[i] = source[i]
    for i in range(size - 1):
        other = i + np.int64(draw(state) % np.uint32(size - i))
        order[i], order[other] = order[other], order[i]


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldDraws:
    """The random numbers of F folds of n rows, with t rows held out.

    Attributes:
        tests: Row numbers of the test parts, int32, F x t.
        weights: Initial weights, then the bias, float32, F x (N + 1); all tasks of a fold start from the same.
        orders: Row numbers of the training parts in the order of each epoch, int32, F x E x (n - t).
    """

    tests: NDArray[np.int32]
    weights: NDArray[np.float32]
    orders: NDArray[np.int32]


def draw_folds(
    splits: Sequence[Split], training_seeds: NDArray[np.uint32], *, dim: int, epochs: int
) -> FoldDraws:
    """Draw folds from their training seeds.

    Args:
        splits: F splits of the same rows, all with test parts of the same size.
        training_seeds: F seeds.
        dim: Dimension N of the embeddings.
        epochs: Number E of epochs.
    """
    folds = len(splits)
    orders, tested = np.stack([split.order for split in splits]), splits[0].tested
    draws = FoldDraws(
        tests=orders[:, :tested],
        weights=np.empty((folds, dim + 1), dtype=np.float32),
        orders=np.empty((folds, epochs, orders.shape[1] - tested), dtype=np.int32),
    )
    for fold, seed in enumerate(training_seeds.tolist()):
        _draw_fold(seed, orders[fold], tested, draws.weights[fold], draws.orders[fold])
    return draws


@compiled
def _draw_fold(
    seed: int,
    split: NDArray[np.int32],
    tested: int,
    weights: NDArray[np.float32],
    orders: NDArray[np.int32],
) -> None:
    """Draw what ``torch.nn.Linear`` and then each epoch's two DataLoaders draw; validation orders do not matter and are skipped."""
    state = np.empty(STATE_SIZE, np.uint32)
    start(state, seed)
    bound = 1.0 / math.sqrt(len(weights) - 1)
    for i in range(len(weights)):
        weights[i] = uniform(state, -bound, bound)
    train = split[tested:]
    for epoch in range(len(orders)):
        skip(state, 2)  # a DataLoader's base seed
        shuffle(state, train, orders[epoch])
        skip(state, 2 + tested - 1)  # another base seed, and the order of the test part
