"""The torch engine: the protocol batched over folds in PyTorch, for organizers who have a GPU.

All folds of a block take the same step at once: a batched product gives the outputs of all tasks on all folds, another one the gradients,
and AdamW is elementwise. The random stream is the plain loop's, drawn on the CPU per fold, so splits, initial weights and orders are the
same; sums are added in another order, so scores agree with the local engine's within :data:`TOLERANCE`, not to the bit. Take one engine for
a whole phase. torch is imported inside the functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from scoring.engines.base import Engine, Unit, ignore, never, require_linear
from scoring.errors import Cancelled, OrganizerError
from scoring.metrics import R2_TOLERANCE, SIGMOID_HALF
from scoring.randomness import Splitter, held_out

if TYPE_CHECKING:
    import torch

TOLERANCE = 2e-5
"""Largest difference from the local engine's fold scores, relative to max(1, |score|), where no logit lies so close to the threshold that
rounding decides its side: such a sample moves F1 by one count."""

GATHERED_BYTES = {"cpu": 64 * 2**20, "cuda": 4 * 2**30}  # rows of one block of folds that are copied together

_BETA_1, _BETA_2, _EPSILON, _WEIGHT_DECAY = 0.9, 0.999, 1e-8, 0.01  # torch's defaults of AdamW


class TorchEngine(Engine):
    """Score units with batched PyTorch.

    Args:
        device: ``auto`` takes CUDA when there is one, else the CPU.
        threads: Threads of torch on the CPU; None leaves torch's choice.

    Raises:
        OrganizerError: If there is no such device.
    """

    name = "torch"

    def __init__(
        self, *, device: Literal["auto", "cpu", "cuda"] = "auto", threads: int | None = None
    ) -> None:
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            raise OrganizerError(
                "PyTorch does not find a CUDA device.",
                cure="Check the driver and whether the CUDA build of torch is installed, or use the CPU.",
                code="engine.device",
            )
        self.device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        self._threads = threads

    def score(
        self, unit: Unit, *, progress: Callable[[int], None] = ignore, cancelled: Callable[[], bool] = never
    ) -> NDArray[np.float64]:
        """See :meth:`scoring.engines.base.Engine.score`; ``cancelled`` is asked after each step."""
        import torch

        require_linear(unit)
        before = torch.get_num_threads()
        if self._threads is not None:
            torch.set_num_threads(self._threads)
        try:
            return self._score(unit, progress, cancelled)
        finally:
            torch.set_num_threads(before)

    def _score(
        self, unit: Unit, progress: Callable[[int], None], cancelled: Callable[[], bool]
    ) -> NDArray[np.float64]:
        import torch

        rows = torch.from_numpy(np.array(unit.rows)).to(self.device)
        targets = torch.from_numpy(np.array(unit.targets)).to(self.device)
        classes = torch.from_numpy(np.array(unit.classification)).to(self.device)
        tasks, samples = targets.shape
        folds = len(unit.split_seeds)
        largest = max(held_out(samples, unit.recipe.test_size), min(unit.recipe.batch_size, samples))
        together = max(1, GATHERED_BYTES[self.device] // (4 * largest * rows.shape[1]))
        scores = np.full((tasks, folds), np.nan)
        for start in range(0, folds, together):
            part = slice(start, min(start + together, folds))
            with torch.no_grad():
                block = _Block(unit, part, rows, targets, classes)
                scores[:, part] = block.train(cancelled).T
            progress(tasks * (part.stop - part.start))
        return scores


class _Block:
    """Some folds of a unit, trained together; shapes: F folds, T tasks, N dimensions, B rows of a batch."""

    def __init__(
        self, unit: Unit, part: slice, rows: torch.Tensor, targets: torch.Tensor, classes: torch.Tensor
    ) -> None:
        import torch

        self._unit = unit
        self._rows, self._targets, self._classes = rows, targets, classes
        samples, dim = rows.shape
        self._tested = held_out(samples, unit.recipe.test_size)
        splitter = Splitter()
        self._splits = [
            torch.from_numpy(splitter.permutation(int(seed), samples).astype(np.int64))
            for seed in unit.split_seeds[part]
        ]
        self._streams = [
            torch.Generator().manual_seed(int(seed)) for seed in unit.training_seeds[part].tolist()
        ]
        bound = 1 / math.sqrt(dim)
        # torch.nn.Linear draws N weights, then the bias; all tasks of a fold start from the same values.
        initial = torch.stack(
            [torch.empty(dim + 1).uniform_(-bound, bound, generator=stream) for stream in self._streams]
        )
        self._weights = initial.to(rows.device)[:, None, :].repeat(1, len(targets), 1)
        self._first = torch.zeros_like(self._weights)
        self._second = torch.zeros_like(self._weights)
        self._steps = 0

    def train(self, cancelled: Callable[[], bool]) -> NDArray[np.float64]:
        """Return F x T best scores over the epochs, NaN where none is finite."""
        import torch

        test = torch.stack([split[: self._tested] for split in self._splits]).to(self._rows.device)
        best = np.full((len(self._splits), len(self._targets)), -np.inf)
        for _ in range(self._unit.recipe.epochs):
            for batch in self._batches():
                self._step(batch)
                if cancelled():
                    raise Cancelled()
            scores = self._validate(test)
            best = np.where(scores > best, scores, best)  # NaN loses
        return np.where(best > -np.inf, best, np.nan)

    def _batches(self) -> Iterator[torch.Tensor]:
        """Draw one epoch's order of every fold and yield its batches, F x B row numbers."""
        import torch

        orders = []
        for split, stream in zip(self._splits, self._streams, strict=True):
            train = split[self._tested :]
            torch.empty((), dtype=torch.int64).random_(generator=stream)  # a DataLoader's base seed
            orders.append(train[torch.randperm(len(train), generator=stream)])
            torch.empty((), dtype=torch.int64).random_(generator=stream)  # and what validation draws
            torch.randperm(self._tested, generator=stream)
        yield from torch.split(torch.stack(orders).to(self._rows.device), self._unit.recipe.batch_size, dim=1)

    def _outputs(self, rows: torch.Tensor) -> torch.Tensor:
        """Return F x T x B outputs for F x B x N rows."""
        import torch

        return torch.baddbmm(self._weights[:, :, -1:], self._weights[:, :, :-1], rows.transpose(1, 2))

    def _labels(self, batch: torch.Tensor) -> torch.Tensor:
        """Return F x T x B labels."""
        return self._targets[:, batch].transpose(0, 1)

    def _step(self, batch: torch.Tensor) -> None:
        """Take one AdamW step on every fold and task."""
        import torch

        rows = self._rows[batch]
        outputs, labels = self._outputs(rows), self._labels(batch)
        kinds = self._classes[None, :, None]
        slope = torch.where(kinds, torch.sigmoid(outputs) - labels, 2 * (outputs - labels)) / batch.shape[1]
        gradients = torch.cat([torch.bmm(slope, rows), slope.sum(dim=2, keepdim=True)], dim=2)
        self._steps += 1
        rate = self._unit.recipe.learning_rate
        self._weights.mul_(1 - rate * _WEIGHT_DECAY)
        self._first.lerp_(gradients, 1 - _BETA_1)
        self._second.mul_(_BETA_2).addcmul_(gradients, gradients, value=1 - _BETA_2)
        correction = math.sqrt(1 - _BETA_2**self._steps)
        spread = (self._second.sqrt() / correction).add_(_EPSILON)
        self._weights.addcdiv_(self._first, spread, value=-rate / (1 - _BETA_1**self._steps))

    def _validate(self, test: torch.Tensor) -> NDArray[np.float64]:
        """Return F x T held-out scores, by the rules of :mod:`scoring.metrics`."""
        import torch

        outputs, labels = self._outputs(self._rows[test]), self._labels(test)
        kinds = self._classes[None, :]
        scores = torch.where(kinds, _f1(outputs, labels), _r2(outputs.double(), labels.double()))
        return scores.cpu().numpy()


def _r2(predictions: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    import torch

    residual = ((labels - predictions) ** 2).sum(dim=2)
    total = ((labels - labels.mean(dim=2, keepdim=True)) ** 2).sum(dim=2)
    score = torch.where(total.abs() <= R2_TOLERANCE, torch.zeros_like(residual), 1 - residual / total)
    return torch.where(residual.abs() <= R2_TOLERANCE, torch.ones_like(residual), score)


def _f1(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    import torch

    are_probabilities = ((logits >= 0) & (logits <= 1)).all(dim=2, keepdim=True)
    positive = logits > torch.where(are_probabilities, 0.5, SIGMOID_HALF).to(logits.dtype)
    truth = labels > 0.5
    hits = (positive & truth).sum(dim=2).double()
    misses = (positive ^ truth).sum(dim=2).double()
    return torch.where(hits + misses > 0, 2 * hits / (2 * hits + misses), torch.zeros_like(hits))
