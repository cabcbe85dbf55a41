"""What the documents say of the command line agrees with it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from worker.cli import app, command_docs
from worker.participant.application import app as checker

ROOT = Path(__file__).parents[2]
SPAN = re.compile(r"^(```|~~~)(.*?)^\1|(?<!`)`([^`]+)`(?!`)", re.DOTALL | re.MULTILINE)
CALL = re.compile(
    r"(?:(?<=^)|(?<=[\s(])|(?<=bin/))(neuco-worker|neuco-check|sudo neuco-challenge \w+) ([a-z][^\n|;&#>]*)"
)
ROOTS = {"neuco-worker": app, "neuco-check": checker}
OWN = {"adopt", "credential", "paths"}
"""Commands of neuco-challenge that are not neuco-worker's."""


def documents() -> list[str]:
    """List the documents of the project."""
    command = ["git", "ls-files", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [
        name for name in listed if (ROOT / name).is_file() and not name.startswith(("tests/", ".github/"))
    ]


def calls(text: str) -> Iterator[tuple[str, list[str]]]:
    """Find the calls of our programs in code: program and words."""
    for match in SPAN.finditer(text):
        code = (match[2] or match[3]).replace("\\\n", " ")
        for call in CALL.finditer(code):
            yield call[1].split()[-2 if call[1].startswith("sudo") else 0], call[2].split()


@cache
def group(program: str) -> Any:
    """Return a program's commands."""
    return typer.main.get_command(ROOTS.get(program, app))


def fault(program: str, words: list[str]) -> str | None:
    """Say what a call names that does not exist."""
    command, given = group(program), [word.strip("\"'`()[],.…") for word in words]
    if program == "neuco-challenge" and given[0] in OWN:
        return None
    while isinstance(command, typer.core.TyperGroup) and given and re.fullmatch(r"[a-z][a-z-]*", given[0]):
        name = given.pop(0)
        if name not in command.commands:
            return f"there is no command {name}"
        command = command.commands[name]
    known = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    unknown = (
        {word.partition("=")[0] for word in given if word.startswith("-")}
        - known
        - {"-", "-h", "--help", "--"}
    )
    return f"there is no option {', '.join(sorted(unknown))}" if unknown else None


def test_every_command_and_option_that_a_document_names_exists() -> None:
    """Nobody types a line of ours and hears that there is no such thing."""
    wrong = [
        f"{name}: {program} {' '.join(words)}: {found}"
        for name in documents()
        for program, words in calls((ROOT / name).read_text(encoding="utf-8"))
        if (found := fault(program, words)) is not None
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`neuco-worker board show --phase dev`", None),
        ("`neuco-worker banana`", "there is no command banana"),
        ("```console\n$ sudo neuco-challenge earth board show --fase dev\n```", "there is no option --fase"),
        ("`sudo neuco-challenge earth adopt folder`", None),
        ("`neuco-check validate FILE --challenge URL`", None),
        ("`neuco-check run`", "there is no command run"),
    ],
)
def test_a_wrong_line_is_found(text: str, expected: str | None) -> None:
    """Guard for the test above: it sees commands in a sentence and in a block."""
    [(program, words)] = calls(text)
    assert fault(program, words) == expected


def test_the_page_on_the_command_line_is_up_to_date() -> None:
    """Every command is there as it is; `python -m worker.cli.command_docs` writes the page."""
    assert command_docs.PLACE.read_text(encoding="utf-8") == command_docs.document()
    assert command_docs.main(["--check"]) == 0
    text = command_docs.document()
    for path in command_docs.commands():
        assert f"# neuco-worker {' '.join(path)}\n" in text


def test_every_page_can_be_reached() -> None:
    """A page outside docs/ is linked from the README, from docs/ or from a page that is."""
    reached, waiting = set(), [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        targets = re.findall(r"\]\(([^)#:]+\.md)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8"))
        waiting += {(page.parent / target).resolve() for target in targets} - reached - set(waiting)
    assert {ROOT / name for name in documents()} - reached == set()


def test_the_speed_that_the_readme_promises_was_measured() -> None:
    """The ratio to the training loop is the one of the command that a researcher runs."""
    (promised,) = re.findall(
        r"more than (\d+) times faster", (ROOT / "README.md").read_text(encoding="utf-8")
    )
    figures = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    (measured,) = re.findall(r"^\| .*`neuco-worker score`.* (\d+)× \|", figures, re.MULTILINE)
    assert int(measured) > int(promised)
