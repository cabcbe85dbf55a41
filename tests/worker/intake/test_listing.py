"""Unchanged submissions in a listing: recording them together has the same effect as processing each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from worker.evalai import Submission
from worker.intake import facts, reading
from worker.state import State, Store, SubmissionRow

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PHASES = {7: "dev", 8: "eval"}
ADDRESS = "https://media/submission_files/challenge_3/phase_7/submission_11/file.csv"
FACTS = Submission(
    pk=11,
    phase_pk=7,
    team_pk=5,
    team_name="team",
    created_by=31,
    status="submitted",
    submitted_at=NOW,
    input_file=f"{ADDRESS}?signature=1",
    method_name="method",
    is_public=True,
    is_flagged=False,
    is_baseline=False,
    ignored=False,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A database with one submission that waits to be fetched."""
    store = Store(f"sqlite:///{tmp_path}/worker.db")
    with store.write() as tx:
        tx.add(11, now=NOW)
        tx.note(11, message_phase=7)
        facts.take_facts(tx, FACTS, challenge=3, phases=PHASES, asked_at=NOW, now=NOW)
    yield store
    store.close()


def row(store: Store) -> SubmissionRow:
    """Return the submission."""
    with store.read() as tx:
        submission = tx.get(11)
    assert submission is not None
    return submission


@pytest.mark.parametrize("state", [State.ACKNOWLEDGED, State.FETCHED])
def test_recording_an_unchanged_submission_equals_processing_it(store: Store, state: State) -> None:
    """Either way, only the time and the fresh signature are recorded."""
    later = NOW + timedelta(minutes=5)
    again = replace(FACTS, input_file=f"{ADDRESS}?signature=2", status="running")
    with store.write() as tx:
        facts.take_facts(
            tx, replace(FACTS, status="running"), challenge=3, phases=PHASES, asked_at=NOW, now=NOW
        )
        if state is State.FETCHED:
            tx.move(11, State.ACKNOWLEDGED, state)
    before = row(store)
    assert facts.is_unchanged(before, again, challenge=3, phases=PHASES)
    with store.write() as tx:
        tx.seen({again.pk: str(again.input_file)}, asked_at=later)
    seen = row(store)
    assert seen == replace(before, read_at=later, input_file=again.input_file)
    with store.write() as tx:
        tx.note(11, read_at=before.read_at, input_file=before.input_file)
        facts.take_facts(tx, again, challenge=3, phases=PHASES, asked_at=later, now=later)
    assert row(store) == seen


@pytest.mark.parametrize(
    "change",
    [
        {"status": "cancelled"},
        {"status": "finished"},
        {"status": "running"},
        {"ignored": True},
        {"is_flagged": True},
        {"is_baseline": True},
        {"team_name": "another"},
        {"method_name": "another"},
        {"project_url": "https://git.example/code"},
        {"publication_url": "https://arxiv.org/abs/1"},
        {"phase_pk": 8},
        {"created_by": 32},
        {"is_public": False},
        {"input_file": ADDRESS.replace("file.csv", "other.csv")},
        {"input_file": None},
    ],
    ids=str,
)
def test_every_change_is_processed(store: Store, change: dict[str, Any]) -> None:
    """No difference that decides something, or that is shown, is skipped."""
    assert facts.is_unchanged(row(store), FACTS, challenge=3, phases=PHASES)
    assert not facts.is_unchanged(row(store), replace(FACTS, **change), challenge=3, phases=PHASES)


def test_an_address_that_comes_later_is_recorded(store: Store) -> None:
    """Until then, unchanged listings record that there is none."""
    without = replace(FACTS, pk=12, input_file=None)
    address = ADDRESS.replace("submission_11", "submission_12")
    with store.write() as tx:
        facts.take_facts(tx, without, challenge=3, phases=PHASES, asked_at=NOW, now=NOW)
        assert reading.news(tx, [without], challenge=3, phases=PHASES, asked_at=NOW) == []
        listed = replace(without, input_file=address)
        facts.take_facts(tx, listed, challenge=3, phases=PHASES, asked_at=NOW, now=NOW)
        assert tx.known(12).input_file == address


def test_held_and_unread_submissions_are_processed(store: Store) -> None:
    """A hold may have ended, and a reload may have named another phase."""
    before = row(store)
    for change in (
        {"hold": "facts.author_not_in_team"},
        {"read_at": None},
        {"state": State.SCORING},
        {"phase": None},
    ):
        assert not facts.is_unchanged(
            SubmissionRow(**{**asdict(before), **change}), FACTS, challenge=3, phases=PHASES
        )
    ended = SubmissionRow(**{**asdict(before), "state": State.CANCELLED, "hold": "facts.other_challenge"})
    assert facts.is_unchanged(ended, FACTS, challenge=3, phases=PHASES)
    assert not facts.is_unchanged(before, FACTS, challenge=3, phases={})
    elsewhere = SubmissionRow(**{**asdict(before), "message_phase": None})
    assert facts.is_unchanged(elsewhere, FACTS, challenge=3, phases=PHASES)
    assert not facts.is_unchanged(elsewhere, FACTS, challenge=4, phases=PHASES)
