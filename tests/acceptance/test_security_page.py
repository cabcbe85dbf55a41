"""Every row of the threat model names its tests, which exist, and its figures match the code."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.benchmarks.probing import RULES
from tests.benchmarks.probing_attacks import ATTACKS
from worker.fairness.receipts import SMALLEST_BATCH

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "SECURITY.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")

MEASURED = re.compile(r"\+\d\.\d\d ± \d\.\d\d \(\d+ %\)")


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


def test_the_page_has_every_attack_and_rule_that_is_measured() -> None:
    """The table of attacks on the shown score has the rows and columns of the benchmark."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    head = lines.index(f"| attack | {' | '.join(rule.name for rule in RULES)} |")
    for name, line in zip(ATTACKS, lines[head + 2 :], strict=False):
        assert line.startswith(f"| {name} | ")
        assert len(MEASURED.findall(line)) == len(RULES)
    assert lines[head + 2 + len(ATTACKS)] == ""


def test_numbers_of_the_page_are_those_of_the_code() -> None:
    """The pages state the actual sizes of a batch of receipts."""
    text = PAGE.read_text(encoding="utf-8")
    assert f"sizes {SMALLEST_BATCH}, {2 * SMALLEST_BATCH}, {4 * SMALLEST_BATCH} ..." in text
    page = (ROOT / "docs" / "fairness.md").read_text(encoding="utf-8")
    assert f"{SMALLEST_BATCH}, {2 * SMALLEST_BATCH}, {4 * SMALLEST_BATCH}" in page
