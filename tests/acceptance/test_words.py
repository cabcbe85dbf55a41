"""Texts are spelled correctly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
NOT_OURS = ("tests/leaderboard/vendor/", "LICENSE")
SPELT = {".cff", ".css", ".html", ".j2", ".js", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}
"""Kinds of files whose spelling is checked."""


def tracked() -> Iterator[str]:
    """List the tracked files that were written for this project, without vendored ones."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return (name for name in names.splitlines() if not name.startswith(NOT_OURS) and (ROOT / name).is_file())


def test_spelling() -> None:
    """Codespell finds no misspelling, apart from the words that ``tests/spelling.txt`` allows."""
    names = [name for name in tracked() if Path(name).suffix in SPELT or name == "Makefile"]
    options = ["--ignore-words", "tests/spelling.txt", "--disable-colors"]
    command = [sys.executable, "-m", "codespell_lib", *options, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
