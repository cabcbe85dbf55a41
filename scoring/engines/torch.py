"""The torch engine: the protocol batched over folds in PyTorch, for organizers who have a GPU.

The folds of a row set are trained together, a chunk at a time. Random numbers are those of the reference, so splits, initial weights and
orders are the same. Sums are added in another order, so scores agree with the local engine's within
:data:`~scoring.engines.base.TOLERANCE`, not to the bit. Use one engine for a whole challenge.

Shapes: F folds, T tasks, n rows of N values, b rows in a batch. torch is an optional dependency; nothing imports this module unless the
engine is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from scoring.engines.base import Engine, Unit, ignore
from scoring.errors import InfrastructureError, OrganizerError
from scoring.metrics import best_score, f1, r2
from scoring.randomness import Split
from scoring.randomness.fold_draws import FoldDraws, draw_folds


class TorchEngine(Engine):
    """Score units with batched PyTorch.

    Args:
        device: ``cpu`` or ``cuda``.
        chunk: How many folds are trained together.
        threads: Threads of torch on the CPU.

    Raises:
        OrganizerError: If there is no such device.
    """

    name = "torch"
    libraries = ("torch",)

    def __init__(self, *, device: Literal["cpu", "cuda"], chunk: int, threads: int) -> None:
        if device == "cuda" and not torch.cuda.is_available():
            raise OrganizerError(
                "PyTorch does not find a CUDA device.",
                hint="Check the driver, the CUDA build of torch, and whether the service may use the GPU; or set scoring.device: cpu.",
                code="engine.device",
            )
        self._device = device
        self._chunk = chunk
        self._threads = threads

    def score(self, unit: Unit, *, progress: Callable[[int], None] = ignore) -> NDArray[np.float64]:
        """See :meth:`scoring.engines.base.Engine.score`.

        Raises:
            InfrastructureError: If the GPU fails, for example because its memory is too small.
        """
        try:
            return self._score(unit, progress)
        except RuntimeError as problem:  # torch has a class of its own only for memory that it could not allocate, and not always
            if self._device == "cpu":
                raise
            reason = str(problem).splitlines()[0].partition(". ")[0]  # sentences about its allocator follow
            raise InfrastructureError(
                f"PyTorch could not compute on the GPU: {reason}.",
                hint="If its memory is too small, end what else uses it (nvidia-smi shows what does) or lower scoring.chunk.",
                code="engine.device",
            ) from problem

    def _score(self, unit: Unit, progress: Callable[[int], None]) -> NDArray[np.float64]:
        torch.set_num_threads(self._threads)
        splits = list(unit.splits())
        scores = np.empty((len(splits), len(unit.targets)))
        for folds in self._chunks(splits):
            draws = draw_folds(
                [splits[fold] for fold in folds],
                unit.training_seeds[folds],
                dim=unit.rows.shape[1],
                epochs=unit.recipe.epochs,
            )
            with torch.no_grad():
                history = _train(unit, draws, torch.device(self._device))
            scores[folds] = np.apply_along_axis(best_score, 0, history)
            progress(scores[folds].size)
        return scores.T

    def _chunks(self, splits: Sequence[Split]) -> Iterator[list[int]]:
        """Yield the numbers of the folds that are trained together: their test parts have the same size."""
        of_size: dict[int, list[int]] = {}
        for fold, split in enumerate(splits):
            of_size.setdefault(split.tested, []).append(fold)
        for folds in of_size.values():
            for begin in range(0, len(folds), self._chunk):
                yield folds[begin : begin + self._chunk]


def _train(unit: Unit, draws: FoldDraws, device: torch.device) -> NDArray[np.float64]:
    """Return the scores of all folds and tasks after each epoch, E x F x T."""
    rows, targets, classification = (
        torch.from_numpy(np.array(values)).to(device)
        for values in (unit.rows, unit.targets, unit.classification[:, np.newaxis])
    )
    orders = torch.from_numpy(draws.orders).to(device)
    tasks = len(targets)
    # Every task of a fold starts from the same weights. AdamW's steps are element by element, so one optimizer serves all probes.
    start = torch.from_numpy(draws.weights).to(device)[:, None].repeat(1, tasks, 1)
    weights, biases = start[:, :, :-1].contiguous(), start[:, :, -1:].contiguous()
    optimizer = torch.optim.AdamW([weights, biases], lr=unit.recipe.learning_rate)
    history = []
    for epoch in range(unit.recipe.epochs):
        for batch in torch.split(orders[:, epoch], unit.recipe.batch_size, dim=1):
            inputs = rows[batch]
            outputs = torch.baddbmm(biases, weights, inputs.transpose(1, 2))
            errors = torch.where(classification, torch.sigmoid(outputs), outputs)
            errors -= targets[:, batch].transpose(0, 1)
            # The derivative of MSE by an output is 2 (output - label), that of BCE-with-logits is sigmoid(output) - label.
            errors *= torch.where(classification, 1.0, 2.0) / batch.shape[1]
            weights.grad, biases.grad = torch.bmm(errors, inputs), errors.sum(dim=2, keepdim=True)
            optimizer.step()
        # Predicting all rows needs no copies of rows, so it takes less time and memory than predicting the test parts alone.
        outputs = (weights.flatten(0, 1) @ rows.T).view(*weights.shape[:2], -1) + biases
        history.append(_scores(unit, draws, outputs.cpu().numpy()))
    return np.array(history)


def _scores(unit: Unit, draws: FoldDraws, outputs: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the held-out scores, F x T, from the outputs for all rows, F x T x n."""
    return np.array(
        [
            [
                (f1 if kind else r2)(predictions[test], labels[test])
                for predictions, labels, kind in zip(fold, unit.targets, unit.classification, strict=True)
            ]
            for fold, test in zip(outputs, draws.tests, strict=True)
        ]
    )
