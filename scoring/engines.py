"""Engines by the name that the configuration gives them."""

from __future__ import annotations

from typing import Literal

from scoring.engine import Engine
from scoring.errors import OrganizerError

NAMES = ("local", "plain")


def make_engine(name: str, *, threads: int | Literal["auto"] = "auto") -> Engine:
    """Make an engine.

    Args:
        name: ``local`` (the compiled kernel) or ``plain`` (the PyTorch loop, a hundred times slower, for checking).
        threads: Folds trained at once by ``local``; ``auto`` takes all cores that this process may use.

    Raises:
        OrganizerError: If there is no such engine.
    """
    if name == "local":
        from scoring.local import LocalEngine

        return LocalEngine(threads=None if threads == "auto" else int(threads))
    if name == "plain":
        from scoring.plain import PlainEngine

        return PlainEngine()
    raise OrganizerError(
        f"There is no scoring engine {name!r}.",
        cure=f"Set scoring.engine to one of: {', '.join(NAMES)}.",
        code="engine.unknown",
    )
