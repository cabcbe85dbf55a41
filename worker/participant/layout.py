"""Which of a challenge's published files say what a submission must have, and their paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

COMMITMENTS = "commitment.json"


def list_path(phase: str) -> str:
    """Return the path of a phase's published id list."""
    return f"ids/{phase}.txt"


def announced(entries: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return each phase's protocol from the public commitments; the newest counts."""
    protocols: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        protocols |= entry["phases"]
    return protocols
