"""Make engines by their configured names."""

from __future__ import annotations

from typing import Literal

from scoring.engines.base import Engine
from scoring.errors import OrganizerError

NAMES = ("local", "torch", "ray")
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
        name: ``local`` (the compiled kernel), ``torch`` (PyTorch, batched over folds) or ``ray`` (the compiled kernel on a cluster).
        threads: Folds that ``local`` trains at once, or threads of ``torch`` on the CPU; ``auto`` takes all cores that this process may
            use.
        ray_address: Address of the Ray cluster, for ``ray``.
        device: Where ``torch`` computes.
        chunk: Folds that ``torch`` trains together.

    Raises:
        OrganizerError: If there is no such engine, its package is not installed, or it does not find its device.
    """
    from scoring.engines.local import LocalEngine, available_cores

    cores = available_cores() if threads == "auto" else threads
    if name == "local":
        return LocalEngine(threads=cores)
    if name == "torch":
        from scoring.engines.torch import TorchEngine

        return TorchEngine(device=device, chunk=chunk, threads=cores)
    if name == "ray":
        try:
            from scoring.engines.ray import RayEngine
        except ModuleNotFoundError as missing:
            raise OrganizerError(
                "scoring.engine is ray, but the package ray is not installed.",
                cure="Install it with `pip install neuco-worker[ray]`.",
                code="engine.ray_missing",
            ) from missing

        return RayEngine(address=ray_address)
    raise OrganizerError(
        f"There is no scoring engine {name!r}.",
        cure=f"Set scoring.engine to one of: {', '.join(NAMES)}.",
        code="engine.unknown",
    )
