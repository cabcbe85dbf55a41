"""Texts are spelled correctly, and the pages contain none of the phrases in ``tests/words.txt``."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "words.txt"
NOT_OURS = ("tests/leaderboard/vendor/", "LICENSE")
SPELT = {".cff", ".css", ".html", ".j2", ".js", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}
"""Kinds of files whose spelling is checked."""

NOT_PROSE = re.compile(
    r"^(```|~~~).*?^\1|<!--.*?-->|`[^`]*`|\]\([^)]*\)|^    [^\n]*$", re.DOTALL | re.MULTILINE
)


def tracked() -> Iterator[str]:
    """List the tracked files that were written for this project, without vendored ones."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return (name for name in names.splitlines() if not name.startswith(NOT_OURS) and (ROOT / name).is_file())


def words(pattern: str) -> re.Pattern[str]:
    """Match the phrases of the list whose line begins with a pattern, as whole words over any white space."""
    phrases = re.findall(rf"^{pattern}$", LIST.read_text(), re.MULTILINE)
    choices = "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in phrases)
    return re.compile(rf"(?<![\w-])(?:{choices})(?![\w-])", re.IGNORECASE)


def test_no_page_contains_a_word_of_the_list() -> None:
    """Each finding names the page and the phrase; ``tests/words.txt`` says what to write instead."""
    avoided, allowed = words("([^#].*) -> .*"), words("allow: (.*)")
    assert [
        f"{name}: {phrase}"
        for name in tracked()
        if name.endswith(".md")
        for phrase in avoided.findall(allowed.sub(" ", NOT_PROSE.sub(" ", (ROOT / name).read_text())))
    ] == []


def test_spelling() -> None:
    """Codespell finds no misspelling, apart from the words that ``tests/spelling.txt`` allows."""
    names = [name for name in tracked() if Path(name).suffix in SPELT or name == "Makefile"]
    options = ["--ignore-words", "tests/spelling.txt", "--disable-colors"]
    command = [sys.executable, "-m", "codespell_lib", *options, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""
    assert done.returncode == 0
