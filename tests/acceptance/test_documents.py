"""The documents agree with the command line, can all be reached, and have one sentence a line."""

from __future__ import annotations

import importlib
import json
import re
import runpy
import subprocess
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import typer
from markdown_it import MarkdownIt

from leaderboard import PhaseRules
from scoring.inputs.faults import CATALOGUE
from worker import cli
from worker.answers.answers import finished
from worker.fairness.membership import ShownValue
from worker.fairness.receipts import Receipt
from worker.participant.commands import app as checker

ROOT = Path(__file__).parents[2]
SPAN = re.compile(r"^(```|~~~)(.*?)^\1|(?<!`)`([^`]+)`(?!`)", re.DOTALL | re.MULTILINE)
CALL = re.compile(
    r"(?:(?<=^)|(?<=[\s(])|(?<=bin/))(neuco-worker|neuco-check|sudo neuco-challenge \w+) ([a-z][^\n|;&#>]*)"
)
WIDTH = 160
ATOM = re.compile(r"(`+).+?\1|\$[^$]+\$|\]\([^)]*\)|\([^()]*\)|“[^”]*”")
"""Code, formulas, targets of links, parentheses and quotations, in which no sentence of the text ends."""
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|Eq|al|cf|vs|[A-Z])$")
SENTENCE_END = re.compile(r"[.!?][*_)”\"]* +(?=[*_(“\"\[]*[A-Z@])")
CHECKER = typer.main.get_command(checker)
OWN = {"adopt", "credential"}
"""Commands that neuco-challenge has and neuco-worker does not."""


def tracked() -> list[str]:
    """Return the project's Markdown documents."""
    command = ["git", "ls-files", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in listed if (ROOT / name).is_file()]


def documents() -> list[str]:
    """Return the documents, except those for tests and GitHub."""
    return [name for name in tracked() if not name.startswith(("tests/", ".github/"))]


def calls(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each call of our programs in a page's code, as the program and its arguments."""
    for match in SPAN.finditer(text):
        code = (match[2] or match[3]).replace("\\\n", " ")
        for call in CALL.finditer(code):
            yield call[1].split()[-2 if call[1].startswith("sudo") else 0], call[2].split()


def fault(program: str, words: list[str]) -> str | None:
    """Return which command or option in a call does not exist, or None if all exist."""
    command: Any = CHECKER if program == "neuco-check" else cli.program
    given = [word.strip("\"'`()[],.…") for word in words]
    if program == "neuco-challenge" and given[0] in OWN:
        return None
    while isinstance(command, typer.core.TyperGroup) and given and re.fullmatch(r"[a-z][a-z-]*", given[0]):
        name = given.pop(0)
        if name not in command.commands:
            return f"there is no command {name}"
        command = command.commands[name]
    options = {"-", "-h", "--help", "--"}
    for parameter in command.params:
        options |= {*parameter.opts, *parameter.secondary_opts}
    unknown = {word.partition("=")[0] for word in given if word.startswith("-")} - options
    return f"there is no option {', '.join(sorted(unknown))}" if unknown else None


@pytest.mark.processes
def test_every_command_and_option_that_a_document_names_exists() -> None:
    """The programs have every command and option that appears in the documents' code."""
    faults = {
        (name, program, *words): fault(program, words)
        for name in documents()
        for program, words in calls((ROOT / name).read_text(encoding="utf-8"))
    }
    assert {call: problem for call, problem in faults.items() if problem} == {}
    [(program, words)] = calls("```console\n$ sudo neuco-challenge earth board show --fase dev\n```")
    assert fault(program, words) == "there is no option --fase"


def test_the_pages_of_commands_and_keys_are_up_to_date() -> None:
    """The pages match commands and configuration; `python docs/reference.py` writes them again."""
    reference = runpy.run_path(str(ROOT / "docs" / "reference.py"))
    for page, text in (("cli", reference["commands"]()), ("configuration", reference["configuration"]())):
        is_current = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") == text
        assert is_current, f"Run `.venv/bin/python docs/reference.py`, which writes docs/{page}.md."
        assert len(text.split()) > 1000


def paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of paragraphs and list items of a page, but not of what ``docs/reference.py`` has written."""
    own = re.sub(r"<!-- keys -->.*<!-- end of keys -->", "", text, flags=re.DOTALL)
    for token in MarkdownIt("commonmark").enable("table").parse(own):
        if token.type == "paragraph_open":
            first, end = token.map or (0, 0)
            yield from own.splitlines()[first:end]


def has_two_sentences(line: str) -> bool:
    """Return whether a second sentence begins in a line; a lead in bold letters or code may come before the first."""
    text = ATOM.sub("@", re.sub(r"^[\s>]*(([-*+]|\d+\.) +)?(\*\*[^*]+\*\* |`[^`]+`\. )?", "", line))
    return any(not ABBREVIATION.search(text[: end.start()]) for end in SENTENCE_END.finditer(text))


@pytest.mark.parametrize("name", [name for name in tracked() if name != "docs/cli.md"])
def test_a_line_of_text_has_one_sentence(name: str) -> None:
    """And at most 160 characters, so that a change of a sentence is a change of its lines."""
    lines = paragraphs((ROOT / name).read_text(encoding="utf-8"))
    assert [line for line in lines if len(line) > WIDTH or has_two_sentences(line)] == []


@pytest.mark.processes
def test_every_page_can_be_reached() -> None:
    """Every page outside docs/ is linked, directly or through other pages, from the README or from a page in docs/."""
    reached, waiting = set(), [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        targets = re.findall(r"\]\(([^)#:]+\.md)(?:#[\w-]+)?\)", page.read_text(encoding="utf-8"))
        waiting += {(page.parent / target).resolve() for target in targets} - reached - set(waiting)
    assert {ROOT / name for name in documents()} - reached == set()


@pytest.mark.parametrize("name", tracked())
def test_every_name_of_code_in_a_document_exists(name: str) -> None:
    """A page that says ``module.py:Name`` names what that module has; a renamed one must be renamed on the page, too."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for module, path in re.findall(r"`((?:worker|leaderboard|scoring)/[\w/]+)\.py:([\w.]+)`", text):
        reduce(getattr, path.split("."), importlib.import_module(module.replace("/", ".")))


def test_the_page_for_participants_shows_an_answer_as_it_is() -> None:
    """Its stdout has the keys and the explanation of a real one, with a receipt, and its stderr the words of the catalogue."""
    page = (ROOT / "docs" / "participants.md").read_text(encoding="utf-8")
    (shown,), (refused,) = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("json", "text"))
    document = json.loads(shown)
    answer = finished(
        ShownValue(value=document["q_mean"]),
        rules=PhaseRules(),
        public=True,
        board=document["board"],
        notes=(),
        zarr_suffix_removed=False,
        receipt=document["receipt"],
    )
    assert json.loads(answer.stdout) == document
    assert document["receipt"].keys() == Receipt.model_fields.keys()
    _, *faults = refused.strip().splitlines()
    hints = {kind.hint for kind in CATALOGUE.values()}
    assert all(any(line.endswith(hint) for hint in hints) for line in faults)
