"""Every row of the threat model names its tests, which exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "SECURITY.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_named_test_exists() -> None:
    """Each ``file::name`` of the page is a test of that file."""
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 40
    assert [
        (path, name)
        for path, name in named
        if not (ROOT / path).is_file() or f"\ndef {name}(" not in (ROOT / path).read_text(encoding="utf-8")
    ] == []


def test_every_line_of_the_model_is_guarded() -> None:
    """Each row of a table of attacks ends with the tests that guard it, or says that nothing does."""
    tables = re.findall(r"\|.*Guarded by.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE.read_text(encoding="utf-8"))
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 30
    guards = {row: row.rstrip("|").rpartition("|")[2].strip() for row in rows}
    assert [row for row, guard in guards.items() if not NAMED.search(guard) and guard[:7] != "nothing"] == []
