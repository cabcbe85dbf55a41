"""Memory of the torch engine: estimate how many folds fit on the device, and train fewer at once if they do not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scoring.engines.base import Unit
from scoring.errors import InfrastructureError
from scoring.randomness import held_out

FLOAT, DOUBLE, INDEX = 4, 8, 4  # bytes


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """An estimate of the device memory that a unit takes while its folds are trained, in bytes.

    Attributes:
        shared: For the rows and labels, which all folds use.
        per_fold: For each fold that is trained at the same time.
        drawn: The part of ``per_fold`` that is also in the host's memory: the orders of all epochs.
    """

    shared: int
    per_fold: int
    drawn: int

    def folds_in(self, limit: int) -> int:
        """Return how many folds fit into ``limit`` bytes; 0 if none does."""
        return max(0, (limit - self.shared) // self.per_fold)


def footprint(unit: Unit) -> Footprint:
    """Estimate the memory of a unit from its shape."""
    tasks, samples = unit.targets.shape
    width = padded_width(unit.rows.shape[1])
    tested = held_out(samples, unit.recipe.test_size)
    trained = samples - tested
    batch = min(unit.recipe.batch_size, trained)
    states = 7 * tasks * width * FLOAT  # weights, two moments, gradients, and a step's intermediate results
    drawn = unit.recipe.epochs * trained * INDEX
    order = trained * INDEX
    labels = 2 * tasks * trained * FLOAT
    step = batch * width * FLOAT + 6 * tasks * batch * FLOAT
    validation = tasks * samples * FLOAT + 6 * tasks * tested * DOUBLE
    return Footprint(
        shared=2 * samples * width * FLOAT + tasks * samples * FLOAT,
        per_fold=states + drawn + order + labels + step + validation,
        drawn=drawn,
    )


def padded_width(dim: int) -> int:
    """Return the length of a row on the device: the values, a 1 for the bias, and zeros up to a multiple of four."""
    return (dim + 4) // 4 * 4


def in_blocks(
    folds: int, most: int, train: Callable[[slice], None], *, too_large: InfrastructureError
) -> None:
    """Train blocks of folds one after the other, and halve the block size when the device runs out of memory.

    Args:
        folds: Number of folds.
        most: Number of folds in the first block; 0 if not even one fits.
        train: Trains a range of folds. It is called again for smaller ranges after a ``torch.OutOfMemoryError``.
        too_large: The error to raise when a single fold does not fit.

    Raises:
        InfrastructureError: ``too_large``.
    """
    import torch

    if most < 1:
        raise too_large
    begin = 0
    while begin < folds:
        block = slice(begin, min(begin + most, folds))
        try:
            train(block)
        except RuntimeError as error:
            if not _ran_out_of_memory(error):
                raise
            size = block.stop - block.start
            if size == 1:
                raise too_large from error
            most = size // 2
        else:
            begin = block.stop
            continue
        # After the handler, because the error's traceback keeps the block's tensors alive.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _ran_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error was caused by a lack of memory, also if the end of a CUDA graph's recording raised another error on top."""
    import torch

    while error is not None and not isinstance(error, torch.OutOfMemoryError):
        error = error.__context__
    return error is not None
