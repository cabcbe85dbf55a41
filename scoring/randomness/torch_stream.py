"""torch's CPU random stream, compiled: MT19937, and the draws of a training loop.

A state is a uint32 array of 625: the 624 words of the generator and the position of the next one. ``numpy.random.RandomState(seed)`` and
``torch.manual_seed(seed)`` start from the same words for a 32-bit seed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scoring.jit import compiled

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
