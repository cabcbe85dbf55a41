"""Bursts with EvalAI's own throttle: known submissions are started and answered first, and the queue gets the calls that are left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.worker.harness.harness import AHEAD, Harness, embeddings
from tests.worker.intake.test_calls import calls
from worker.sandbox import Fault, ManualClock

pytestmark = pytest.mark.processes

DEFAULTS = {
    "evalai": {"poll_every": 5, "reconcile_every": 600, "requests_per_minute": 50},
    "submission": {"answer_grid": 30},
    "leaderboard": {"publish_every": 60},
}
CALL_S, SCORING_S = 0.3, 1.0


@pytest.fixture
def throttled(tmp_path: Path, cells: Path) -> Iterator[Harness]:
    """A challenge with default settings and EvalAI's own throttle."""
    settings = {"throttle_per_minute": 60}
    with Harness(tmp_path, clock=ManualClock(), cells=cells, settings=settings, changes=DEFAULTS) as harness:
        yield harness


def taking_time(clock: ManualClock) -> Callable[[str], None]:
    """Return a checkpoint function under which a call to EvalAI takes 0.3 s and an evaluation a second."""

    def checkpoint(name: str) -> None:
        if name.startswith("before call") and name != "before call fetch":
            clock.advance(CALL_S)
        elif name == "before child evaluate":
            clock.advance(SCORING_S)

    return checkpoint


def test_a_burst_is_processed_without_a_gap(throttled: Harness) -> None:
    """Eighteen submissions start one after another; they are answered within 45 s and one grid step, their messages soon deleted."""
    harness, clock = throttled, throttled.clock
    assert clock is not None
    with harness.worker(checkpoint=taking_time(clock)) as worker:
        worker.drive()
        since, sent_at = len(harness.evalai.journal), clock.now()
        pks = [harness.submit(f"team {n}", embeddings(n % AHEAD)) for n in range(18)]
        worker.drive(lambda: all(harness.status(pk) == "finished" for pk in pks))
        answered_at, made = clock.now(), calls(harness, since)
        begun = [entry.at for entry in made if entry.method == "PATCH"]
        assert len(begun) == len(pks)
        assert max(later - earlier for earlier, later in pairwise(begun)) <= timedelta(seconds=25)
        assert answered_at - sent_at <= timedelta(seconds=45 + 30)
        assert len(made) <= 4 * len(pks)
        worker.drive(lambda: harness.evalai.queue_length() == 0)
        assert clock.now() - answered_at <= timedelta(seconds=65)
        assert not [entry for entry in calls(harness, since) if entry.status == 429]


def test_one_submission_in_an_idle_challenge_costs_few_calls(throttled: Harness) -> None:
    """Besides polls: its facts, three times, the hosts, its author, a regular listing, the message's deletion, running, the answer."""
    harness, clock = throttled, throttled.clock
    assert clock is not None
    with harness.worker(checkpoint=taking_time(clock)) as worker:
        harness.submit("A", embeddings(0))
        worker.drive()
        since = len(harness.evalai.journal)
        pk = harness.submit("A", embeddings(1))
        worker.drive(lambda: pk in worker.states() and worker.row(pk).answer_files is not None)
        worker.drive(lambda: harness.evalai.queue_length() == 0)
        made = calls(harness, since)
        assert sorted(entry.method for entry in made if entry.method != "GET") == ["PATCH", "POST", "PUT"]
        assert len([entry for entry in made if entry.method == "GET" and "/queues/" not in entry.path]) <= 6


def test_an_idle_worker_finds_uploads_soon_within_its_budget(throttled: Harness) -> None:
    """It makes at most 17 calls a minute, reads a message within its interval, and finds an upload without a message within 30 s."""
    harness, clock = throttled, throttled.clock
    assert clock is not None
    with harness.worker(checkpoint=taking_time(clock)) as worker:
        worker.tick_s = 1.0

        def found_within(pk: int, seconds: float) -> bool:
            sent_at = clock.now()
            worker.drive(lambda: pk in worker.states() and worker.row(pk).team_key is not None)
            return clock.now() - sent_at <= timedelta(seconds=seconds + 4 * CALL_S + worker.tick_s)

        worker.drive()
        worker.wait(60)
        assert found_within(harness.submit("A", embeddings(0)), 5)
        worker.drive()
        worker.wait(60)
        since = len(harness.evalai.journal)
        worker.wait(600)
        times = [entry.at for entry in calls(harness, since)]
        assert max(sum(at <= other < at + timedelta(minutes=1) for other in times) for at in times) <= 17
        assert found_within(harness.evalai.begin_upload("A", "dev"), 30)


def test_a_small_budget_begins_what_waits(throttled: Harness) -> None:
    """A submission is read only if `running` can follow: if calls become free one by one, the reading would be too old each time."""
    harness, per_minute = throttled, 6
    harness.configure({"evalai": {"requests_per_minute": per_minute}})
    with harness.worker() as worker:
        worker.drive()
        worker.clock.advance(61)
        apart = timedelta(seconds=60 / per_minute)
        for number in range(per_minute, 0, -1):
            worker.daemon.budget.spend(worker.clock.now() - number * apart + timedelta(seconds=1))
        pk = harness.submit("A", embeddings(1))
        begun_at = worker.clock.now()
        worker.drive(lambda: harness.status(pk) == "running")
        assert worker.clock.now() - begun_at <= timedelta(minutes=5)


def test_an_answer_uses_the_reserve_while_its_author_is_unknown(throttled: Harness) -> None:
    """The author decides the board, not the answer: when the other calls are used up, the answer still leaves."""
    harness = throttled
    with harness.worker() as worker:
        worker.drive()
        pk = harness.submit("A", embeddings(1))
        worker.drive(lambda: worker.states().get(pk) == "scored" and not worker.busy)
        with worker.store.write() as tx:
            tx.note(pk, by_host=None)
        worker.clock.advance(61)  # so that no call made until now counts any more
        budget = worker.daemon.budget
        while budget.allows(worker.clock.now()):
            budget.spend(worker.clock.now())
        worker.drive(lambda: harness.status(pk) == "finished")
        assert budget.left(worker.clock.now()) < budget.reserve


def test_where_listings_fail_each_is_read_by_its_own_address(throttled: Harness) -> None:
    """If EvalAI fails only on listings, known submissions are still started and answered."""
    harness, spoilt = throttled, False

    def spoil(where: str) -> None:
        if spoilt and where in ("before call listing", "before call reconcile"):
            harness.evalai.faults.force(Fault.ERROR_BEFORE)

    with harness.worker(checkpoint=spoil) as worker:
        worker.drive()
        pks = [harness.submit(team, embeddings(seed)) for seed, team in enumerate("ABC")]
        worker.drive(lambda: set(pks) <= set(worker.states()))
        spoilt, begun_at = True, worker.clock.now()
        worker.drive(lambda: all(harness.status(pk) == "finished" for pk in pks))
        assert worker.clock.now() - begun_at <= timedelta(minutes=3)
