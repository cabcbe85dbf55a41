"""Which of a challenge's published files say what a submission must have, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

COMMITMENTS = "commitment.json"


def list_path(phase: str) -> str:
    """Return where a phase's id list is published."""
    return f"ids/{phase}.txt"


def announced(entries: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return what public commitments say of each phase's protocol now: the last word counts."""
    found: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        found |= entry["phases"]
    return found
