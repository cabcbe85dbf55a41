"""Turn embeddings and hidden tasks into a scorecard, as a pure function.

These names are all that a Python caller needs; ``scoring/README.md`` has an example that runs. Each is imported on first use, so a tool
that only reads tables does not load the modules that train probes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoring.evaluate import practice_protocol, score_embeddings
    from scoring.inputs.embeddings import Embeddings
    from scoring.inputs.identifiers import read_ids
    from scoring.inputs.submission import read_submission
    from scoring.neuco_bench.frames import score
    from scoring.protocol import Protocol, Recipe
    from scoring.scorecard import Scorecard
    from scoring.tasks import load_tasks

_HOMES = {
    "Embeddings": "scoring.inputs.embeddings",
    "Protocol": "scoring.protocol",
    "Recipe": "scoring.protocol",
    "Scorecard": "scoring.scorecard",
    "load_tasks": "scoring.tasks",
    "practice_protocol": "scoring.evaluate",
    "read_ids": "scoring.inputs.identifiers",
    "read_submission": "scoring.inputs.submission",
    "score": "scoring.neuco_bench.frames",
    "score_embeddings": "scoring.evaluate",
}

__all__ = [
    "Embeddings",
    "Protocol",
    "Recipe",
    "Scorecard",
    "load_tasks",
    "practice_protocol",
    "read_ids",
    "read_submission",
    "score",
    "score_embeddings",
]


def __getattr__(name: str) -> Any:
    """Load a name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
