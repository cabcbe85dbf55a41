"""Texts for users are spelled correctly and contain none of the phrases in ``tests/words.txt``."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "words.txt"
NOT_OURS = ("tests/leaderboard/vendor/", "LICENSE")
SPELT = {".cff", ".css", ".html", ".j2", ".js", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}
"""Kinds of files whose spelling is checked."""

FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"<!--.*?-->|`[^`]*`|\]\([^)]*\)|^    [^\n]*$", re.DOTALL | re.MULTILINE)
MARKUP = re.compile(
    r"<(script|style)\b.*?</\1>|\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|<[^>]*>", re.DOTALL | re.IGNORECASE
)


def blank(match: re.Match[str]) -> str:
    """Replace text that is not prose but keep its line breaks, so that line numbers stay correct."""
    return "\n" * match[0].count("\n") or " "


def markdown(text: str) -> str:
    """Return the prose of a page without code, comments and addresses."""
    return CODE.sub(blank, FENCE.sub(blank, text))


def comments(text: str) -> str:
    """Return the comments of a YAML file, line by line."""
    return "\n".join(line.partition("#")[2] if "#" in line else "" for line in text.splitlines())


def template(text: str) -> str:
    """Return the words of a template or page, without markup."""
    return MARKUP.sub(blank, text)


def messages(text: str) -> str:
    """Return the strings of a module that have several words, each on its line; names, keys and docstrings are left out."""
    tree = ast.parse(text)
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    lines = [""] * len(text.splitlines())
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            silent |= {id(part) for part in node.values}
            value: object = "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and id(node) not in silent:
            value = node.value
        else:
            continue
        if isinstance(value, str) and " " in value:
            lines[node.lineno - 1] += " ".join(CODE.sub(" ", value).split()) + " ¶ "
    return "\n".join(lines)


READERS: dict[str, Callable[[str], str]] = {
    ".md": markdown,
    ".yaml": comments,
    ".yml": comments,
    ".html": template,
    ".j2": template,
    ".py": messages,
}


def tracked() -> Iterator[str]:
    """List the tracked files that were written for this project, without vendored ones."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return (name for name in names.splitlines() if not name.startswith(NOT_OURS) and (ROOT / name).is_file())


def read_by_users() -> Iterator[str]:
    """List the files that users read: all except the code of tests."""
    for name in tracked():
        if Path(name).suffix in READERS and not (name.startswith("tests/") and not name.endswith(".md")):
            yield name


def pattern(phrase: str) -> str:
    """Match a phrase as whole words, over any white space."""
    return r"(?<![\w-])" + r"\s+".join(map(re.escape, phrase.split())) + r"(?![\w-])"


def words() -> tuple[dict[str, str], list[str]]:
    """Read the list: what to write instead of each phrase, and the idioms that are allowed."""
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    allowed = [line.removeprefix("allow: ") for line in lines if line.startswith("allow: ")]
    pairs = [line.partition(" -> ") for line in lines if not line.startswith("allow: ")]
    return {phrase: better for phrase, _, better in pairs}, allowed


def found(prose: str) -> list[tuple[int, str]]:
    """Return the line and the advice for each listed phrase in a text."""
    better, allowed = words()
    for idiom in allowed:
        prose = re.sub(pattern(idiom), blank, prose, flags=re.IGNORECASE)
    return [
        (prose.count("\n", 0, match.start()) + 1, f"write {advice!r} instead of {phrase!r}")
        for phrase, advice in better.items()
        for match in re.finditer(pattern(phrase), prose, re.IGNORECASE)
    ]


@pytest.mark.parametrize("suffix", sorted(READERS))
def test_no_text_contains_a_word_of_the_list(suffix: str) -> None:
    """Each finding names the file, the line and the better words."""
    faults = [
        f"{name}:{line}: {advice}"
        for name in read_by_users()
        if Path(name).suffix == suffix
        for line, advice in found(READERS[suffix]((ROOT / name).read_text(encoding="utf-8")))
    ]
    assert faults == []


@pytest.mark.parametrize(
    ("suffix", "text", "lines"),
    [
        (".md", "One line.\nIt shall\nnot. `shall`\n    shall\n```\nshall\n```\nIt\nshall.\n", [2, 9]),
        (".yaml", "shall: 1  # it shall\n# tell\n", [1]),
        (".html", "<p class='shall'>It\nshall</p><script>shall</script>{{ shall }}", [2]),
        (".py", '"""It shall."""\nshall("shall")\nshall(f"You shall {shall}")\n', [3]),
    ],
)
def test_only_prose_is_searched(suffix: str, text: str, lines: list[int]) -> None:
    """Words in code, names and markup are ignored; a word in a sentence is found with its line."""
    assert [line for line, _ in found(READERS[suffix](text))] == lines


def test_the_list_is_sorted_and_says_what_is_better() -> None:
    """The phrases are sorted, none is both allowed and forbidden, and each has a replacement."""
    better, allowed = words()
    assert list(better) == sorted(better)
    assert all(better.values())
    assert not set(better) & set(allowed)


def test_spelling() -> None:
    """Codespell finds no misspelling, apart from the words that ``tests/spelling.txt`` allows."""
    names = [name for name in tracked() if Path(name).suffix in SPELT or name == "Makefile"]
    options = ["--ignore-words", "tests/spelling.txt", "--disable-colors"]
    command = [sys.executable, "-m", "codespell_lib", *options, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""
    assert done.returncode == 0
