"""Write or check a page of the documentation that is generated from the code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def write_or_check(place: Path, text: str, arguments: Sequence[str]) -> int:
    """Write a page, or with ``--check`` compare it; return the exit status, 1 if the page is not up to date."""
    if "--check" in arguments:
        return int(place.read_text(encoding="utf-8") != text)
    place.write_text(text, encoding="utf-8")
    return 0
