"""Linear probes with several outputs, for several classes or labels, in numpy, without torch.

The recipe is the linear probe's: AdamW with torch's defaults (betas 0.9 and 0.999, weight decay 0.01), cross entropy for classes, binary
cross entropy for labels. Each fold has its own seed, derived from the run's seed, the task's name and the fold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.engines import train_in_order
from scoring.probes.fold_record import FoldRecord
from scoring.probes.probe import (
    FoldResult,
    ProbeInput,
    ProbeSettings,
    TaskKind,
    TrainingParameters,
    shuffle_splits,
)

Matrix = NDArray[np.float32]


def fold_seed(seed: int, task: str, fold: int) -> int:
    """Return a fold's 32-bit seed."""
    digest = hashlib.sha256(f"neuco-worker probe 1\0{seed}\0{task}\0{fold}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def train_multi_output(
    data: ProbeInput,
    parameters: TrainingParameters,
    *,
    folds: int,
    settings: ProbeSettings,
    details: bool,
    progress: Callable[[int], None],
) -> list[FoldResult]:
    """Train a linear probe with one output per class or label on every fold; see :meth:`scoring.probes.probe.Probe.train`."""
    stop = np.zeros(1, dtype=np.uint8)
    wanted = data.targets
    if data.kind is TaskKind.MULTICLASS:
        wanted = np.asarray(wanted[:, np.newaxis] == np.arange(data.outputs))
    truth = wanted.astype(np.float32)

    def train(job: tuple[int, NDArray[np.int32]]) -> FoldResult:
        fold, split = job
        generator = np.random.RandomState(fold_seed(settings.seed, data.name, fold))
        return _fold(data, truth, parameters, split, generator, stop=stop, details=details)

    return train_in_order(
        train,
        iter(enumerate(shuffle_splits(len(data.rows), folds, settings.seed))),
        threads=settings.workers,
        stop=stop,
        finished=lambda _: progress(1),
    )


class _Layer:
    """Weights of all outputs, with the bias as the last column, and AdamW's moments of them."""

    def __init__(self, dim: int, outputs: int, generator: np.random.RandomState) -> None:
        bound = dim**-0.5
        self.weights: Matrix = generator.uniform(-bound, bound, (outputs, dim + 1)).astype(np.float32)
        self._first = np.zeros_like(self.weights)
        self._second = np.zeros_like(self.weights)
        self._steps = 0

    def outputs(self, rows: Matrix) -> Matrix:
        return np.asarray(rows @ self.weights[:, :-1].T + self.weights[:, -1])

    def step(self, rows: Matrix, slopes: Matrix, rate: float) -> None:
        gradient = np.concatenate([slopes.T @ rows, slopes.sum(axis=0)[:, np.newaxis]], axis=1)
        self._steps += 1
        self._first += np.float32(0.1) * (gradient - self._first)
        self._second *= np.float32(0.999)
        self._second += np.float32(0.001) * gradient**2
        scale = np.float32((1 - 0.999**self._steps) ** 0.5)
        self.weights *= np.float32(1 - rate * 0.01)
        self.weights -= (
            np.float32(rate / (1 - 0.9**self._steps))
            * self._first
            / (np.sqrt(self._second) / scale + np.float32(1e-8))
        )


def _fold(
    data: ProbeInput,
    truth: Matrix,
    parameters: TrainingParameters,
    split: NDArray[np.int32],
    generator: np.random.RandomState,
    *,
    stop: NDArray[np.uint8],
    details: bool,
) -> FoldResult:
    record = FoldRecord(data, split)
    layer = _Layer(data.rows.shape[1], data.outputs, generator)
    kept = layer.weights
    for _ in range(parameters.epochs):
        if stop[0]:
            break
        order = generator.permutation(record.train)
        losses = []
        for begin in range(0, len(order), parameters.batch_size):
            batch = order[begin : begin + parameters.batch_size]
            loss, slopes = loss_and_slopes(data.kind, layer.outputs(data.rows[batch]), truth[batch])
            layer.step(data.rows[batch], slopes, parameters.learning_rate)
            losses.append(loss)
        outputs = layer.outputs(data.rows[record.test])
        test_loss, _ = loss_and_slopes(data.kind, outputs, truth[record.test]) if details else (0.0, None)
        if record.add(outputs, (float(np.mean(losses)), test_loss) if details else None):
            kept = layer.weights.copy()
    layer.weights = kept
    return record.result(layer.outputs(data.rows[record.train]) if details else None)


def loss_and_slopes(kind: TaskKind, outputs: Matrix, truth: Matrix) -> tuple[float, Matrix]:
    """Return the mean loss of a batch and its derivative by the outputs.

    Args:
        kind: Several classes or several labels.
        outputs: B x C logits.
        truth: B x C zeros and ones.
    """
    if kind is TaskKind.MULTICLASS:
        shifted = outputs - outputs.max(axis=1, keepdims=True)
        total = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        loss = float((total[:, 0] - (shifted * truth).sum(axis=1)).mean())
        return loss, _shared(np.exp(shifted - total) - truth, len(outputs))
    loss = float((np.maximum(outputs, 0) - outputs * truth + np.log1p(np.exp(-np.abs(outputs)))).mean())
    with np.errstate(over="ignore"):
        probability = 1 / (1 + np.exp(-outputs))
    return loss, _shared(probability - truth, outputs.size)


def _shared(slopes: NDArray[Any], count: int) -> Matrix:
    return np.asarray(slopes / np.float32(count), dtype=np.float32)
