"""Make engines by their configured names."""

from __future__ import annotations

from typing import Literal

from scoring.engines.base import Engine
from scoring.engines.choice import choose
from scoring.errors import OrganizerError

NAMES = ("auto", "local", "torch", "ray", "plain")


def make_engine(name: str, *, threads: int | Literal["auto"] = "auto", ray_address: str = "auto") -> Engine:
    """Make an engine.

    Args:
        name: ``local`` (the compiled kernel), ``torch`` (batched over folds, on CUDA when there is one), ``auto`` (``torch`` if PyTorch
            finds a CUDA device, else ``local``), ``ray`` (the compiled kernel on a cluster) or ``plain`` (the PyTorch loop, a hundred times
            slower, for checking).
        threads: Folds that ``local`` trains at once, or threads of ``torch`` on the CPU; ``auto`` takes all cores that this process may
            use.
        ray_address: Address of the Ray cluster, for ``ray``.

    Raises:
        OrganizerError: If there is no such engine, or its package is not installed.
    """
    name = choose(name)
    if name == "local":
        from scoring.engines.local import LocalEngine

        return LocalEngine(threads=None if threads == "auto" else int(threads))
    if name == "torch":
        from scoring.engines.local import available_cores
        from scoring.engines.torch import TorchEngine

        return TorchEngine(threads=available_cores() if threads == "auto" else int(threads))
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
    if name == "plain":
        from scoring.engines.reference import PlainEngine

        return PlainEngine()
    raise OrganizerError(
        f"There is no scoring engine {name!r}.",
        cure=f"Set scoring.engine to one of: {', '.join(NAMES)}.",
        code="engine.unknown",
    )
