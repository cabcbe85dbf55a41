"""Turn embeddings and hidden tasks into a scorecard, as a pure function.

A Python caller needs ``score``, ``compare`` and ``rank``; ``scoring/README.md`` has examples that run. Each is imported on first use, so a
tool that only reads tables does not load the modules that train probes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoring.memory.score import score

    compare: Any
    rank: Any

PLACES = {
    "compare": "leaderboard.exchange.results",
    "rank": "leaderboard.exchange.results",
    "score": "scoring.memory.score",
}
"""The module of each function. Ranks are the leaderboard's, which no module of this package uses."""
__all__ = ["compare", "rank", "score"]


def __getattr__(name: str) -> Any:
    """Load the function."""
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
