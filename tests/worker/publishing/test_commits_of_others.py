"""What others push to the leaderboard's branch stops nothing, is corrected, and is reported once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.leaderboard.harness.git_server import add_file, bare, git
from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.fairness import commitments, events, receipts, signing
from worker.fairness.signing import Signer
from worker.fairness.verify import Worth, verdicts
from worker.fairness.verify.public import opened
from worker.organizer.doctor import examine
from worker.organizer.doctor.check import Level

HISTORY = "leaderboard/history.jsonl"
STRANGER = Signer(b"7" * 32)


def show(board: Path, path: str) -> str:
    """Return a file of the branch."""
    return git("show", f"main:{path}", at=board)


def spoil(board: Path, files: Mapping[str, bytes | None], clone: Path) -> str:
    """Push a commit with these files as somebody else; return its hash."""
    git("clone", "--quiet", "--branch=main", str(board), str(clone), at=board)
    for path, content in files.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).unlink() if content is None else (clone / path).write_bytes(content)
    git("add", "--all", at=clone)
    git("commit", "--quiet", "--message=mine", at=clone)
    git("push", "--quiet", "origin", "HEAD:main", at=clone)
    return git("rev-parse", "HEAD", at=clone)


def strangers_commitment(board: Path) -> bytes:
    """Return the public list with a commitment that another key has signed."""
    entries = json.loads(show(board, commitments.PATH))
    body = {**entries[-1], "sequence": len(entries) + 1, "commitment": "66" * 32, "key": STRANGER.public}
    del body["signature"]
    return json.dumps([*entries, {**body, "signature": STRANGER.sign(signing.COMMITMENT, body)}]).encode()


def chained_line(board: Path) -> bytes:
    """Return the log with one more line, which anyone can chain."""
    log = show(board, receipts.PATH).encode() + b"\n"
    last = json.loads(log.splitlines()[-1])
    body = {**last, "sequence": last["sequence"] + 1, "previous": last["head"]}
    del body["head"], body["signature"]
    line = {**body, "head": receipts.chained(body), "signature": "00" * 64}
    return log + json.dumps(line).encode() + b"\n"


VANDALISM: dict[str, Callable[[Path], Mapping[str, bytes | None]]] = {
    "garbage in the log": lambda board: {receipts.PATH: show(board, receipts.PATH).encode() + b"\ngarbage\n"},
    "a chained line in the log": lambda board: {receipts.PATH: chained_line(board)},
    "no text in the log": lambda _: {receipts.PATH: b"\xff\xfe"},
    "garbage in the commitments": lambda _: {commitments.PATH: b"[{}, 7]"},
    "no list of commitments": lambda _: {commitments.PATH: b"[" * 100_000},
    "a stranger's commitment": lambda board: {commitments.PATH: strangers_commitment(board)},
    "another history": lambda _: {HISTORY: b'{"phase":"dev"}\n'},
    "a longer history": lambda board: {HISTORY: show(board, HISTORY).encode() + b'\n{"phase":"dev"}\n'},
    "no history": lambda _: {HISTORY: None},
    "a reveal": lambda _: {"reveal/eval/reveal.json": b"{}"},
    "another page": lambda _: {"index.html": b"<p>Mallory won</p>"},
}


@pytest.fixture
def frequent(harness: Harness) -> Iterator[StepWorker]:
    """A worker whose log gets a line every half minute."""
    harness.configure({"leaderboard": {"receipts_every": 30}})
    with harness.worker() as worker:
        yield worker


@pytest.mark.parametrize("what", VANDALISM)
def test_commits_of_others_are_corrected_and_reported_once(
    harness: Harness, frequent: StepWorker, tmp_path: Path, what: str
) -> None:
    """The worker publishes over it; the organizer is told commit and author; nothing is contradicted."""
    worker = frequent
    harness.submit("A", embeddings(1))
    worker.drive()
    worker.wait(40)
    before = show(harness.board, HISTORY)
    commit = spoil(harness.board, VANDALISM[what](harness.board), tmp_path / "clone")
    found = examine(harness.path, clock=worker.clock.now, only=["board.history"])
    assert {one.level for one in found.outcomes} <= {Level.OK}
    harness.submit("B", embeddings(2))
    worker.drive(lambda: set(harness.teams()) == {"A", "B"})
    worker.drive()
    assert worker.alerts() == {"leaderboard.overwritten"}
    with worker.store.read() as tx:
        (alert,) = tx.alerts()
    assert f"commit {commit[:10]} by other@example.org" in alert.text
    assert show(harness.board, HISTORY).startswith(before)
    with opened(str(harness.board)) as repository:
        assert repository.commit is not None
        assert repository.commit.hash == git("rev-parse", "main", at=harness.board)
        assert [one for one in verdicts(repository) if one.worth is Worth.CONTRADICTED] == []
    worker.wait(40)
    with worker.store.read() as tx:
        assert [one.count for one in tx.alerts()] == [1]
    worker.clock.advance(90_000)
    worker.wait(40)
    assert worker.alerts() == set()


def test_an_unrelated_commit_raises_no_alert(harness: Harness, worker: StepWorker) -> None:
    """A license on top of our commits is neither vandalism nor a forced push."""
    harness.submit("A", embeddings(1))
    worker.drive()
    add_file(harness.board, "LICENSE", b"mine")
    harness.submit("B", embeddings(2))
    worker.drive()
    assert set(harness.teams()) == {"A", "B"}
    assert worker.alerts() == set()
    with worker.store.read() as tx:
        assert [one for one in tx.events() if one.fields["kind"] == events.CHALLENGE] == []


def test_text_around_the_board_becomes_the_challenges_with_the_next_push(
    harness: Harness, worker: StepWorker, tmp_path: Path
) -> None:
    """Until then, the commit is named; after it, the organizers' text is in a signed commit, without an alert."""
    harness.submit("A", embeddings(1))
    worker.drive()
    readme = b"# Ours\n\n" + show(harness.board, "README.md").encode() + b"\n"
    commit = spoil(harness.board, {"README.md": readme}, tmp_path / "clone")
    found = []
    for _ in range(2):
        with opened(str(harness.board)) as repository:
            found.append([one.sentence for one in verdicts(repository) if one.worth is Worth.CHANGED])
        with worker.store.write() as tx:
            tx.request_publish()
        worker.drive()
    assert [len(sentences) for sentences in found] == [1, 0]
    assert f"README.md: changed by commit {commit[:10]} by other@example.org." in found[0][0]
    assert show(harness.board, "README.md").startswith("# Ours")
    assert git("rev-parse", "main~1", at=harness.board) == commit
    assert worker.alerts() == set()


@pytest.mark.parametrize("how", ["back", "another branch", "gone"])
def test_a_forced_push_is_reported_and_registered(harness: Harness, worker: StepWorker, how: str) -> None:
    """There are an alert and a note in the register, and everything is pushed again, once."""
    harness.submit("A", embeddings(1))
    worker.drive()
    last = git("rev-parse", "main", at=harness.board)
    if how == "back":
        git("update-ref", "refs/heads/main", "main~1", at=harness.board)
    else:
        git("update-ref", "-d", "refs/heads/main", at=harness.board)
    if how == "another branch":
        add_file(harness.board, "README.md", b"# Mine\n")
    harness.submit("B", embeddings(2))
    worker.drive(lambda: worker.alerts() == {"leaderboard.rewritten"})
    harness.submit("C", embeddings(3))
    worker.drive()
    assert set(harness.teams()) == {"A", "B", "C"}
    with worker.store.read() as tx:
        (alert,) = tx.alerts()
        (noted,) = [one.fields for one in tx.events() if one.fields["kind"] == events.CHALLENGE]
    assert alert.count == 1
    assert last[:10] in alert.text
    assert (noted["what"], noted["commit"]) == ("rewritten", last)
    with opened(str(harness.board)) as repository:
        assert [one for one in verdicts(repository) if one.worth is Worth.CONTRADICTED] == []


def test_another_repository_is_no_forced_push(harness: Harness) -> None:
    """Moving the leaderboard to another repository does not rewrite it."""
    harness.submit("A", embeddings(1))
    assert harness.once().returncode == 0
    bare(harness.folder / "new.git")
    harness.configure({"leaderboard": {"repository": str(harness.folder / "new.git")}})
    harness.submit("B", embeddings(2))
    assert harness.once().returncode == 0
    assert git("log", "--format=%H", "main", at=harness.folder / "new.git")
    with closing(harness.store()) as store, store.read() as tx:
        assert tx.alerts() == []


def test_events_after_the_last_reveal_are_no_contradiction(harness: Harness) -> None:
    """Batches and the register continue after the end; later events need not be opened."""
    harness.configure({"leaderboard": {"receipts_every": 30}})
    with harness.worker() as worker:
        harness.submit("A", embeddings(1))
        worker.drive()
    for arguments in (
        ("board", "freeze", "--phase", "dev", "--now", "--yes", "--reason", "a test"),
        ("board", "freeze", "--phase", "eval", "--now", "--yes", "--reason", "a test"),
    ):
        assert harness.command(*arguments).returncode == 0
    done = harness.command("challenge", "reveal", "--yes", "--reason", "a test")
    assert done.returncode == 0, done.stderr
    with harness.worker() as worker:
        worker.clock.advance((datetime.now(UTC) - worker.clock.now()).total_seconds() + 100)
        worker.drive()
        git("update-ref", "refs/heads/main", "main~1", at=harness.board)
        for _ in range(2):
            worker.clock.advance(40)
            worker.drive()
        assert worker.alerts() == {"leaderboard.rewritten"}
    with opened(str(harness.board)) as repository:
        assert [one for one in verdicts(repository) if one.worth is Worth.CONTRADICTED] == []
