"""Before a phase opens, only hosts' submissions are scored; participants' files wait for the day. A phase that stays shut is told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings, today
from worker.challenge.configuration import load
from worker.state import State

pytestmark = pytest.mark.processes
clock = today

DAY = timedelta(days=1)
OPENING = DAY.total_seconds()


@pytest.fixture
def opening(harness: Harness) -> Harness:
    """A challenge whose phase dev opens tomorrow by the configuration."""
    assert harness.clock is not None
    harness.configure({"phases": {"dev": {"opens": harness.clock.now() + DAY}}})
    return harness


@pytest.fixture
def worker(opening: Harness) -> Iterator[StepWorker]:
    """A worker on it."""
    with opening.worker() as worker:
        yield worker


def day(harness: Harness) -> str:
    """Return the day of the opening, as it is shown."""
    return f"{load(harness.path).phases['dev'].opens:%Y-%m-%d %H:%M} UTC"


def listed(harness: Harness, pk: int) -> dict[str, object]:
    """Return what `submissions` shows of a submission."""
    rows = json.loads(harness.command("submissions", "--json").stdout)["submissions"]
    return next(row for row in rows if row["number"] == pk)


def test_the_answer_to_an_early_file_with_a_fault_is_left_to_do(opening: Harness, worker: StepWorker) -> None:
    """It does not wait for the opening."""
    pk = opening.evalai.begin_upload("A", "dev")
    worker.drive(lambda: pk in worker.states() and worker.row(pk).by_host is False)
    opening.evalai.send_again(pk)
    worker.drive(lambda: worker.state(pk) is State.REJECTED)
    assert not worker.daemon.waiting(worker.clock.now()).nothing


def test_a_file_that_comes_before_the_opening_is_scored_then(opening: Harness, worker: StepWorker) -> None:
    """It is fetched, waits, and says so; the hosts' own is answered at once, and the worker has nothing to do."""
    early = opening.submit("A", embeddings(0))
    own = opening.submit("host", embeddings(1), method_name="Baseline mean embeddings")
    later = opening.submit("A", embeddings(1), phase="eval")
    worker.drive(lambda: opening.status(own) == opening.status(later) == "finished" and not worker.step())
    worker.wait(60)
    assert (worker.state(early), opening.status(early)) == (State.FETCHED, "submitted")
    assert worker.daemon.waiting(worker.clock.now()).nothing
    reason = f"the opening of phase dev on {day(opening)}"
    assert listed(opening, early)["waits_for"] == reason
    assert f"1 for {reason}, the oldest is {early}" in opening.command("status", COLUMNS="200").stdout
    said = f"The phase opens on {day(opening)}"
    assert (said in opening.published("README.md"), "opens" in opening.published("index.html")) == (
        True,
        True,
    )
    worker.clock.advance(OPENING)
    worker.finish(early)
    assert "The phase opens on" not in opening.published("README.md") + opening.published("index.html")
    assert listed(opening, early)["waits_for"] is None


def test_files_that_wait_for_the_opening_keep_no_other_from_being_scored(
    opening: Harness, worker: StepWorker
) -> None:
    """However many come early: files for other phases and the hosts' own are fetched and answered."""
    early = [opening.submit(team, embeddings(0)) for team in "ABC"]
    worker.drive(lambda: all(worker.states().get(pk) == "fetched" for pk in early))
    own, other = opening.submit("host", embeddings(1)), opening.submit("D", embeddings(1), phase="eval")
    worker.drive(lambda: opening.status(own) == opening.status(other) == "finished")
    assert {opening.status(pk) for pk in early} == {"submitted"}


def test_an_earlier_opening_counts_from_the_reload_on(opening: Harness, worker: StepWorker) -> None:
    """The day is a setting, and no rule of the board."""
    early = opening.submit("A", embeddings(0))
    worker.drive(lambda: worker.states().get(early) == "fetched")
    opening.configure({"phases": {"dev": {"opens": None}}})
    worker.reload()
    worker.finish(early)


def test_a_phase_that_should_be_open_and_is_not_is_told(opening: Harness, worker: StepWorker) -> None:
    """Not before the day; and the alert ends when participants can submit."""
    opening.evalai.set_phase("dev", is_public=False)
    worker.drive()
    assert worker.alerts() == set()
    worker.advance(OPENING)
    assert worker.alerts() == {"phase.not_open"}
    assert f"opened on {day(opening)}" in opening.command("status").stdout
    opening.evalai.set_phase("dev", is_public=True, start_date=worker.clock.now() + DAY)
    worker.wait(30)
    assert worker.alerts() == {"phase.not_open"}
    worker.advance(OPENING)
    assert worker.alerts() == set()


def test_what_changes_at_evalai_is_told(opening: Harness, worker: StepWorker) -> None:
    """A pause, of the phase or of all, lasts as long as the alert; a moved end is told for a day, and published."""
    now, evalai = worker.clock.now(), opening.evalai
    opening.configure({"phases": {"dev": {"opens": None}}})
    evalai.set_phase("dev", end_date=now + 20 * DAY)
    worker.reload()
    opening.submit("A", embeddings(0))
    worker.drive()
    for pause in (evalai.set_challenge, lambda **changes: evalai.set_phase("dev", **changes)):
        pause(is_submission_paused=True)
        worker.wait(30)
        assert worker.alerts() == {"phase.paused"}
        pause(is_submission_paused=False)
        worker.wait(30)
        assert worker.alerts() == set()
    evalai.set_phase("dev", end_date=now + 30 * DAY)
    worker.wait(30)
    assert worker.alerts() == {"phase.end_moved"}
    terms = json.loads(opening.published("leaderboard/dev.json"))["terms"]
    assert terms["ends_at"].startswith(f"{now + 30 * DAY:%Y-%m-%dT%H:%M}")
    worker.advance(OPENING + 60)
    assert worker.alerts() == set()


def test_a_closed_phase_that_takes_submissions_is_told(opening: Harness, worker: StepWorker) -> None:
    """They do not count; the alert ends with the phase at EvalAI, comes back if somebody extends it, and names the command that reopens."""
    opening.configure({"phases": {"dev": {"opens": None}}})
    worker.reload()
    opening.submit("A", embeddings(0))
    worker.drive()
    opening.decide("board", "close", "--phase", "dev", "--now")
    worker.wait(30)
    assert worker.alerts() == {"phase.open"}
    opening.evalai.set_phase("dev", end_date=worker.clock.now())
    worker.wait(30)
    assert "phase.open" not in worker.alerts()
    opening.evalai.set_phase("dev", end_date=worker.clock.now() + DAY)
    worker.wait(30)
    assert worker.alerts() == {"phase.open", "phase.end_moved"}
    [reopen] = re.findall("`neuco-worker (.*)`", worker.alert("phase.open"))
    opening.decide(*reopen.split())
    worker.wait(30)
    assert worker.alerts() == {"phase.end_moved"}
