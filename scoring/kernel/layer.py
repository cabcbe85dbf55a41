"""The linear layers of one or two tasks on one fold: initial weights, outputs, gradients, and AdamW's step.

AdamW has torch's defaults (betas 0.9 and 0.999, weight decay 0.01).

Two tasks on the same ids share each pass over the rows, because at challenge size the rows come from the outer caches, and loading them
takes as long as one task's arithmetic. A task's operations and their order are the same whether it is alone, first or second, so its
outputs have the same bits.

Layout: rows are padded with zeros to a multiple of ``LANES``. Weights, gradients and moments hold one task after the other: ``width``
values, then one more group of lanes whose first value is the bias. Each block of four rows is used for dot products, residuals and gradient
while it is in the first-level cache, and the next block is prefetched meanwhile. A block that is not full repeats its last row with
coefficient zero.
"""

# ruff: noqa: PLR0917 - compiled functions take plain positional arguments

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from scoring.jit import compiled
from scoring.kernel.simd import (
    LANES,
    difference,
    fused,
    load,
    prefetch,
    product,
    quotient,
    root,
    spread,
    store,
    total,
)
from scoring.randomness.fold_draws import uniform

# 1 - beta in float64, as torch computes it; float32(1) - float32(0.999) is off by 1.3e-5 (relative)
_BETA_1_REST = np.float32(0.1)
_BETA_2 = np.float32(0.999)
_BETA_2_REST = np.float32(0.001)
_EPSILON = np.float32(1e-8)
_WEIGHT_DECAY = 0.01


@compiled
def adamw_step(
    weights: NDArray[np.float32],
    gradients: NDArray[np.float32],
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    step: int,
    learning_rate: float,
) -> None:
    """Take one AdamW step on all tasks and clear the gradients."""
    correction = math.sqrt(1.0 - 0.999**step)
    decay = spread(np.float32(1.0 - learning_rate * _WEIGHT_DECAY))
    rate = spread(np.float32(-learning_rate / (1.0 - 0.9**step)))
    inverse = spread(np.float32(1.0 / correction))
    epsilon = spread(_EPSILON)
    beta_1_rest = spread(_BETA_1_REST)
    beta_2 = spread(_BETA_2)
    beta_2_rest = spread(_BETA_2_REST)
    zero = spread(np.float32(0.0))
    for j in range(0, len(weights), LANES):
        g = load(gradients, j)
        store(gradients, j, zero)
        m = load(first, j)
        m = fused(beta_1_rest, difference(g, m), m)
        store(first, j, m)
        v = fused(product(g, g), beta_2_rest, product(load(second, j), beta_2))
        store(second, j, v)
        change = quotient(product(rate, m), fused(root(v), inverse, epsilon))
        store(weights, j, fused(load(weights, j), decay, change))


BLOCK = 4  # rows at a time


@compiled
def start_weights(stream: NDArray[np.uint32], dim: int, width: int, weights: NDArray[np.float32]) -> None:
    """Draw the initial weights of ``torch.nn.Linear(dim, 1)``; all tasks start with the same ones."""
    per_task = width + LANES
    bound = 1.0 / math.sqrt(dim)
    for j in range(dim):
        weights[j] = uniform(stream, -bound, bound)
    weights[width] = uniform(stream, -bound, bound)
    for j in range(per_task, len(weights)):
        weights[j] = weights[j - per_task]


@compiled
def block_starts(
    order: NDArray[np.int32], begin: int, end: int, width: int, block: NDArray[np.int64]
) -> None:
    """Write the start offsets of the four rows that begin at row ``begin``; past ``end``, the last row is repeated."""
    for row in range(BLOCK):
        block[row] = np.int64(order[min(begin + row, end - 1)]) * width


@compiled
def predict_one(
    rows: NDArray[np.float32],
    width: int,
    block: NDArray[np.int64],
    following: NDArray[np.int64],
    weights: NDArray[np.float32],
    outputs: NDArray[np.float32],
) -> None:
    """Write one task's outputs for the four rows at ``block``, and prefetch half of the rows at ``following``."""
    a, b, c, d = block[0], block[1], block[2], block[3]
    e, f = following[0], following[1]
    a0 = spread(np.float32(0.0))
    b0, c0, d0 = a0, a0, a0
    for j in range(0, width, LANES):
        w0 = load(weights, j)
        a0 = fused(load(rows, a + j), w0, a0)
        b0 = fused(load(rows, b + j), w0, b0)
        c0 = fused(load(rows, c + j), w0, c0)
        d0 = fused(load(rows, d + j), w0, d0)
        prefetch(rows, e + j)
        prefetch(rows, f + j)
    bias = weights[width]
    outputs[0] = total(a0) + bias
    outputs[1] = total(b0) + bias
    outputs[2] = total(c0) + bias
    outputs[3] = total(d0) + bias


@compiled
def predict_two(
    rows: NDArray[np.float32],
    width: int,
    block: NDArray[np.int64],
    following: NDArray[np.int64],
    weights: NDArray[np.float32],
    outputs: NDArray[np.float32],
) -> None:
    """Do what :func:`predict_one` does for two tasks; outputs are 4 x 2, row by row."""
    a, b, c, d = block[0], block[1], block[2], block[3]
    e, f = following[0], following[1]
    a0 = spread(np.float32(0.0))
    b0, c0, d0, a1, b1, c1, d1 = a0, a0, a0, a0, a0, a0, a0
    other = width + LANES
    for j in range(0, width, LANES):
        w0 = load(weights, j)
        w1 = load(weights, other + j)
        x = load(rows, a + j)
        a0 = fused(x, w0, a0)
        a1 = fused(x, w1, a1)
        x = load(rows, b + j)
        b0 = fused(x, w0, b0)
        b1 = fused(x, w1, b1)
        x = load(rows, c + j)
        c0 = fused(x, w0, c0)
        c1 = fused(x, w1, c1)
        x = load(rows, d + j)
        d0 = fused(x, w0, d0)
        d1 = fused(x, w1, d1)
        prefetch(rows, e + j)
        prefetch(rows, f + j)
    bias = weights[width]
    outputs[0] = total(a0) + bias
    outputs[2] = total(b0) + bias
    outputs[4] = total(c0) + bias
    outputs[6] = total(d0) + bias
    bias = weights[other + width]
    outputs[1] = total(a1) + bias
    outputs[3] = total(b1) + bias
    outputs[5] = total(c1) + bias
    outputs[7] = total(d1) + bias


@compiled
def accumulate_one(
    rows: NDArray[np.float32],
    width: int,
    block: NDArray[np.int64],
    following: NDArray[np.int64],
    coefficients: NDArray[np.float32],
    gradients: NDArray[np.float32],
) -> None:
    """Add four rows times their coefficients to one task's gradient, and prefetch the other half of the following rows."""
    a, b, c, d = block[0], block[1], block[2], block[3]
    g, h = following[2], following[3]
    a0, b0 = spread(coefficients[0]), spread(coefficients[1])
    c0, d0 = spread(coefficients[2]), spread(coefficients[3])
    for j in range(0, width, LANES):
        g0 = load(gradients, j)
        g0 = fused(load(rows, a + j), a0, g0)
        g0 = fused(load(rows, b + j), b0, g0)
        g0 = fused(load(rows, c + j), c0, g0)
        g0 = fused(load(rows, d + j), d0, g0)
        prefetch(rows, g + j)
        prefetch(rows, h + j)
        store(gradients, j, g0)


@compiled
def accumulate_two(
    rows: NDArray[np.float32],
    width: int,
    block: NDArray[np.int64],
    following: NDArray[np.int64],
    coefficients: NDArray[np.float32],
    gradients: NDArray[np.float32],
) -> None:
    """Do what :func:`accumulate_one` does for two tasks; coefficients are 4 x 2, row by row."""
    a, b, c, d = block[0], block[1], block[2], block[3]
    g, h = following[2], following[3]
    a0, a1 = spread(coefficients[0]), spread(coefficients[1])
    b0, b1 = spread(coefficients[2]), spread(coefficients[3])
    c0, c1 = spread(coefficients[4]), spread(coefficients[5])
    d0, d1 = spread(coefficients[6]), spread(coefficients[7])
    other = width + LANES
    for j in range(0, width, LANES):
        g0 = load(gradients, j)
        g1 = load(gradients, other + j)
        x = load(rows, a + j)
        g0 = fused(x, a0, g0)
        g1 = fused(x, a1, g1)
        x = load(rows, b + j)
        g0 = fused(x, b0, g0)
        g1 = fused(x, b1, g1)
        x = load(rows, c + j)
        g0 = fused(x, c0, g0)
        g1 = fused(x, c1, g1)
        x = load(rows, d + j)
        g0 = fused(x, d0, g0)
        g1 = fused(x, d1, g1)
        prefetch(rows, g + j)
        prefetch(rows, h + j)
        store(gradients, j, g0)
        store(gradients, other + j, g1)


@compiled
def outputs_of(
    rows: NDArray[np.float32],
    width: int,
    order: NDArray[np.int32],
    weights: NDArray[np.float32],
    outputs: NDArray[np.float32],
) -> None:
    """Write the outputs for the rows in ``order``, tasks x rows."""
    tasks = len(outputs)
    block = np.empty(BLOCK, np.int64)
    following = np.empty(BLOCK, np.int64)
    four = np.empty(BLOCK * tasks, np.float32)
    count = len(order)
    for begin in range(0, count, BLOCK):
        block_starts(order, begin, count, width, block)
        block_starts(order, begin + BLOCK, count, width, following)
        if tasks == 1:
            predict_one(rows, width, block, following, weights, four)
        else:
            predict_two(rows, width, block, following, weights, four)
        for task in range(tasks):
            for row in range(min(BLOCK, count - begin)):
                outputs[task, begin + row] = four[row * tasks + task]
