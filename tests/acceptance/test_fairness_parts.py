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
from worker.fairness import parts
from worker.fairness.verify import verdicts
from worker.fairness.verify.public import PublicRepository, read_folder

pytestmark = pytest.mark.xdist_group("fairness")
FOLDER = "reveal/dev"
PARTS = {f"{FOLDER}/register-1.jsonl", f"{FOLDER}/boards-1.jsonl"}


def told(repository: PublicRepository) -> list[tuple[str, str, str]]:
    """Return every verdict."""
    return [(named(one), one.worth, one.sentence) for one in verdicts(repository)]


def test_a_reveal_names_its_parts(fair: Fair) -> None:
    """Events and boards are in JSON Lines files, which the reveal lists and the check accepts."""
    repository = read_folder(fair.public)
    document = repository.json(REVEAL)
    assert not document.keys() & {"register", "boards"}
    listed = {f"{FOLDER}/{part['name']}" for parts in document["parts"].values() for part in parts}
    assert listed == {
        path for path in repository.files if path.startswith(FOLDER) and path.endswith(".jsonl")
    }
    assert listed == PARTS
    assert lies(repository) == set()


@pytest.mark.parametrize("path", sorted(PARTS))
def test_a_missing_or_changed_part_is_a_contradiction(fair: Fair, path: str) -> None:
    """A missing or changed part is found."""
    repository = read_folder(fair.public)
    content = repository.files[path]
    for other in (None, content[: content.index(b"\n") + 1], content * 2):
        assert "dev: reveal" in lies(with_file(repository, path, other))


def test_many_parts_equal_one(fair: Fair) -> None:
    """A list that is split into several parts gives the same verdicts, and parts in the wrong order are found."""
    repository = read_folder(fair.public)
    document = revealed(repository)
    many = dict(repository.files)
    named = {}
    for name in ("register", "boards"):
        divided = parts.written(name, map(json.dumps, document.pop(name)), at_most=3000)
        named[name] = [part.to_json() for part, _ in divided]
        many |= {f"{FOLDER}/{part.name}": text.encode() for part, text in divided}
    assert min(len(named["register"]), len(named["boards"])) > 1
    many[REVEAL] = json.dumps({**document, "parts": named}).encode()
    again = PublicRepository(files=many)
    assert told(again) == told(repository)
    swapped = json.loads(json.dumps({**document, "parts": named}))
    swapped["parts"]["boards"].reverse()
    assert "dev: board" in lies(with_file(again, REVEAL, json.dumps(swapped).encode()))


def test_a_key_that_occurs_twice_is_a_contradiction(fair: Fair) -> None:
    """Readers of JSON differ in which of two equal keys they use."""
    repository = read_folder(fair.public)
    twice = repository.files[REVEAL].replace(b"{", b'{"key": "00", ', 1)
    assert "dev: reveal" in lies(with_file(repository, REVEAL, twice))
