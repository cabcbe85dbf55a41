"""All random numbers of a block of folds, drawn before training: splits, initial weights, and the orders of all epochs.

An engine that trains many folds at once takes its random numbers from here. They are the ones that the usual loop draws during training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.jit import compiled
from scoring.randomness.splits import Splitter
from scoring.randomness.torch_stream import STATE_SIZE, shuffle, skip, start, uniform


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
    split_seeds: NDArray[np.uint32],
    training_seeds: NDArray[np.uint32],
    *,
    rows: int,
    tested: int,
    dim: int,
    epochs: int,
) -> FoldDraws:
    """Draw folds from their seeds.

    Args:
        split_seeds: F seeds.
        training_seeds: F seeds.
        rows: Number n of rows.
        tested: Number t of rows that are held out.
        dim: Dimension N of the embeddings.
        epochs: Number E of epochs.
    """
    folds = len(split_seeds)
    splitter = Splitter()
    splits = np.empty((folds, rows), dtype=np.int32)
    for fold, seed in enumerate(split_seeds.tolist()):
        splits[fold] = splitter.permutation(seed, rows)
    draws = FoldDraws(
        tests=splits[:, :tested],
        weights=np.empty((folds, dim + 1), dtype=np.float32),
        orders=np.empty((folds, epochs, rows - tested), dtype=np.int32),
    )
    for fold, seed in enumerate(training_seeds.tolist()):
        _draw_fold(seed, splits[fold], tested, draws.weights[fold], draws.orders[fold])
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
