"""Every row of the threat model names its tests, which exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "SECURITY.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def test_every_named_test_exists() -> None:
    """Each ``file::name`` of the page is a test of that file."""
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 40
    missing = [
        f"{path}::{name}" for path, name in named if not (ROOT / path).is_file() or name not in names_in(path)
    ]
    assert missing == []


def test_every_line_of_the_model_is_guarded() -> None:
    """Each row of a table of attacks ends with the tests that guard it, or says that nothing does."""
    guarded = False
    rows = 0
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            guarded = False
        elif "Guarded by" in line:
            guarded = True
        elif guarded and not line.startswith("|---"):
            last = line.rstrip("|").rsplit("|", 1)[1].strip()
            assert NAMED.search(last) or last.startswith("nothing"), line
            rows += 1
    assert rows > 30
