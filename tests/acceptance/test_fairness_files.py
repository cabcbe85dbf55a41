"""A reveal publishes contents by a rule in the commitment, and verification recomputes the scores of all of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scoring.inputs.embeddings import Embeddings
from tests.acceptance.fair_challenge import (
    BASELINE,
    FILES,
    HOSTS,
    REVEAL,
    Fair,
    copy_of,
    lies,
    revealed,
    verify,
    with_file,
)
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import DIM, Harness, embeddings, git
from worker.fairness import disclosure
from worker.fairness.verify import Verdict, Worth, verdicts
from worker.fairness.verify.public import Contents, PublicRepository, contents_in, opened, read_folder
from worker.fairness.verify.recompute import published_verdicts
from worker.organizer.board_by_hand import freeze, publish_now
from worker.organizer.disclosure import disclose
from worker.organizer.reveal import reveal
from worker.organizer.session import open_session

pytestmark = pytest.mark.xdist_group("fairness")
LIST = "reveal/dev/files.json"


@pytest.fixture
def repository(fair: Fair) -> Iterator[PublicRepository]:
    """The opened repository."""
    with opened(str(fair.board)) as public:
        yield public


def worths(all_verdicts: Iterator[Verdict]) -> list[Worth]:
    """Return the worth of each verdict."""
    return [verdict.worth for verdict in all_verdicts]


def listed(public: PublicRepository) -> dict[str, Any]:
    """Return the list of published contents."""
    document: dict[str, Any] = json.loads(public.files[LIST])
    return document


def test_promised_contents_are_published_and_recomputed(fair: Fair, repository: PublicRepository) -> None:
    """The baseline and the first row are published on a branch of their own, in the hashed form, and no other contents are."""
    (verdict,) = published_verdicts(repository)
    named = [file["submission"] for file in listed(repository)["files"]]
    assert (verdict.worth, verdict.submissions) == (Worth.RECOMPUTED, tuple(sorted(named)))
    assert named == [fair.submissions["baseline"], fair.submissions["B"]]
    assert listed(repository)["left_out"] == []
    branch = git(fair.board, "ls-tree", "--name-only", "files").split()
    assert branch == sorted(f"{file['content']}.0" for file in listed(repository)["files"])
    assert git(fair.board, "rev-list", "--count", "files").strip() == "2"
    assert not git(fair.board, "log", "--format=%H", "main..files", "--", "README.md").strip()
    for file in listed(repository)["files"]:
        content = repository.contents.part(f"{file['content']}.0")
        assert content is not None
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (file["content"], file["bytes"])
        read = Embeddings.from_canonical(
            content, repository.files["reveal/dev/ids.txt"].decode().split(), DIM
        )
        assert read.content_hash == file["content"]
    assert [entry["publish_files"] for entry in json.loads(repository.files["commitment.json"])] == ["top:1"]
    assert not list((fair.harness.state / "published").iterdir())
    assert worths(iter(verdicts(repository))).count(Worth.CONTRADICTED) == 0


def test_the_command_computes_them_by_default(fair: Fair, tmp_path: Path) -> None:
    """The command recomputes from the repository, from a clone, and from a copy with a folder of files, but not from a copy alone."""
    clone, files = tmp_path / "clone", tmp_path / "files"
    copy_of(fair.board, clone, "-b", "main")
    copy_of(fair.board, files, "-b", "files")
    for arguments, recomputed in (
        ((fair.board,), 2),
        ((clone,), 2),
        ((fair.public,), 0),
        ((fair.public, "--files", str(files)), 2),
        ((clone, "--no-recompute"), 0),
    ):
        done = verify(fair, *arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        phases = json.loads(done.stdout)["phases"].values()
        assert [sum(phase[name] for phase in phases) for name in ("recomputed", "entries")] == [recomputed, 5]


def test_missing_contents_of_a_partial_copy_are_no_contradiction(
    fair: Fair, repository: PublicRepository
) -> None:
    """Scores are taken on trust if a partial copy lacks the contents. The repository itself must have them."""
    assert worths(published_verdicts(read_folder(fair.public))) == [Worth.BELIEVED] * 2
    assert worths(published_verdicts(repository, recompute=False)) == [Worth.BELIEVED]
    gone = replace(repository, contents=Contents(part=lambda _: None, complete=True, pushed=True))
    assert worths(published_verdicts(gone)) == [Worth.CONTRADICTED] * 2


def swapped(public: PublicRepository, content: bytes) -> PublicRepository:
    """Return the repository with another content in place of the baseline's."""
    name = listed(public)["files"][0]["parts"][0]["name"]
    part = public.contents.part
    return replace(
        public,
        contents=Contents(
            part=lambda asked: content if asked == name else part(asked), complete=True, pushed=True
        ),
    )


def named_otherwise(document: dict[str, Any], other: bytes) -> None:
    """Let the list name the content that replaces the baseline's."""
    document["files"][0]["parts"][0]["sha256"] = hashlib.sha256(other).hexdigest()


def with_another_submissions(document: dict[str, Any], _: bytes) -> None:
    """Let the list name the content of another submission."""
    document["files"][0] |= {name: document["files"][1][name] for name in ("content", "bytes", "parts")}


@pytest.mark.parametrize(
    ("is_swapped", "change", "words"),
    [
        (True, lambda *_: None, "has another hash"),
        (True, named_otherwise, "not the one in the register"),
        (False, with_another_submissions, "not the one in the register"),
    ],
)
def test_promised_contents_must_be_those_of_the_register(
    repository: PublicRepository,
    is_swapped: bool,
    change: Callable[[dict[str, Any], bytes], object],
    words: str,
) -> None:
    """A swapped content is contradicted, whatever the list says of it."""
    document = listed(repository)
    other = repository.contents.part(document["files"][1]["parts"][0]["name"])
    assert other is not None
    contents = swapped(repository, other).contents if is_swapped else repository.contents
    change(document, other)
    listing = with_file(repository, LIST, json.dumps(document).encode())
    first, second = published_verdicts(replace(listing, contents=contents))
    assert (first.worth, words in first.sentence) == (Worth.CONTRADICTED, True), first
    assert second.worth is Worth.RECOMPUTED


def test_a_stored_file_that_is_gone_does_not_keep_a_phase_hidden(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    """A reveal lists the missing file with the reason and publishes the others. Once the file is back, the next reveal publishes it too.

    If a daemon runs, a reveal only prepares the contents, and the daemon pushes them to their branch.
    """
    changes = {"evalai": {"poll_every": 1}, "fairness": {"publish_files": "all"}}
    with Harness(tmp_path, changes=changes, fork_server=fork_server) as harness:
        harness.evalai.add_team(HOSTS, ("host",))
        harness.submit(HOSTS, FILES["baseline"], method_name=BASELINE)
        harness.submit("A", embeddings(1))
        harness.decide("once")
        with closing(harness.store()) as store, store.read() as tx:
            (lost,) = [row for row in tx.submissions() if row.method == BASELINE]
        place = harness.state / "files" / str(lost.file_hash)[:2] / str(lost.file_hash)
        aside = place.rename(tmp_path / "aside")
        harness.decide("board", "freeze", "--phase", "dev", "--now")
        message = harness.decide("challenge", "reveal")
        assert f"submission {lost.pk} in phase dev is not published: its stored file is gone" in message
        with opened(str(harness.board)) as public:
            assert worths(published_verdicts(public)) == [Worth.BELIEVED, Worth.RECOMPUTED]
        aside.rename(place)
        process = harness.run()
        harness.until(lambda: "run.start" in harness.log)
        harness.decide("challenge", "reveal")
        process.terminate()
        assert process.wait() == 0
        assert git(harness.board, "rev-list", "--count", "files").strip() == "2"
        with opened(str(harness.board)) as public:
            assert worths(published_verdicts(public)) == [Worth.RECOMPUTED]
            assert harness.contradictions() == []


def test_contents_too_large_for_the_repository_are_left_out(
    tmp_path: Path, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list names each of them, and its scores are taken on trust."""
    with Harness(tmp_path, changes={"evalai": {"poll_every": 1}}, fork_server=fork_server) as harness:
        harness.evalai.add_team(HOSTS, ("host",))
        harness.submit(HOSTS, FILES["baseline"], method_name=BASELINE)
        harness.decide("once")
        monkeypatch.setattr(disclosure, "LIMIT_BYTES", 0)
        with open_session(harness.path) as session:
            freeze(session, "dev")
            contents = disclose(session, ["dev"], tell=print)
            reveal(session, ["dev"], labels=True, contents=contents)
            publish_now(session, tell=print)
        with opened(str(harness.board)) as public:
            (verdict,) = published_verdicts(public)
            assert verdict.worth is Worth.BELIEVED
            assert "would take more than 1 GB" in verdict.sentence


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [(None, [5]), ("baselines", [5]), ("top:1", [5, 3]), ("top:9", [5, 3, 4]), ("all", [5, 3, 4])],
)
def test_a_rule_selects_submissions(rule: str | None, wanted: list[int]) -> None:
    """Baselines are always selected, and come first; the rule gives the number of other rows."""
    assert disclosure.due(rule, [(3, False), (5, True), (4, False)]) == wanted


def test_a_large_content_is_divided_into_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No part is larger than ``PART_BYTES``, and the parts together are the content."""
    monkeypatch.setattr(disclosure, "PART_BYTES", 10)
    parts = disclosure.write_parts([b"0123456", memoryview(b"789abcdefghijklm")], "ff", tmp_path / "parts")
    assert [(part["name"], part["bytes"]) for part in parts] == [("ff.0", 10), ("ff.1", 10), ("ff.2", 3)]
    contents = contents_in(tmp_path / "parts")
    assert b"".join(contents.part(part["name"]) or b"" for part in parts) == b"0123456789abcdefghijklm"


def test_many_parts_equal_one(fair: Fair) -> None:
    """A register that is split into several parts gives the same verdicts, and parts in the wrong order are found."""
    repository = read_folder(fair.public)
    document = revealed(repository)
    divided = disclosure.register_parts(map(json.dumps, document.pop("register")), at_most=3000)
    many = {**repository.files, **{f"reveal/dev/{part.name}": text.encode() for part, text in divided}}
    listed_parts = [part.to_json() for part, _ in divided]
    assert len(listed_parts) > 1
    many[REVEAL] = json.dumps({**document, "parts": listed_parts}).encode()
    again = PublicRepository(files=many)
    assert list(verdicts(again)) == list(verdicts(repository))
    swapped = json.dumps({**document, "parts": listed_parts[::-1]}).encode()
    assert "dev: reveal" in lies(with_file(again, REVEAL, swapped))
