"""Make engines by their configured names, and compile what scoring needs, so that no submission waits for the compiler."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Literal, get_args

import numpy as np

from scoring.engines.base import Engine, Unit
from scoring.engines.local import LocalEngine, available_cores
from scoring.errors import OrganizerError, needs_extra
from scoring.kernel import moments
from scoring.protocol import Recipe

EngineName = Literal["local", "ray", "torch", "reference"]
CHUNK = 20  # folds that PyTorch trains together unless the configuration says otherwise


def make_engine(
    name: str,
    *,
    threads: int | Literal["auto"] = "auto",
    ray_address: str = "auto",
    device: Literal["cpu", "cuda"] = "cpu",
    chunk: int = CHUNK,
) -> Engine:
    """Make an engine.

    Args:
        name: ``local`` (the compiled kernel), ``torch`` (PyTorch, batched over folds), ``ray`` (the compiled kernel on a
            cluster) or ``reference`` (the plain loop in PyTorch).
        threads: Folds that ``local`` trains at once, or threads of ``torch`` on the CPU; ``auto`` takes all cores that this process may
            use.
        ray_address: Address of the Ray cluster, for ``ray``.
        device: Where ``torch`` computes.
        chunk: Folds that ``torch`` trains together.

    Raises:
        OrganizerError: If there is no such engine, its package is not installed, or it does not find its device.
    """
    cores = available_cores() if threads == "auto" else threads
    # its class, the extra that installs its library, and its options
    engines: dict[str, tuple[str, str, dict[str, object]]] = {
        "local": ("scoring.engines.local:LocalEngine", "", {"threads": cores}),
        "torch": (
            "scoring.engines.torch:TorchEngine",
            "torch",
            {"device": device, "chunk": chunk, "threads": cores},
        ),
        "reference": ("scoring.engines.reference:ReferenceEngine", "torch", {}),
        "ray": ("scoring.engines.ray:RayEngine", "ray", {"address": ray_address}),
    }
    if name not in engines:
        raise OrganizerError(
            f"There is no scoring engine {name!r}.",
            hint=f"Set scoring.engine to one of: {', '.join(get_args(EngineName))}.",
            code="engine.unknown",
        )
    place, extra, options = engines[name]
    with needs_extra(extra, f"scoring.engine: {name}"):
        kind: Callable[..., Engine] = resolve_name(place)
    return kind(**options)


def warm() -> tuple[Path | None, float]:
    """Score a tiny unit, which compiles and caches everything that scoring calls.

    Returns:
        Where the compiled code is kept, None if no directory is writable, in which case each process compiles for itself; and how many
        seconds it took, a fraction of one if everything was cached already.
    """
    started = time.perf_counter()
    from scoring.jit import DIRECTORY
    from scoring.randomness.fold_draws import draw_folds

    samples, seeds = 20, np.array([1], dtype=np.uint32)
    rows = np.random.RandomState(0).standard_normal((samples, 4)).astype(np.float32)
    moments(rows)
    unit = Unit(
        rows=rows,
        targets=(np.arange(3 * samples) % 2).reshape(3, samples).astype(np.float32),
        classification=np.array([False, True, False]),
        split_seeds=seeds,
        training_seeds=seeds,
        recipe=Recipe(epochs=1),
    )
    LocalEngine(threads=1).score(unit)
    draw_folds([*unit.splits()], seeds, dim=4, epochs=1)
    return DIRECTORY, time.perf_counter() - started
