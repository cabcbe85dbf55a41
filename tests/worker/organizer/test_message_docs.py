"""The page of messages has every code in the software, and no other."""

from __future__ import annotations

import re

import pytest

from scoring.inputs.faults import CATALOGUE
from worker.organizer import message_docs
from worker.organizer.doctor import CHECKS
from worker.organizer.message_docs import PLACE, document
from worker.organizer.message_search import DOCTOR, FILE, PACKAGES, ROOT, Message, messages
from worker.organizer.message_values import CLOSE, OPEN

WRITTEN = re.compile(r'(?:\bcode|event_key|usual_code)\s*=\s*"([a-z_]+\.[a-z_]+)"')
BY_NAME = {f"{OPEN}name{CLOSE}.stderr", f"evaluate.{OPEN}outcome{CLOSE}"}
"""Codes of log lines that are made of a child's name or of how an attempt ended."""


@pytest.fixture(scope="module")
def found() -> tuple[Message, ...]:
    """All messages in the code."""
    return messages()


@pytest.fixture(scope="module")
def source() -> str:
    """All code."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def test_the_page_is_up_to_date() -> None:
    """After a change of a message, generate the page again: ``python -m worker.organizer.message_docs``."""
    assert PLACE.read_text(encoding="utf-8") == document()
    assert message_docs.main(["--check"]) == 0


def test_every_code_is_on_the_page(source: str) -> None:
    """Every code that is a literal where a message is raised is on the page."""
    page = PLACE.read_text(encoding="utf-8")
    assert [code for code in sorted(set(WRITTEN.findall(source))) if f"`{code}`" not in page] == []


def test_every_code_on_the_page_is_in_the_code(found: tuple[Message, ...], source: str) -> None:
    """No code of an earlier version stays on the page."""
    assert {message.code for message in found if f'"{message.code}"' not in source} == BY_NAME


def test_every_problem_with_a_file_has_a_cure(found: tuple[Message, ...]) -> None:
    """A participant is always told what to do."""
    told = [message for message in found if message.section == FILE]
    assert {message.code for message in told} >= set(CATALOGUE)
    assert [message for message in told if not message.cure] == []


def test_findings_are_of_checks(found: tuple[Message, ...]) -> None:
    """A finding is listed under the id of the check that makes it."""
    assert {message.code for message in found if message.section == DOCTOR} <= {check.id for check in CHECKS}


def test_values_are_shown_by_what_they_are() -> None:
    """In italics in prose and in capitals in code; no private-use character and no raw variable name is left."""
    page = document()
    assert not {OPEN, CLOSE} & set(page)
    assert "| `task.exists` | *folder* exists already. | Choose another folder. |" in page
    assert "| `columns.missing` | *N* numbered columns are missing. | Add them. |" in page
    assert "`NAME.stderr`" in page
    assert "There is no engine *engine*." in page  # not its default, which there is
    assert "The Ray cluster at *address* cannot be reached" in page
    assert re.findall(r"strerror|STRERROR|\*\w+_\w+\*|\*__", page) == []


def test_a_general_sentence_covers_special_cases() -> None:
    """The page needs no row for each key with the same sentence."""
    general, special = f"{OPEN}key{CLOSE} is empty.", "challenge.secret is empty."
    assert message_docs._merged([special, general]) == [general]
    assert message_docs._merged([f"{key} is wrong." for key in "abcd"]) == ["… is wrong."]
    assert message_docs._merged(["a is wrong.", "b is wrong."]) == ["a is wrong.", "b is wrong."]
