"""The torch engine: the protocol batched over folds in PyTorch, for organizers who have a GPU.

All folds of a row set are trained together, or as many as fit. Random numbers are those of the plain loop, so splits, initial weights and
orders are the same. Sums are added in another order, so scores agree with the local engine's within :data:`TOLERANCE`, not to the bit. Use
one engine for a whole challenge. torch is imported inside the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Literal

import numpy as np
import psutil
from numpy.typing import NDArray

from scoring.engines.base import Engine, Unit, ignore, never, require_linear
from scoring.engines.fold_memory import Footprint, footprint, in_blocks
from scoring.engines.local import available_cores
from scoring.errors import InfrastructureError, OrganizerError
from scoring.randomness import held_out

TOLERANCE = 2e-5
"""Largest difference from the local engine's fold scores, relative to max(1, |score|). F1 may differ by one more count for each sample
whose logit is so close to the threshold that rounding decides its class."""

USED_OF_FREE = 0.9  # share of the device's free memory that is used
DRAWN_BYTES = 10**9  # limit for the orders of folds that are drawn at once, for a GPU
# Memory for folds that are trained together on the CPU; about what the caches close to a core hold.
CPU_BYTES = 4 * 2**20


class TorchEngine(Engine):
    """Score units with batched PyTorch.

    Args:
        device: ``auto`` takes CUDA if there is a device, else the CPU.
        threads: Threads of torch on the CPU, and threads that draw random numbers; None takes all cores that this process may use.
        memory_limit: Bytes that a unit may take on the device; None takes the free memory.

    Raises:
        OrganizerError: If there is no such device.
    """

    name = "torch"

    def __init__(
        self,
        *,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        threads: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            raise OrganizerError(
                "PyTorch does not find a CUDA device.",
                cure="Check the driver and whether the CUDA build of torch is installed. In Python, you can pass device='cpu' instead.",
                code="engine.device",
            )
        self.device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        self._threads = threads or available_cores()
        self._memory_limit = memory_limit

    def score(
        self, unit: Unit, *, progress: Callable[[int], None] = ignore, cancelled: Callable[[], bool] = never
    ) -> NDArray[np.float64]:
        """See :meth:`scoring.engines.base.Engine.score`.

        Raises:
            InfrastructureError: If not even one fold fits into the device's memory.
        """
        import torch

        from scoring.engines.fold_block import DeviceRows, FoldBlock
        from scoring.randomness.fold_draws import draw_folds

        require_linear(unit)
        (tasks, samples), folds = unit.targets.shape, len(unit.split_seeds)
        needed, limit = footprint(unit), self._limit()
        scores = np.full((tasks, folds), np.nan)

        @cache
        def data() -> DeviceRows:
            return DeviceRows(unit, torch.device(self.device))

        def train(block: slice) -> None:
            draws = draw_folds(
                unit.split_seeds[block],
                unit.training_seeds[block],
                rows=samples,
                tested=held_out(samples, unit.recipe.test_size),
                dim=unit.rows.shape[1],
                epochs=unit.recipe.epochs,
                threads=self._threads,
            )
            scores[:, block] = FoldBlock(data(), draws, unit.recipe).train(cancelled).T
            progress(tasks * (block.stop - block.start))

        with _settings(self._threads):
            in_blocks(folds, self._together(needed, limit), train, too_large=_too_large(needed, limit))
        return scores

    def _limit(self) -> int:
        """Return the bytes that a unit may take on the device."""
        import torch

        if self._memory_limit is not None:
            return self._memory_limit
        if self.device == "cpu":
            return psutil.virtual_memory().available
        free, _ = torch.cuda.mem_get_info()
        return int(USED_OF_FREE * (free + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()))

    def _together(self, needed: Footprint, limit: int) -> int:
        """Return how many folds are trained together; 0 if not even one fits."""
        enough = CPU_BYTES // needed.per_fold if self.device == "cpu" else DRAWN_BYTES // needed.drawn
        return min(needed.folds_in(limit), max(1, enough))


def _too_large(needed: Footprint, limit: int) -> InfrastructureError:
    return InfrastructureError(
        f"The torch engine needs {(needed.shared + needed.per_fold) / 1e9:.1f} GB to train one fold,"
        f" but its device has only {limit / 1e9:.1f} GB free.",
        cure="Free memory on the device, or set scoring.engine to local and run `neuco-worker challenge rescore`.",
        code="engine.memory",
    )


@contextmanager
def _settings(threads: int) -> Iterator[None]:
    """Set the number of threads and full float32 precision, and restore torch's settings at the end."""
    import torch

    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_num_threads(threads)
    # TensorFloat-32 would break the agreement with other engines.
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])
