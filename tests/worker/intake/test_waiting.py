"""Nothing waits for two weeks without a word, and what EvalAI gave up is told once and can be brought back."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
import yaml

from tests.worker.harness.harness import Harness, StepWorker, embeddings, today
from worker.intake.waiting import PAUSED_LONG

pytestmark = pytest.mark.processes
clock = today

DAY = 86400.0


def test_what_waits_for_three_days_is_told_until_it_goes_on(harness: Harness, worker: StepWorker) -> None:
    """With each reason, how many wait for it, and the oldest; before that, `status` shows it."""
    document = yaml.safe_load(harness.path.read_text())
    harness.path.write_text(yaml.safe_dump({**document, "phases": {"dev": document["phases"]["dev"]}}))
    worker.reload()
    on_hold = harness.submit("C", embeddings(0), phase="eval")
    worker.drive(lambda: on_hold in worker.states() and worker.row(on_hold).hold is not None)
    harness.decide("challenge", "pause")
    waiting = [harness.submit(team, embeddings(number)) for number, team in enumerate("AB")]
    worker.drive(lambda: all(worker.states().get(pk) == "fetched" for pk in waiting))
    worker.wait(30)
    pause = f"2 for the end of the pause (`neuco-worker challenge pause --undo`), the oldest is {waiting[0]}"
    assert worker.alert("submission.waiting") == ""
    assert pause in harness.command("status", COLUMNS="250").stdout
    worker.clock.advance(3 * DAY)
    worker.wait(30)
    text = worker.alert("submission.waiting")
    assert "3 submissions have waited for more than three days" in text
    assert (
        f"1 for the organizers (on hold: facts.phase_unconfigured), the oldest is {on_hold}; {pause}." in text
    )
    harness.decide("challenge", "pause", "--undo")
    worker.finish(*waiting)
    worker.wait(30)
    assert "1 submission has waited" in worker.alert("submission.waiting")
    harness.path.write_text(yaml.safe_dump(document))
    worker.reload()
    worker.drive(lambda: harness.status(on_hold) == "finished")
    worker.drive(lambda: worker.alert("submission.waiting") == "")


def test_what_evalai_gave_up_is_told_once_and_comes_back(harness: Harness, worker: StepWorker) -> None:
    """One alert names all; `retry` brings one back, `follow` leaves one withdrawn, and then the alert ends."""
    worker.drive()
    harness.decide("challenge", "pause")
    first, second = (harness.submit(team, embeddings(number)) for number, team in enumerate("AB"))
    worker.drive(lambda: worker.states().get(first) == worker.states().get(second) == "fetched")
    worker.clock.advance(14 * DAY)
    assert harness.evalai.give_up() == [first, second]
    worker.wait(30)
    assert worker.alerts() == {"submission.given_up", "challenge.paused"}
    assert (
        f"2 submissions as cancelled that had waited for 14 days without an answer: {first}, {second}."
        in worker.alert("submission.given_up")
    )
    harness.decide("challenge", "pause", "--undo")
    harness.decide("challenge", "retry", str(first))
    worker.finish(first)
    worker.wait(30)
    assert f": {second}." in worker.alert("submission.given_up")
    harness.decide("challenge", "follow", str(second), "--yes", "--reason", "withdrawn")
    worker.wait(30)
    assert worker.alerts() == set()


def test_what_evalai_failed_is_told_once_and_answered_all_the_same(
    harness: Harness, worker: StepWorker
) -> None:
    """A time limit of EvalAI's queue ends nothing: one alert names all, and ends with the answers."""
    worker.drive()
    harness.decide("challenge", "pause")
    pks = [harness.submit(team, embeddings(number)) for number, team in enumerate("AB")]
    worker.drive(lambda: all(worker.states().get(pk) == "fetched" for pk in pks))
    worker.clock.advance(DAY / 12)
    assert harness.evalai.give_up(timedelta(hours=2), as_failed=True) == pks
    worker.wait(30)
    assert worker.alerts() == {"submission.timed_out", "challenge.paused"}
    assert "2 submissions as failed that had waited for hours" in worker.alert("submission.timed_out")
    harness.decide("challenge", "pause", "--undo")
    worker.drive(lambda: {harness.status(pk) for pk in pks} == {"finished"})
    worker.drive(lambda: worker.alerts() == set())
    assert set(harness.teams()) == {"A", "B"}


@pytest.mark.parametrize(
    ("days", "code"),
    [(1 / 8, "submission.timed_out"), (14, "submission.given_up")],
    ids=["failed", "cancelled"],
)
def test_what_evalai_gave_up_while_no_worker_ran_is_told_once(
    harness: Harness, worker: StepWorker, days: float, code: str
) -> None:
    """It is no answer by others and no withdrawal, although the worker sees it for the first time."""
    worker.drive()
    harness.decide("challenge", "pause")
    worker.stop()
    pks = [harness.submit(team, embeddings(number)) for number, team in enumerate("AB")]
    worker.clock.advance(days * DAY)
    assert harness.evalai.give_up(timedelta(hours=2), as_failed=days < 1) == pks
    worker.start()
    worker.wait(30)
    assert worker.alerts() == {code, "challenge.paused"}
    assert "2 submissions" in worker.alert(code)


def test_a_cancellation_by_the_team_is_no_giving_up(harness: Harness, worker: StepWorker) -> None:
    """Only what has waited for as long as EvalAI lets it wait may have been given up."""
    worker.drive()
    harness.decide("challenge", "pause")
    pk = harness.submit("A", embeddings(0))
    worker.drive(lambda: worker.states().get(pk) == "fetched")
    harness.evalai.edit(pk, status="cancelled")
    worker.wait(30)
    assert worker.alerts() == {"facts.changed"}


def test_a_pause_is_told_after_an_hour_until_it_ends(harness: Harness, worker: StepWorker) -> None:
    """`status` begins with it from the first moment; a worker that is paused again and again keeps the beginning."""
    worker.drive()
    began = worker.clock.now()
    for now in (began, began + timedelta(minutes=50)):
        with worker.store.write() as tx:
            tx.set_pause("pause", now=now)
    worker.wait(30)
    assert worker.alerts() == set()
    said = f"The challenge has been paused since {began:%Y-%m-%d %H:%M} UTC: "
    assert harness.command("status", COLUMNS="250").stdout.startswith(said)
    assert json.loads(harness.command("status", "--json").stdout)["paused"]["mode"] == "pause"
    worker.clock.advance(3600)
    worker.drive(lambda: worker.alerts() == {"challenge.paused"})
    assert worker.alert("challenge.paused").startswith(said)
    assert harness.command("status", COLUMNS="250").stdout.count(said) == 1
    harness.decide("challenge", "pause", "--undo")
    assert worker.alerts() == set()
    assert json.loads(harness.command("status", "--json").stdout)["paused"] is None


def test_a_pause_that_was_forgotten_after_an_upgrade_is_told_at_a_start(worker: StepWorker) -> None:
    """During `pause --finish`, `once` finds nothing to do, and ends with 0 before it has read the phases."""
    worker.drive()
    with worker.store.write() as tx:
        tx.set_pause("drain", now=worker.clock.now() - PAUSED_LONG)
    worker.restart()
    assert worker.alerts() == {"challenge.paused"}
