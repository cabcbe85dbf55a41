"""The kernel: train and score the probes of one or two tasks on one fold.

Two tasks on the same ids share each pass over the rows, because at challenge size the rows come from the outer caches, and waiting for them
costs as much as one task's arithmetic. A task goes through the same operations in the same order whether it is alone, first or second, so
its score has the same bits.

Layout: rows are padded with zeros to whole ``LANES``; weights, gradients and moments hold the tasks one after the other, each ``width``
values followed by one more group of lanes whose first is the bias. Rows are taken in blocks of four while they are in the first cache:
dot products, residuals, gradient; the next four are fetched meanwhile. A block that is not full repeats its last row with coefficient zero.
"""

# ruff: noqa: PLR0917 - compiled functions take plain positional arguments

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from scoring import metrics
from scoring.compiled import compiled
from scoring.lanes import (
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
from scoring.torch_stream import shuffle, skip, uniform

BLOCK = 4  # rows at a time

_r2_from_sums = compiled(metrics.r2_from_sums)
_f1_from_counts = compiled(metrics.f1_from_counts)
_SIGMOID_HALF = np.float32(metrics.SIGMOID_HALF)

# 1 - beta as torch has it; float32(1) - float32(0.999) is off by 5e-5
_BETA_1_REST = np.float32(0.1)
_BETA_2 = np.float32(0.999)
_BETA_2_REST = np.float32(0.001)
_EPSILON = np.float32(1e-8)
_WEIGHT_DECAY = 0.01


@compiled
def _predict_one(
    rows: NDArray[np.float32],
    width: int,
    block: NDArray[np.int64],
    following: NDArray[np.int64],
    weights: NDArray[np.float32],
    outputs: NDArray[np.float32],
) -> None:
    """Write one task's outputs for the four rows that start at ``block``; fetch half of those that start at ``following``."""
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
def _predict_two(
    rows: NDArray[np.float32],
    width: int,
    block: NDArray[np.int64],
    following: NDArray[np.int64],
    weights: NDArray[np.float32],
    outputs: NDArray[np.float32],
) -> None:
    """Do what :func:`_predict_one` does for two tasks; outputs are 4 x 2, row by row."""
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
def _accumulate_one(
    rows: NDArray[np.float32],
    width: int,
    block: NDArray[np.int64],
    following: NDArray[np.int64],
    coefficients: NDArray[np.float32],
    gradients: NDArray[np.float32],
) -> None:
    """Add four rows times their coefficients to one task's gradient; fetch the other half of the following rows."""
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
def _accumulate_two(
    rows: NDArray[np.float32],
    width: int,
    block: NDArray[np.int64],
    following: NDArray[np.int64],
    coefficients: NDArray[np.float32],
    gradients: NDArray[np.float32],
) -> None:
    """Do what :func:`_accumulate_one` does for two tasks; coefficients are 4 x 2, row by row."""
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
def _adamw(
    weights: NDArray[np.float32],
    gradients: NDArray[np.float32],
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    step: int,
    learning_rate: float,
) -> None:
    """Make one AdamW step of all tasks in one pass and clear the gradients."""
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


@compiled
def _starts(order: NDArray[np.int32], begin: int, end: int, width: int, block: NDArray[np.int64]) -> None:
    """Write where the four rows from ``begin`` on start; the last one before ``end`` is repeated."""
    for row in range(BLOCK):
        block[row] = np.int64(order[min(begin + row, end - 1)]) * width


@compiled
def _train_epoch(
    rows: NDArray[np.float32],
    width: int,
    order: NDArray[np.int32],
    targets: NDArray[np.float32],
    classification: NDArray[np.bool_],
    batch_size: int,
    learning_rate: float,
    step: int,
    weights: NDArray[np.float32],
    gradients: NDArray[np.float32],
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    stop: NDArray[np.uint8],
) -> int:
    """Go once through the training rows in ``order``; return the number of AdamW steps so far, or -1 if stopped."""
    tasks = len(classification)
    per_task = width + LANES
    block = np.empty(BLOCK, np.int64)
    following = np.empty(BLOCK, np.int64)
    outputs = np.empty(BLOCK * tasks, np.float32)
    trained = len(order)
    for batch in range(0, trained, batch_size):
        if stop[0] != 0:
            return -1
        end = min(batch + batch_size, trained)
        size = np.float32(end - batch)
        for begin in range(batch, end, BLOCK):
            _starts(order, begin, end, width, block)
            _starts(order, begin + BLOCK, trained, width, following)
            if tasks == 1:
                _predict_one(rows, width, block, following, weights, outputs)
            else:
                _predict_two(rows, width, block, following, weights, outputs)
            for task in range(tasks):
                bias = gradients[task * per_task + width]
                for row in range(BLOCK):
                    coefficient = np.float32(0.0)
                    if begin + row < end:
                        output = outputs[row * tasks + task]
                        target = targets[task, order[begin + row]]
                        if classification[task]:
                            probability = np.float32(1.0) / (np.float32(1.0) + math.exp(-output))
                            coefficient = (probability - target) / size
                        else:
                            coefficient = np.float32(2.0) * (output - target) / size
                    outputs[row * tasks + task] = coefficient
                    bias += coefficient
                gradients[task * per_task + width] = bias
            if tasks == 1:
                _accumulate_one(rows, width, block, following, outputs, gradients)
            else:
                _accumulate_two(rows, width, block, following, outputs, gradients)
        step += 1
        _adamw(weights, gradients, first, second, step, learning_rate)
    return step


@compiled
def _score(
    rows: NDArray[np.float32],
    width: int,
    order: NDArray[np.int32],
    targets: NDArray[np.float32],
    classification: NDArray[np.bool_],
    weights: NDArray[np.float32],
    predictions: NDArray[np.float32],
    scores: NDArray[np.float64],
) -> None:
    """Write each task's held-out metric; the rules are those of :mod:`scoring.metrics`."""
    tasks = len(classification)
    block = np.empty(BLOCK, np.int64)
    following = np.empty(BLOCK, np.int64)
    outputs = np.empty(BLOCK * tasks, np.float32)
    tested = len(order)
    for begin in range(0, tested, BLOCK):
        _starts(order, begin, tested, width, block)
        _starts(order, begin + BLOCK, tested, width, following)
        if tasks == 1:
            _predict_one(rows, width, block, following, weights, outputs)
        else:
            _predict_two(rows, width, block, following, weights, outputs)
        for task in range(tasks):
            for row in range(min(BLOCK, tested - begin)):
                predictions[task, begin + row] = outputs[row * tasks + task]
    for task in range(tasks):
        if classification[task]:
            scores[task] = _f1(predictions[task], order, targets[task])
        else:
            scores[task] = _r2(predictions[task], order, targets[task])


@compiled
def _r2(predictions: NDArray[np.float32], order: NDArray[np.int32], targets: NDArray[np.float32]) -> float:
    mean = 0.0
    for row in order:
        mean += np.float64(targets[row])
    mean /= len(order)
    residual = 0.0
    variation = 0.0
    for i in range(len(order)):
        target = np.float64(targets[order[i]])
        residual += (target - np.float64(predictions[i])) ** 2
        variation += (target - mean) ** 2
    return _r2_from_sums(residual, variation)


@compiled
def _f1(logits: NDArray[np.float32], order: NDArray[np.int32], targets: NDArray[np.float32]) -> float:
    threshold = np.float32(0.5)
    for i in range(len(order)):
        if not (logits[i] >= 0 and logits[i] <= 1):
            threshold = _SIGMOID_HALF
    true_positives, false_positives, false_negatives = 0, 0, 0
    for i in range(len(order)):
        positive = logits[i] > threshold
        truth = targets[order[i]] > 0.5
        if positive and truth:
            true_positives += 1
        elif positive:
            false_positives += 1
        elif truth:
            false_negatives += 1
    return _f1_from_counts(true_positives, false_positives, false_negatives)


@compiled
def train_fold(
    rows: NDArray[np.float32],
    width: int,
    dim: int,
    targets: NDArray[np.float32],
    classification: NDArray[np.bool_],
    split: NDArray[np.int32],
    tested: int,
    stream: NDArray[np.uint32],
    epochs: int,
    batch_size: int,
    learning_rate: float,
    stop: NDArray[np.uint8],
    best: NDArray[np.float64],
) -> bool:
    """Train and score one or two tasks on one fold.

    Args:
        rows: Flat, n x width; ``width`` is a multiple of ``LANES``, values from ``dim`` on are zero.
        width: Values per row, padding included.
        dim: Dimension N of the embeddings.
        targets: T x n, T being 1 or 2.
        classification: Per task.
        split: Permutation of the n rows; the first ``tested`` are held out.
        tested: Number of test rows.
        stream: State of torch's generator at the start of the fold; left at its end.
        epochs: Passes over the training rows.
        batch_size: Rows per AdamW step.
        learning_rate: AdamW's.
        stop: One byte; anything but zero asks to stop.
        best: Receives per task the best finite score over the epochs, NaN if there is none.

    Returns:
        False if it was stopped; then ``best`` says nothing.
    """
    tasks = len(classification)
    per_task = width + LANES
    weights = np.zeros(tasks * per_task, np.float32)
    gradients = np.zeros(tasks * per_task, np.float32)
    first = np.zeros(tasks * per_task, np.float32)
    second = np.zeros(tasks * per_task, np.float32)
    bound = 1.0 / math.sqrt(dim)
    for j in range(dim):
        weights[j] = uniform(stream, -bound, bound)
    weights[width] = uniform(stream, -bound, bound)
    for j in range(per_task, tasks * per_task):
        weights[j] = weights[j - per_task]

    test = split[:tested]
    train = split[tested:]
    order = np.empty(len(train), np.int32)
    predictions = np.empty((tasks, tested), np.float32)
    scores = np.empty(tasks, np.float64)
    for task in range(tasks):
        best[task] = -np.inf
    step = 0
    for _ in range(epochs):
        skip(stream, 2)  # a DataLoader's base seed
        shuffle(stream, train, order)
        step = _train_epoch(
            rows, width, order, targets, classification, batch_size, learning_rate, step,
            weights, gradients, first, second, stop,
        )  # fmt: skip
        if step < 0:
            return False
        skip(stream, 2 + tested - 1)  # another base seed and the order of the test rows
        _score(rows, width, test, targets, classification, weights, predictions, scores)
        for task in range(tasks):
            if scores[task] > best[task]:  # noqa: PLR1730 - NaN must lose, which max leaves open
                best[task] = scores[task]
    for task in range(tasks):
        if not best[task] > -np.inf:
            best[task] = np.nan
    return True


def draws_per_fold(dim: int, rows: int, epochs: int) -> int:
    """Return how far one fold moves torch's stream: N + 1 for the layer, then per epoch 2 + (train - 1) + 2 + (test - 1)."""
    return dim + 1 + epochs * (rows + 2)
