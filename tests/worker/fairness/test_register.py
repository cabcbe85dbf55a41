"""The register: everything that decides a board is an event, and every board can be recomputed from the events alone."""

from __future__ import annotations

import json

from leaderboard.git import without_signature
from leaderboard.ranking import board as boards
from tests.worker.harness.harness import Harness, StepWorker, embeddings, git
from worker.fairness import events
from worker.fairness.register import RegisterFold
from worker.fairness.signing import signing_key


def replayed(worker: StepWorker, phase: str) -> int:
    """Compute every board of a phase from the register, each after the one before it, as it is stored; return their number."""
    with worker.store.read() as tx:
        stored = list(tx.boards(phase))
        fold = RegisterFold().at(tx).phase(phase)
    made = [boards.from_json(text) for text in stored]
    for number, board in enumerate(made):
        snapshot = fold.snapshot(board.made_at)
        assert snapshot is not None
        following = boards.next_board(snapshot, made[:number], at=board.made_at)
        assert following is not None
        assert boards.to_json(following) == stored[number]
    return len(made)


def test_every_board_follows_from_the_register(harness: Harness, worker: StepWorker) -> None:
    """Whatever happens to submissions and rules, the events up to a board's time give the same board, byte for byte."""
    first = harness.submit("A", embeddings(1))
    harness.submit("B", embeddings(2))
    harness.submit("C", embeddings(3), is_public=False)
    worker.drive()
    harness.submit("A", embeddings(4))
    worker.drive()
    harness.decide("challenge", "disqualify", str(first), "--reason", "a test")
    worker.drive()
    harness.configure({"leaderboard": {"hidden_teams": ["B"]}})
    harness.decide("challenge", "apply", "--yes", "--reason", "asked to leave")
    worker.drive()
    harness.submit("D", embeddings(5), phase="eval")
    harness.evalai.edit(first, is_flagged=True)
    worker.advance(60)
    assert (replayed(worker, "dev"), replayed(worker, "eval")) == (5, 1)
    with worker.store.read() as tx:
        rules = [event.fields for event in tx.events("dev") if event.kind == events.PHASE]
        latest = tx.latest_event(events.SUBMISSION, f"submission {first}")
    assert [fields["reason"] for fields in rules] == ["", "asked to leave"]
    assert rules[-1]["rules"]["hidden_teams"] == ["B"]
    assert latest is not None
    assert latest.fields["removed"] == "a test"


def test_only_changes_are_registered_and_pushed(harness: Harness, worker: StepWorker) -> None:
    """Failures, resends, a restart and a cycle without changes add neither an event nor a commit; a push is signed."""
    pk = harness.submit("A", embeddings(1))
    worker.drive()
    commit = git(harness.board, "cat-file", "commit", "main")
    (key,) = {entry["key"] for entry in json.loads(harness.published("commitment.json"))}
    assert signing_key(*without_signature(commit.encode())) == key
    with worker.store.read() as tx:
        before = list(tx.events())
    harness.evalai.send_again(pk)
    worker.drive()
    worker.restart()
    with worker.store.write() as tx:
        tx.request_publish()
    worker.drive()
    with worker.store.read() as tx:
        assert list(tx.events()) == before
    harness.submit("B", b"id,0\nx,1\n")
    worker.drive()
    assert git(harness.board, "cat-file", "commit", "main") == commit
    harness.decide("challenge", "disqualify", str(pk), "--reason", "a test")
    worker.drive()
    with worker.store.read() as tx:
        entries = {event.fields["entry"] for event in tx.events() if event.fields.get("submission") == pk}
    assert len(entries) == 1
