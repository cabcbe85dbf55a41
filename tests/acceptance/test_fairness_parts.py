"""A reveal's long lists are split into parts that git servers accept."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.fair_challenge import (
    REVEAL,
    Fair,
    lies,
    named,
    revealed,
    with_file,
)
from worker.fairness import reveals
from worker.fairness.verify import verdicts
from worker.fairness.verify.public import PublicRepository, read_folder

pytestmark = pytest.mark.xdist_group("fairness")
FOLDER = "reveal/dev"
PART = f"{FOLDER}/register-1.jsonl"


def told(repository: PublicRepository) -> list[tuple[str, str, str]]:
    """Return every verdict."""
    return [(named(one), one.worth, one.sentence) for one in verdicts(repository)]


def test_a_missing_or_changed_part_is_a_contradiction(fair: Fair) -> None:
    """The register is in a file of its own; if it is missing or changed, that is found."""
    repository = read_folder(fair.public)
    content = repository.files[PART]
    assert lies(repository) == set()
    for other in (None, content[: content.index(b"\n") + 1], content * 2):
        assert "dev: reveal" in lies(with_file(repository, PART, other))


def test_many_parts_equal_one(fair: Fair) -> None:
    """A register that is split into several parts gives the same verdicts, and parts in the wrong order are found."""
    repository = read_folder(fair.public)
    document = revealed(repository)
    divided = reveals.written(map(json.dumps, document.pop("register")), at_most=3000)
    many = {**repository.files, **{f"{FOLDER}/{part.name}": text.encode() for part, text in divided}}
    listed = [part.to_json() for part, _ in divided]
    assert len(listed) > 1
    many[REVEAL] = json.dumps({**document, "parts": listed}).encode()
    again = PublicRepository(files=many)
    assert told(again) == told(repository)
    swapped = json.dumps({**document, "parts": listed[::-1]}).encode()
    assert "dev: reveal" in lies(with_file(again, REVEAL, swapped))


def test_a_key_that_occurs_twice_is_a_contradiction(fair: Fair) -> None:
    """Readers of JSON differ in which of two equal keys they use."""
    repository = read_folder(fair.public)
    twice = repository.files[REVEAL].replace(b"{", b'{"key": "00", ', 1)
    assert "dev: reveal" in lies(with_file(repository, REVEAL, twice))
