"""The kernel of a linear probe, with a record of what happened: the kept weights, predictions, and the losses if wanted.

The operations, and so the scores, are those of :func:`scoring.kernel.train_fold`, from whose parts this is made.
"""

# ruff: noqa: PLR0917 - compiled functions take plain positional arguments

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from scoring.compiled import compiled
from scoring.kernel import score_test_part, train_epoch
from scoring.lanes import LANES
from scoring.layer import outputs_of, start_weights
from scoring.torch_stream import shuffle, skip


@compiled
def _loss(
    predictions: NDArray[np.float32],
    order: NDArray[np.int32],
    targets: NDArray[np.float32],
    classification: bool,
) -> float:
    """Return the mean loss: squared error, or binary cross entropy of logits."""
    loss = 0.0
    for i in range(len(order)):
        output = np.float64(predictions[i])
        target = np.float64(targets[order[i]])
        if classification:
            loss += max(output, 0.0) - output * target + math.log1p(math.exp(-abs(output)))
        else:
            loss += (output - target) ** 2
    return loss / len(order)


@compiled
def trace_fold(
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
    kept: NDArray[np.float32],
    kept_predictions: NDArray[np.float32],
    history: NDArray[np.float64],
    train_losses: NDArray[np.float64],
    test_losses: NDArray[np.float64],
) -> bool:
    """Train one linear probe on one fold and write down how it went.

    Args:
        rows: As for :func:`scoring.kernel.train_fold`, and the same up to ``stop``, with one task.
        width: Values per row, padding included.
        dim: Dimension N.
        targets: 1 x n.
        classification: One boolean.
        split: Permutation of the rows, the first ``tested`` held out.
        tested: Number of test rows.
        stream: torch's generator at the start of the fold.
        epochs: Passes over the training rows.
        batch_size: Rows per step.
        learning_rate: AdamW's.
        stop: One byte; anything but zero asks to stop.
        kept: Receives the weights of the best epoch, the bias at ``width``.
        kept_predictions: Receives its outputs on the test part, in the order of ``split``.
        history: Receives the metric after each epoch.
        train_losses: Receives each epoch's mean over the batches' losses as they were trained on; empty if nobody wants them.
        test_losses: Receives the mean over the test batches' losses; empty likewise.

    Returns:
        False if it was stopped.
    """
    weights = np.zeros(width + LANES, np.float32)
    gradients = np.zeros(width + LANES, np.float32)
    first = np.zeros(width + LANES, np.float32)
    second = np.zeros(width + LANES, np.float32)
    start_weights(stream, dim, width, weights)

    test = split[:tested]
    train = split[tested:]
    order = np.empty(len(train), np.int32)
    test_order = np.empty(tested, np.int32)
    predictions = np.empty((1, tested), np.float32)
    batch_predictions = np.empty((1, batch_size), np.float32)
    scores = np.empty(1, np.float64)
    wants_losses = len(train_losses) > 0
    best = -np.inf
    step = 0
    for epoch in range(epochs):
        skip(stream, 2)  # a DataLoader's base seed
        shuffle(stream, train, order)
        if wants_losses:
            loss = 0.0
            batches = 0
            for begin in range(0, len(order), batch_size):
                part = order[begin : min(begin + batch_size, len(order))]
                outputs_of(rows, width, part, weights, batch_predictions)
                loss += _loss(batch_predictions[0], part, targets[0], classification[0])
                batches += 1
                step = train_epoch(
                    rows, width, part, targets, classification, batch_size, learning_rate, step,
                    weights, gradients, first, second, stop,
                )  # fmt: skip
                if step < 0:
                    return False
            train_losses[epoch] = loss / batches
        else:
            step = train_epoch(
                rows, width, order, targets, classification, batch_size, learning_rate, step,
                weights, gradients, first, second, stop,
            )  # fmt: skip
            if step < 0:
                return False
        skip(stream, 2)
        shuffle(stream, test, test_order)
        score_test_part(rows, width, test, targets, classification, weights, predictions, scores)
        history[epoch] = scores[0]
        if wants_losses:
            loss = 0.0
            batches = 0
            for begin in range(0, tested, batch_size):
                part = test_order[begin : min(begin + batch_size, tested)]
                outputs_of(rows, width, part, weights, batch_predictions)
                loss += _loss(batch_predictions[0], part, targets[0], classification[0])
                batches += 1
            test_losses[epoch] = loss / batches
        if scores[0] > best or epoch == 0:
            best = scores[0] if scores[0] > best else best
            for j in range(len(kept)):
                kept[j] = weights[j]
            for i in range(tested):
                kept_predictions[i] = predictions[0, i]
    return True
