"""The register: everything that decides a board is an event, and every board can be recomputed from the events alone."""

from __future__ import annotations

import json

from leaderboard.git import without_signature
from leaderboard.ranking import board as boards
from tests.worker.harness.harness import Harness, StepWorker, embeddings, git
from worker.fairness import events
from worker.fairness.commit_signatures import signing_key
from worker.fairness.register import RegisterFold


def replayed(worker: StepWorker, phase: str = "dev") -> list[str]:
    """Compute every board of a phase from the register, each after the one before it."""
    with worker.store.read() as tx:
        made = [boards.from_json(text) for text in tx.boards(phase)]
        fold = RegisterFold().at(tx).phase(phase)
    again = []
    for number, board in enumerate(made):
        snapshot = fold.snapshot(board.made_at)
        assert snapshot is not None
        following = boards.next_board(snapshot, made[:number], at=board.made_at)
        assert following is not None
        again.append(boards.to_json(following))
    return again


def kept(worker: StepWorker, phase: str = "dev") -> list[str]:
    """Return a phase's boards as they are stored."""
    with worker.store.read() as tx:
        return list(tx.boards(phase))


def test_every_board_follows_from_the_register(harness: Harness, worker: StepWorker) -> None:
    """Whatever happens to submissions and rules, the events up to a board's time give the same board, byte for byte."""
    first = harness.submit("A", embeddings(1))
    harness.submit("B", embeddings(2))
    harness.submit("C", embeddings(3), is_public=False)
    worker.drive()
    harness.submit("A", embeddings(4))
    worker.drive()
    assert (
        harness.command("challenge", "disqualify", str(first), "--yes", "--reason", "a test").returncode == 0
    )
    worker.drive()
    harness.configure({"leaderboard": {"hidden_teams": ["B"]}})
    assert harness.command("challenge", "apply", "--yes", "--reason", "asked to leave").returncode == 0
    worker.drive()
    harness.submit("D", embeddings(5), phase="eval")
    harness.evalai.edit(first, is_flagged=True)
    worker.wait(60)
    assert replayed(worker) == kept(worker)
    assert replayed(worker, "eval") == kept(worker, "eval")
    assert len(kept(worker)) == 5
    with worker.store.read() as tx:
        decisions = [event.fields for event in tx.events("dev") if event.kind == events.PHASE]
        latest = tx.latest_event(events.SUBMISSION, f"submission {first}")
    assert [fields["reason"] for fields in decisions] == ["", "asked to leave"]
    assert decisions[-1]["rules"]["hidden_teams"] == ["B"]
    assert latest is not None
    assert latest.fields["removed"] == "a test"


def test_nothing_is_registered_twice(harness: Harness, worker: StepWorker) -> None:
    """A cycle without changes adds no event, and a submission keeps its pseudonym."""
    pk = harness.submit("A", embeddings(1))
    worker.drive()
    with worker.store.read() as tx:
        before = tx.events()
    with worker.store.write() as tx:
        tx.request_publish()
    worker.drive()
    with worker.store.read() as tx:
        assert tx.events() == before
    assert harness.command("challenge", "disqualify", str(pk), "--yes", "--reason", "a test").returncode == 0
    worker.drive()
    with worker.store.read() as tx:
        entries = {event.fields["entry"] for event in tx.events() if event.kind != events.PHASE}
    assert len(entries) == 1


def test_a_push_is_signed(harness: Harness, worker: StepWorker) -> None:
    """The commit carries a signature of the published key, and is made only if a file has changed."""
    harness.submit("A", embeddings(1))
    worker.drive()
    commit = git(harness.board, "cat-file", "commit", "main").encode()
    (key,) = {entry["key"] for entry in json.loads(git(harness.board, "show", "main:commitment.json"))}
    assert signing_key(*without_signature(commit)) == key
    commits = harness.commits()
    with worker.store.write() as tx:
        tx.request_publish()
    worker.drive()
    assert harness.commits() == commits
