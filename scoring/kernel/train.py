"""The kernel: train and score the probes of one or two tasks on one fold.

The layers with their optimizer (:mod:`scoring.kernel.layer`, which describes the layout of rows and weights) and torch's random stream are
compiled into it. A task's operations and their order are the same whether it is alone, first or second, so its score has the same bits.
"""

# ruff: noqa: PLR0917 - compiled functions take plain positional arguments

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring import metrics
from scoring.jit import compiled
from scoring.kernel.layer import (
    BLOCK,
    accumulate_one,
    accumulate_two,
    adamw_step,
    block_starts,
    outputs_of,
    predict_one,
    predict_two,
    start_weights,
)
from scoring.kernel.rows import padded
from scoring.kernel.simd import LANES
from scoring.protocol import Recipe
from scoring.randomness import Split
from scoring.randomness.fold_draws import shuffle, skip

_r2_from_sums = compiled(metrics.r2_from_sums)
_f1_from_counts = compiled(metrics.f1_from_counts)
_SIGMOID_HALF = np.float32(metrics.SIGMOID_HALF)


@compiled
def train_epoch(
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
    losses: NDArray[np.float64],
    stop: NDArray[np.uint8],
) -> int:
    """Go once through the training rows in ``order``; return the number of AdamW steps so far, or -1 if stopped.

    ``losses`` receives each task's mean training loss over the batches; pass an empty array to skip it.
    """
    tasks = len(classification)
    per_task = width + LANES
    block = np.empty(BLOCK, np.int64)
    following = np.empty(BLOCK, np.int64)
    outputs = np.empty(BLOCK * tasks, np.float32)
    trained = len(order)
    batch_losses = np.zeros(len(losses), np.float64)
    losses[:] = 0.0
    batches = 0
    for batch in range(0, trained, batch_size):
        if stop[0] != 0:
            return -1
        end = min(batch + batch_size, trained)
        size = np.float32(end - batch)
        for begin in range(batch, end, BLOCK):
            block_starts(order, begin, end, width, block)
            block_starts(order, begin + BLOCK, trained, width, following)
            if tasks == 1:
                predict_one(rows, width, block, following, weights, outputs)
            else:
                predict_two(rows, width, block, following, weights, outputs)
            for task in range(tasks):
                bias = gradients[task * per_task + width]
                for row in range(BLOCK):
                    coefficient = np.float32(0.0)
                    if begin + row < end:
                        output = outputs[row * tasks + task]
                        target = targets[task, order[begin + row]]
                        coefficient = _slope(output, target, classification[task]) / size
                        if len(losses) > 0:
                            batch_losses[task] += _loss(output, target, classification[task])
                    outputs[row * tasks + task] = coefficient
                    bias += coefficient
                gradients[task * per_task + width] = bias
            if tasks == 1:
                accumulate_one(rows, width, block, following, outputs, gradients)
            else:
                accumulate_two(rows, width, block, following, outputs, gradients)
        step += 1
        adamw_step(weights, gradients, first, second, step, learning_rate)
        batches += 1
        for task in range(len(losses)):
            losses[task] += batch_losses[task] / (end - batch)
            batch_losses[task] = 0.0
    losses /= batches
    return step


@compiled
def _slope(output: np.float32, target: np.float32, classification: bool) -> np.float32:
    """Return the derivative of :func:`_loss` by the output, in float32."""
    if classification:
        return np.float32(1.0) / (np.float32(1.0) + math.exp(-output)) - target
    return np.float32(2.0) * (output - target)


@compiled
def _loss(output: np.float32, target: np.float32, classification: bool) -> float:
    """Return squared error, or binary cross entropy of a logit."""
    wide, wanted = np.float64(output), np.float64(target)
    if classification:
        return max(wide, 0.0) - wide * wanted + math.log1p(math.exp(-abs(wide)))
    return (wide - wanted) ** 2


@compiled
def _test_losses(
    predictions: NDArray[np.float32],
    test: NDArray[np.int32],
    targets: NDArray[np.float32],
    classification: NDArray[np.bool_],
    losses: NDArray[np.float64],
) -> None:
    """Write each task's mean loss over the test part."""
    losses[:] = 0.0
    for task in range(len(losses)):
        for i in range(len(test)):
            losses[task] += _loss(predictions[task, i], targets[task, test[i]], classification[task])
    losses /= len(test)


@compiled
def score_test_part(
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
    outputs_of(rows, width, order, weights, predictions)
    for task in range(len(classification)):
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
    history: NDArray[np.float64],
    train_losses: NDArray[np.float64],
    test_losses: NDArray[np.float64],
    kept: NDArray[np.float32],
    kept_predictions: NDArray[np.float32],
) -> bool:
    """Train and score one or two tasks on one fold, and record each epoch.

    Args:
        rows: Flat, n x width; ``width`` is a multiple of ``LANES``, values from ``dim`` on are zero.
        width: Values per row, padding included.
        dim: Dimension N of the embeddings.
        targets: T x n, T being 1 or 2.
        classification: Per task.
        split: Permutation of the n rows; the first ``tested`` are held out.
        tested: Number of test rows.
        stream: State of torch's generator at the start of the fold; advanced to its end.
        epochs: Passes over the training rows.
        batch_size: Rows per AdamW step.
        learning_rate: AdamW's.
        stop: One byte; any other value than zero stops the training.
        history: Receives the metric after each epoch, epochs x T.
        train_losses: Receives the mean loss over the training batches, epochs x T; epochs x 0 skips it.
        test_losses: Receives the mean loss over the test part, likewise.
        kept: Receives the weights of each task's best epoch, the bias at ``width``, T x (width + ``LANES``); an array of 0 rows skips it.
        kept_predictions: Receives the outputs of these weights on the test part, in the order of ``split``, T x ``tested``; 0 rows if
            ``kept`` has none.

    Returns:
        False if it was stopped; the arrays are then incomplete.
    """
    tasks = len(classification)
    per_task = width + LANES
    weights = np.zeros(tasks * per_task, np.float32)
    gradients = np.zeros(tasks * per_task, np.float32)
    first = np.zeros(tasks * per_task, np.float32)
    second = np.zeros(tasks * per_task, np.float32)
    start_weights(stream, dim, width, weights)

    test = split[:tested]
    train = split[tested:]
    order = np.empty(len(train), np.int32)
    predictions = np.empty((tasks, tested), np.float32)
    best = np.full(tasks, -np.inf)
    step = int(np.int64(0))  # for a literal, numba would compile train_epoch twice
    for epoch in range(epochs):
        skip(stream, 2)  # a DataLoader's base seed
        shuffle(stream, train, order)
        step = train_epoch(
            rows, width, order, targets, classification, batch_size, learning_rate, step,
            weights, gradients, first, second, train_losses[epoch], stop,
        )  # fmt: skip
        if step < 0:
            return False
        skip(stream, 1 + tested)  # another base seed, and the order of the test part
        scores = history[epoch]
        score_test_part(rows, width, test, targets, classification, weights, predictions, scores)
        _test_losses(predictions, test, targets, classification, test_losses[epoch])
        for task in range(len(kept)):
            if scores[task] > best[task] or epoch == 0:  # NaN loses
                best[task] = scores[task] if scores[task] > best[task] else best[task]
                # Value by value: numba takes two seconds to compile an assignment of whole rows.
                for i in range(per_task):
                    kept[task, i] = weights[task * per_task + i]
                for i in range(tested):
                    kept_predictions[task, i] = predictions[task, i]
    return True


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldTrace:
    """A record of the training of one or two tasks on a fold; E epochs, T tasks.

    Attributes:
        history: E x T, the metric after each epoch.
        train_losses: E x T, or E x 0 if they were not asked for.
        test_losses: Likewise.
        weights: T x N of each task's best epoch, or 0 x N.
        biases: T, likewise.
        predictions: T x tested of each task's best epoch, likewise.
    """

    history: NDArray[np.float64]
    train_losses: NDArray[np.float64]
    test_losses: NDArray[np.float64]
    weights: NDArray[np.float32]
    biases: NDArray[np.float32]
    predictions: NDArray[np.float32]


class FoldTrainer:
    """The kernel, with the data that all folds share.

    Args:
        rows: float32, n x N.
        recipe: Hyper-parameters.
    """

    def __init__(self, rows: NDArray[np.float32], recipe: Recipe) -> None:
        self.stop = np.zeros(1, dtype=np.uint8)  # any other value stops all folds
        self._flat, self._width = padded(rows, LANES)
        self._dim = rows.shape[1]
        self._recipe = recipe

    def train(
        self,
        targets: NDArray[np.float32],
        classification: NDArray[np.bool_],
        split: Split,
        stream: NDArray[np.uint32],
        *,
        losses: bool = False,
        best_state: bool = False,
    ) -> FoldTrace:
        """Train one or two tasks on a fold, see :func:`train_fold`; if it was stopped, the record is incomplete."""
        epochs, tasks = self._recipe.epochs, len(targets)
        noted, kept_tasks = tasks if losses else 0, tasks if best_state else 0
        history = np.empty((epochs, tasks))
        train_losses, test_losses = np.empty((epochs, noted)), np.empty((epochs, noted))
        kept = np.zeros((kept_tasks, self._width + LANES), dtype=np.float32)
        predictions = np.zeros((kept_tasks, split.tested), dtype=np.float32)
        train_fold(
            self._flat, self._width, self._dim, targets, classification, split.order, split.tested, stream,
            epochs, self._recipe.batch_size, self._recipe.learning_rate, self.stop,
            history, train_losses, test_losses, kept, predictions,
        )  # fmt: skip
        return FoldTrace(
            history=history,
            train_losses=train_losses,
            test_losses=test_losses,
            weights=kept[:, : self._dim],
            biases=kept[:, self._width],
            predictions=predictions,
        )


def draws_per_fold(dim: int, rows: int, epochs: int) -> int:
    """Return how many numbers a fold draws from torch's stream: N + 1 for the layer, then per epoch 2 + (train - 1) + 2 + (test - 1)."""
    return dim + 1 + epochs * (rows + 2)
