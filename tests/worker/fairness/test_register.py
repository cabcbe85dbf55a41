"""The register: what decides a board is an event when it is first seen and whenever it changes."""

from __future__ import annotations

import json

import pytest

from leaderboard.git import without_signature
from tests.worker.harness.harness import Harness, StepWorker, embeddings, git
from worker.challenge.signing import signing_key
from worker.fairness import events

pytestmark = pytest.mark.processes


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
        about = [event.fields for event in tx.events() if event.fields.get("submission") == pk]
    assert len({fields["entry"] for fields in about}) == 1
    assert [fields["removed"] for fields in about if fields["kind"] == events.SUBMISSION][-1] == "a test"


def test_a_reason_belongs_to_its_decision_alone(harness: Harness, worker: StepWorker) -> None:
    """What the worker has just read, such as another name of a team, and has not registered yet, does not get it."""
    renamed, other = harness.submit("A", embeddings(1)), harness.submit("B", embeddings(2))
    worker.drive()
    with worker.store.write() as tx:
        tx.name_team(worker.row(renamed).team_key or 0, "C")
    harness.decide("challenge", "disqualify", str(other), "--reason", "a test")
    with worker.store.read() as tx:
        changed = [event.fields for event in tx.events(kind=events.SUBMISSION) if event.fields["reason"]]
        names = [event.fields["team"] for event in tx.events(kind=events.SUBMISSION)]
    assert [(fields["submission"], fields["reason"]) for fields in changed] == [(other, "a test")]
    assert "C" in names
