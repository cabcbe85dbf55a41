"""Nothing waits for two weeks without a word, and what EvalAI gave up is told once and can be brought back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.sandbox import ManualClock

DAY = 86400.0


@pytest.fixture
def clock() -> ManualClock:
    """The commands have the real time."""
    return ManualClock(datetime.now(UTC))


def told(worker: StepWorker, code: str) -> str:
    """Return the text of the alert with a code; empty if there is none."""
    with worker.store.read() as tx:
        return next((alert.text for alert in tx.alerts() if alert.code == code), "")


def held(harness: Harness, team: str) -> int:
    """Submit a file that is put on hold, because its message names another phase."""
    pk = harness.submit(team, embeddings(0))
    harness.evalai.edit(pk, challenge_phase=harness.evalai.phase_pk("eval"))
    return pk


def test_what_waits_for_three_days_is_told_until_it_goes_on(harness: Harness, worker: StepWorker) -> None:
    """With each reason, how many wait for it, and the oldest; before that, `status` shows it."""
    worker.drive()
    on_hold = held(harness, "C")
    worker.drive()
    harness.decide("challenge", "pause")
    waiting = [harness.submit(team, embeddings(number)) for number, team in enumerate("AB")]
    worker.drive(lambda: all(worker.states().get(pk) == "fetched" for pk in waiting))
    worker.wait(30)
    pause = f"2 for the end of the pause (`neuco-worker challenge pause --undo`), the oldest is {waiting[0]}"
    assert told(worker, "submission.waiting") == ""
    assert pause in harness.command("status", COLUMNS="250").stdout
    worker.clock.advance(3 * DAY)
    worker.wait(30)
    text = told(worker, "submission.waiting")
    assert "3 submissions have waited for more than three days" in text
    assert f"1 for the organizers (on hold: facts.phase_differs), the oldest is {on_hold}; {pause}." in text
    harness.decide("challenge", "pause", "--undo")
    worker.finish(*waiting)
    worker.wait(30)
    assert "1 submission has waited" in told(worker, "submission.waiting")
    harness.evalai.edit(on_hold, challenge_phase=harness.evalai.phase_pk("dev"))
    worker.drive(lambda: harness.status(on_hold) == "finished")
    worker.drive(lambda: told(worker, "submission.waiting") == "")


def test_what_evalai_gave_up_is_told_once_and_comes_back(harness: Harness, worker: StepWorker) -> None:
    """One alert names all; `retry` brings one back, `follow` leaves one withdrawn, and then the alert ends."""
    worker.drive()
    harness.decide("challenge", "pause")
    first, second = (harness.submit(team, embeddings(number)) for number, team in enumerate("AB"))
    worker.drive(lambda: worker.states().get(first) == worker.states().get(second) == "fetched")
    worker.clock.advance(14 * DAY)
    assert harness.evalai.give_up() == [first, second]
    worker.wait(30)
    assert worker.alerts() == {"submission.given_up"}
    assert (
        f"2 submissions as cancelled that had waited for 14 days without an answer: {first}, {second}."
        in told(worker, "submission.given_up")
    )
    harness.decide("challenge", "pause", "--undo")
    harness.decide("challenge", "retry", str(first))
    worker.finish(first)
    worker.wait(30)
    assert f": {second}." in told(worker, "submission.given_up")
    harness.decide("challenge", "follow", str(second), "--yes", "--reason", "withdrawn")
    worker.wait(30)
    assert worker.alerts() == set()


def test_a_cancellation_by_the_team_is_no_giving_up(harness: Harness, worker: StepWorker) -> None:
    """Only what has waited for as long as EvalAI lets it wait may have been given up."""
    worker.drive()
    harness.decide("challenge", "pause")
    pk = harness.submit("A", embeddings(0))
    worker.drive(lambda: worker.states().get(pk) == "fetched")
    harness.evalai.edit(pk, status="cancelled")
    worker.wait(30)
    assert worker.alerts() == {"facts.changed"}
