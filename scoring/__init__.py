"""Turn embeddings and hidden tasks into a scorecard, as a pure function.

``score`` is all that a Python caller needs; ``scoring/README.md`` has examples that run. It is imported on first use, so a tool that only
reads tables does not load the modules that train probes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoring.memory.score import score

__all__ = ["score"]


def __getattr__(name: str) -> Any:
    """Load the function."""
    if name != "score":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from scoring.memory.score import score

    return score


def __dir__() -> list[str]:
    return __all__
