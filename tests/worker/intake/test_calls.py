"""Failing calls to EvalAI: faults before and after the effect, refusals, throttling, tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path

import pytest

from tests.worker.harness.gate import Gate
from tests.worker.harness.harness import NEW, Harness, StepWorker, embeddings
from worker.answers.answers import Answer
from worker.sandbox import Fault, FaultPlan, JournalEntry, ManualClock, PhaseSettings
from worker.state import ATTESTED, Deposed, State

pytestmark = pytest.mark.processes


def calls(harness: Harness, since: int = 0) -> list[JournalEntry]:
    """Return the API calls after a line of the journal."""
    return [
        entry
        for entry in harness.evalai.journal.requests()
        if entry.origin == "api" and entry.number >= since
    ]


def until_scored(worker: StepWorker, pk: int) -> None:
    """Drive until only the answer is missing; with an answer grid it waits there."""
    worker.drive(lambda: pk in worker.states() and worker.state(pk) in (State.SCORED, State.REJECTED))


def until_read_again(worker: StepWorker, pk: int) -> None:
    """Drive until a submission was read shortly before its answer leaves on the grid."""
    until_scored(worker, pk)
    worker.clock.advance(27)
    worker.drive(lambda: not worker.step() and not worker.busy and worker.row(pk).read_at is not None)


@pytest.fixture
def waiting(harness: Harness) -> Harness:
    """A challenge whose answers wait for a grid, so that a test can make the call that posts one fail."""
    harness.configure({"submission": {"answer_grid": 30}})
    return harness


@pytest.mark.parametrize("fault", [Fault.ERROR_AFTER, Fault.TRUNCATED])
def test_a_post_that_may_have_arrived_is_read_again_and_repeated(waiting: Harness, fault: Fault) -> None:
    """After a failed call the submission is read, then the same PUT is sent: one distinct result."""
    with waiting.worker() as worker:
        pk = waiting.submit("A", embeddings(1))
        until_read_again(worker, pk)
        since = len(waiting.evalai.journal)
        waiting.evalai.set_faults(FaultPlan(probability=1.0, kinds=(fault,)))
        worker.drive(lambda: bool(waiting.posts(pk)))
        waiting.evalai.set_faults(FaultPlan())
        worker.drive()
        posts = waiting.posts(pk)
        assert len(posts) >= 2
        assert all(post == posts[0] for post in posts)
        assert worker.state(pk) is State.PUBLISHED
        ways = [entry.method for entry in calls(waiting, since) if entry.method in ("PUT", "GET")]
        first = ways.index("PUT")
        again = ways.index("PUT", first + 1)
        assert "GET" in ways[first:again]
        assert waiting.teams() == ["A"]


@pytest.mark.parametrize("changed", [True, False])
def test_an_answer_that_a_command_has_just_changed_is_not_sent(waiting: Harness, changed: bool) -> None:
    """Between the reading in which it is due and the call, a command may give the submission another one."""
    with waiting.worker() as worker:
        pk = waiting.submit("A", embeddings(1))
        until_read_again(worker, pk)
        with worker.store.read() as tx:
            (start,) = worker.daemon.intake.starts(tx, tx.known(pk).due_at)
        if changed:
            answer = Answer.from_json(worker.row(pk).answer or "")
            other = replace(answer, stdout=answer.stdout.replace('"notes": []', '"notes": ["Another."]'))
            with worker.store.write() as tx:
                tx.note(pk, answer=other.to_json())
        start()
        assert worker.busy is not changed
        worker.finish(pk)
        assert [json.loads(post["stdout"])["notes"] for post in waiting.posts(pk)] == [["Another."] * changed]


@pytest.mark.parametrize("code", ["evalai.rejected", "evalai.unreachable"])
def test_an_answer_that_evalai_does_not_take_is_kept_reported_once_and_tried_again(
    harness: Harness, code: str
) -> None:
    """A host has renamed the metric, or EvalAI fails on this PUT only: the alert names the submission, and stays until the answer left."""
    metrics = {True: ("mean_q",), False: ("q_mean",)}
    broken, phase = True, harness.evalai.world.phase("dev")

    def spoil(where: str) -> None:
        if where == "before call post" and code == "evalai.rejected":
            phase.settings = replace(phase.settings, metrics=metrics[broken])
        elif where == "before call post" and broken:
            harness.evalai.faults.force(Fault.ERROR_BEFORE)

    with harness.worker(checkpoint=spoil) as worker:
        pk = harness.submit("A", embeddings(1))
        worker.drive(lambda: bool(worker.alerts()))
        with worker.store.read() as tx:
            (alert,) = tx.alerts()
        assert (alert.key, alert.code) == (f"post:{pk}", code)
        tries = len(harness.evalai.journal.requests("PUT"))
        worker.wait(61)
        with worker.store.read() as tx:
            assert [(later.key, later.raised_at) for later in tx.alerts()] == [(alert.key, alert.raised_at)]
        assert len(harness.evalai.journal.requests("PUT")) > tries
        assert (worker.state(pk), harness.status(pk)) == (State.SCORED, "running")
        broken = False
        worker.finish(pk)
        assert worker.alerts() == set()


@contextmanager
def after_a_failed_reading(
    harness: Harness, *, early_s: float | None = None
) -> Iterator[tuple[StepWorker, int, datetime]]:
    """Yield a worker, a submission whose reading has failed while its answer waits for the grid, and the answer's moment.

    The reading was that of one that the whole listing lacked; shortly before the moment, it was the one that each answer needs.
    """
    harness.configure({"submission": {"answer_grid": 300}})
    failing = True

    def spoil(where: str) -> None:
        if where == "before call read" and failing:
            harness.evalai.faults.force(Fault.ERROR_BEFORE)

    with harness.worker(checkpoint=spoil) as worker:
        pk = harness.submit("A", embeddings(1))
        until_scored(worker, pk)
        moment = worker.row(pk).due_at
        if early_s is not None:
            worker.tick_s = 1.0
            worker.clock.advance((moment - worker.clock.now()).total_seconds() - early_s)
        if early_s is None or early_s > 100:
            worker.daemon.intake.session.unlisted.append(pk)
        worker.drive(lambda: worker.failed(pk) > 0)
        failing = False
        yield worker, pk, moment


@pytest.mark.parametrize("early_s", [200, 4])
def test_a_reading_that_fails_lets_no_answer_leave_early(harness: Harness, early_s: float) -> None:
    """Neither long before the moment, of a submission that the whole listing lacks, nor shortly before, as each answer needs one."""
    with after_a_failed_reading(harness, early_s=early_s) as (worker, pk, moment):
        worker.drive(lambda: bool(harness.posts(pk)))
        assert 0 <= (worker.clock.now() - moment).total_seconds() < 3


@pytest.mark.parametrize("released_by", ["restart", "retry"])
def test_a_try_at_once_lets_no_answer_leave_early(harness: Harness, released_by: str) -> None:
    """A reading has failed before the moment: a restart, and the organizer's `retry`, end no wait for the answer grid."""
    with after_a_failed_reading(harness) as (worker, pk, moment):
        if released_by == "retry":
            assert "only waits" in harness.decide("challenge", "retry", str(pk))
        else:
            worker.restart()
        assert worker.row(pk).due_at == moment
        worker.wait((moment - worker.clock.now()).total_seconds() - 10)
        assert harness.posts(pk) == []
        worker.wait(20)
        assert len(harness.posts(pk)) == 1


def test_that_evalai_lacks_a_submission_ends_a_reading_that_failed(harness: Harness) -> None:
    """It is an answer, too: the alert ends, and `submissions` tells of no next try."""
    with harness.worker() as worker:
        pk = harness.submit("A", embeddings(1))
        worker.finish(pk)
        harness.evalai.edit(pk, phase="elsewhere")
        with worker.store.write() as tx:  # as after failed readings
            tx.note(pk, read_at=None, tries=3, not_before=worker.clock.now())
            tx.raise_alert(f"read:{pk}", "evalai.unreachable", "It fails.", now=worker.clock.now())
        worker.drive(lambda: worker.row(pk).read_at is not None)
        assert (worker.failed(pk), worker.alerts()) == (0, {"facts.changed"})


def test_a_reading_after_the_answer_that_failed_is_no_try_that_goes_on(harness: Harness) -> None:
    """Once it has succeeded, `submissions` tells of no failure."""
    failed = []

    def spoil(where: str) -> None:
        if where == "before call read" and harness.evalai.journal.requests("PUT") and not failed:
            failed.append(where)
            harness.evalai.faults.force(Fault.ERROR_BEFORE)

    with harness.worker(checkpoint=spoil) as worker:
        pk = harness.submit("A", b"nothing")
        worker.drive()
        assert (worker.state(pk), len(failed)) == (State.FAILED, 1)
        assert (worker.row(pk).tries, worker.row(pk).not_before) == (0, None)


def test_an_answer_to_what_evalai_lacks_is_sent_less_and_less(harness: Harness, worker: StepWorker) -> None:
    """Each try reads the submission first, and finds that EvalAI does not have it: this ends no back-off."""
    pk = harness.submit("A", embeddings(1))
    worker.finish(pk)
    harness.decide("challenge", "retry", str(pk))
    del harness.evalai.world.submissions[pk]
    worker.tick_s = 1.0
    worker.wait(120)
    assert 5 < sum(entry.status == 404 for entry in harness.evalai.journal.requests("PUT")) < 10


def test_retry_after_is_obeyed_to_the_second(tmp_path: Path, cells: Path) -> None:
    """When throttled, no call is made before the time that EvalAI named; then work continues and nothing is lost."""
    clock = ManualClock()
    with (
        Harness(tmp_path, clock=clock, cells=cells, settings={"throttle_per_minute": 6}) as harness,
        harness.worker() as worker,
    ):
        pks = [harness.submit(team, embeddings(seed)) for seed, team in enumerate("ABC")]
        worker.drive(lambda: any(entry.status == 429 for entry in calls(harness)))
        (refused,) = [entry for entry in calls(harness) if entry.status == 429]
        worker.drive(lambda: len([entry for entry in calls(harness) if entry.number > refused.number]) > 0)
        following = next(entry for entry in calls(harness) if entry.number > refused.number)
        accepted = [
            entry.at for entry in calls(harness) if entry.status != 429 and entry.number < refused.number
        ]
        assert (following.at - accepted[0]).total_seconds() >= 60
        worker.drive(lambda: all(harness.status(pk) == "finished" for pk in pks))
        refusals = [entry for entry in calls(harness) if entry.status == 429]
        assert len(refusals) <= len(calls(harness)) / 6 + 1
        assert {pk: len(harness.posts(pk)) for pk in pks} == dict.fromkeys(pks, 1)


def test_every_call_at_the_start_counts_against_the_budget(harness: Harness, worker: StepWorker) -> None:
    """The first connection takes several calls, and each of them counts."""
    worker.drive(lambda: worker.daemon.intake.session.remote is not None and not worker.busy)
    budget = worker.daemon.budget
    assert budget.left(worker.clock.now()) == budget.per_minute - len(calls(harness)) < budget.per_minute - 4
    harness.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.ERROR_BEFORE,)))
    worker.reload()
    worker.drive(lambda: worker.daemon.intake.calls.failing)
    assert budget.left(worker.clock.now()) == budget.per_minute - len(calls(harness))


def test_a_refused_token_waits_alerts_and_goes_on(harness: Harness, worker: StepWorker) -> None:
    """If the token is blacklisted, the worker waits, and continues by itself with the new one; the alert ends with any other answer."""
    harness.configure({"submission": {"answer_grid": 30}})
    worker.restart()
    pk = harness.submit("A", embeddings(1))
    until_scored(worker, pk)
    fresh = harness.evalai.refresh_token("host")
    worker.wait(300)
    with worker.store.read() as tx:
        assert [alert.code for alert in tx.alerts()] == ["evalai.token_refused"]
    assert harness.posts(pk) == []
    (harness.folder / "token").write_text(harness.evalai.token("otherhost"))
    worker.wait(90)
    assert "evalai.token_refused" not in worker.alerts()
    (harness.folder / "token").write_text(fresh)
    worker.finish(pk)
    assert len(harness.posts(pk)) == 1


def test_a_host_who_has_left_is_told_once_and_replaced_by_another(
    harness: Harness, worker: StepWorker
) -> None:
    """EvalAI refuses everything then, a submission in the same words as another challenge's; nothing is taken for moved, or asked often."""
    harness.configure({"submission": {"answer_grid": 30}})
    worker.restart()
    pks = [harness.submit(team, embeddings(seed)) for seed, team in enumerate("AB")]
    until_scored(worker, pks[0])
    harness.evalai.change_hosts("cohost")
    before = len(harness.evalai.journal)
    worker.wait(90)
    with worker.store.read() as tx:
        assert [alert.code for alert in tx.alerts()] == ["evalai.not_permitted"]
    assert sum(entry.method == "PATCH" for entry in calls(harness, before)) < 10
    (harness.folder / "token").write_text(harness.evalai.token("cohost"))
    worker.finish(*pks)
    assert worker.alerts() == set()


def test_a_queue_of_others_is_told_without_a_pause(harness: Harness, worker: StepWorker) -> None:
    """Other calls are answered, which ends no alert about those that are not."""
    worker.drive()
    harness.configure({"evalai": {"queue": harness.evalai.world.elsewhere.queue_name}})
    worker.reload()
    worker.wait(30)
    with worker.store.read() as tx:
        told = [(alert.key, alert.code, alert.raised_at) for alert in tx.alerts()]
    assert ("evalai.connect", "evalai.not_permitted") in [(key, code) for key, code, _ in told]
    worker.wait(90)
    with worker.store.read() as tx:
        assert told == [(alert.key, alert.code, alert.raised_at) for alert in tx.alerts()]


def test_an_outage_of_a_night_costs_nothing_but_time(harness: Harness, worker: StepWorker) -> None:
    """A minute without an answer raises one alert; hours later, everything that came meanwhile is answered, and it is resolved."""
    worker.drive()
    harness.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.ERROR_BEFORE,)))
    before = len(calls(harness))
    worker.wait(50)
    assert len(calls(harness)) - before > 3
    assert worker.alerts() == set()
    worker.wait(75)
    assert worker.alerts() == {"evalai.unreachable"}
    pk = harness.submit("A", embeddings(1))
    before = len(calls(harness))
    for _ in range(40):
        worker.clock.advance(60)
        worker.wait(1)
    assert worker.alerts() == {"evalai.unreachable"}
    assert len(calls(harness)) - before < 2 * 40 * 4  # backed off
    harness.evalai.set_faults(FaultPlan())
    worker.finish(pk)
    assert worker.alerts() == set()


@pytest.mark.parametrize(
    ("names", "key", "arrives"),
    [(("reconcile", "listing"), "evalai.listing", True), (("running",), "running:1001", False)],
)
def test_a_call_that_fails_alone_is_told(
    harness: Harness, names: tuple[str, ...], key: str, arrives: bool
) -> None:
    """A whole challenge may be too large for one listing: what the queue names is then read alone. The alert ends with the failures."""
    failing = set(names)

    def spoil(where: str) -> None:
        if where.startswith("before call ") and where.rpartition(" ")[2] in failing:
            harness.evalai.faults.force(Fault.ERROR_BEFORE)

    with harness.worker(checkpoint=spoil) as worker:
        pk = harness.submit("A", embeddings(1))
        worker.wait(60)
        assert (worker.states().get(pk) == "published") is arrives
        with worker.store.read() as tx:
            (raised,) = [alert for alert in tx.alerts() if alert.key == key]
        assert raised.code == "evalai.unreachable"
        worker.wait(120)
        with worker.store.read() as tx:
            assert raised in tx.alerts()  # still the same, so that it was sent once
        failing.clear()
        worker.wait(61)
        worker.finish(pk)
        assert worker.alerts() == set()


def test_an_account_that_others_use_up_is_told(harness: Harness, worker: StepWorker) -> None:
    """All programs of an account share its calls: one that makes them without a pause leaves none for hours."""
    worker.drive()
    harness.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.STORM,), storm_s=55))
    pk = harness.submit("A", embeddings(1))
    worker.wait(50)
    assert worker.alerts() == set()
    worker.wait(75)
    assert worker.alerts() == {"evalai.throttled"}
    harness.evalai.set_faults(FaultPlan())
    worker.wait(60)
    worker.finish(pk)
    assert worker.alerts() == set()


@pytest.mark.parametrize("scored", [False, True])
def test_a_clock_set_back_stops_nothing(waiting: Harness, scored: bool) -> None:
    """Waits that were recorded with the wrong time delay nothing: those after failures, and that of an answer for its grid."""
    with waiting.worker() as worker:
        pk = waiting.submit("A", embeddings(1))
        if scored:
            until_scored(worker, pk)
        else:
            waiting.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.ERROR_BEFORE,)))
            worker.wait(60)
            waiting.evalai.set_faults(FaultPlan())
        worker.clock.advance(-86400)
        worker.finish(pk)


def test_a_clock_that_is_far_ahead_registers_and_signs_nothing(harness: Harness, worker: StepWorker) -> None:
    """Otherwise the log would have a line from the future. The organizer is told, and everything goes on when the clocks agree again."""
    worker.drive()
    pk = harness.submit("A", embeddings(NEW))
    worker.drive(lambda: worker.daemon.evaluation.busy)
    with worker.store.read() as tx:
        attested = tx.fact(ATTESTED)
    right, worker.clock = worker.clock, ManualClock(worker.clock.now() + timedelta(days=10))
    worker.daemon.intake.calls.doubt_clock()  # as the loop does, which notices the jump
    worker.drive(lambda: "clock.wrong" in worker.alerts())
    assert "10 days ahead of EvalAI's" in worker.alert("clock.wrong")
    for _ in range(30):
        worker.clock.advance(2)
        worker.drive(lambda: not worker.daemon.intake.busy)
    because = ("--reason", "a test", "--yes")
    for command in (
        ("board", "publish"),
        ("board", "close", "--phase", "dev", "--now", *because),
        ("challenge", "disqualify", str(pk), *because),
        ("challenge", "disqualify", "--team", str(worker.row(pk).team_key), *because),
    ):
        done = harness.command(*command)
        assert (done.returncode, "ahead of EvalAI's" in done.stderr) == (1, True), command
    with worker.store.read() as tx:
        assert (tx.fact(ATTESTED), worker.state(pk), harness.posts(pk)) == (attested, State.SCORING, [])
    worker.clock = right
    worker.clock.advance(10)
    worker.finish(pk)
    assert worker.alerts() == set()
    assert harness.contradictions() == []


def test_a_call_that_began_before_the_clock_jumped_shows_nothing(harness: Harness) -> None:
    """Its answer came at a moment between the old time and the new one, whatever the new one is."""
    gate = Gate("after call poll")
    with harness.worker(checkpoint=gate) as worker:
        worker.drive()
        gate.close()
        worker.drive(gate.reached)
        worker.clock = ManualClock(worker.clock.now() + timedelta(days=10))
        calls = worker.daemon.intake.calls
        calls.doubt_clock()
        gate.open()
        worker.drive(lambda: calls.clock_agrees is not None)
        assert calls.clock_agrees is False


def test_unknown_handles_are_given_up(harness: Harness, worker: StepWorker) -> None:
    """A handle that EvalAI always answers with 500 is dropped, because its message comes back under a newer one."""
    worker.drive()
    worker.daemon.intake.session.receipt = "nonsense"
    harness.submit("A", embeddings(1))
    worker.drive()
    refused = [entry for entry in harness.evalai.journal.requests("POST", "/queues/") if entry.status == 500]
    assert len(refused) == 1
    assert harness.evalai.queue_length() == 0


def test_a_deletion_that_is_throttled_ends_its_poll(harness: Harness) -> None:
    """A poll deletes a message and receives the next one: not at once, if EvalAI has asked for a pause. The message comes back."""

    def throttled() -> list[int]:
        return [number for number, entry in enumerate(calls(harness)) if entry.status == 429]

    def spoil(where: str) -> None:
        deletes = where == "before call poll" and harness.evalai.journal.effects("message_received")
        if deletes and not throttled():
            harness.evalai.faults.force(Fault.STORM)

    with harness.worker(checkpoint=spoil) as worker:
        harness.submit("A", embeddings(1))
        worker.drive()
        worker.advance(30)
        (refused,) = throttled()
        deletion, following = calls(harness)[refused : refused + 2]
        assert (deletion.method, following.at > deletion.at) == ("POST", True)
        assert harness.evalai.queue_length() == 0


def test_a_reload_with_an_unknown_phase_does_not_end_the_worker(harness: Harness, worker: StepWorker) -> None:
    """A mistake in a reloaded configuration raises an alert."""
    worker.drive()
    harness.configure({"phases": {"test": {"split": "x", "tasks": "./tasks/dev", "ids": "./ids.txt"}}})
    worker.reload()
    pk = harness.submit("A", embeddings(1))
    worker.drive()
    assert worker.daemon.intake.calls.fatal is None
    assert harness.status(pk) == "finished"
    assert worker.alerts() == {"evalai.phase_unknown"}


def test_phases_that_change_at_evalai_are_taken_up_without_a_reload(
    harness: Harness, worker: StepWorker
) -> None:
    """A phase may be uploaded after it was configured, and a host may disable the logs of one at any time.

    EvalAI stores logs even if they are disabled, so only the score is sent.
    """
    worker.drive()
    harness.configure(
        {"phases": {"late": {"split": "late_split", "tasks": "./tasks/dev", "ids": "./ids.txt"}}}
    )
    worker.reload()
    worker.drive()
    assert worker.alerts() == {"evalai.phase_unknown"}
    phase = replace(
        harness.evalai.world.phase("dev"),
        pk=19,
        split_pk=39,
        dataset_split_pk=59,
        settings=PhaseSettings(codename="late"),
    )
    with harness.evalai.world.lock:
        harness.evalai.world.phases[phase.pk] = phase
    pks = harness.submit("A", embeddings(1), phase="late"), harness.submit("B", embeddings(1))
    worker.wait(30)
    worker.finish(*pks)
    assert worker.alerts() == set()
    harness.evalai.set_phase("dev", disable_logs=True)
    worker.wait(30)
    good, bad = harness.submit("C", embeddings(1)), harness.submit("D", b"id,0\nx,1\n")
    worker.drive()
    assert (harness.status(good), harness.status(bad)) == ("finished", "failed")
    assert (harness.evalai.text(good, "stdout_file"), harness.stderr(bad)) == ("", "")


def test_a_reading_that_a_reload_overtakes_is_made_again(harness: Harness) -> None:
    """It has checked the configuration before; the mistake in the new one is told."""
    gate = Gate("after call connect")
    with harness.worker(checkpoint=gate) as worker:
        worker.drive()
        gate.close()
        worker.reload()
        worker.drive(gate.reached)
        harness.configure({"phases": {"dev": {"metric": "another"}}})
        worker.reload()
        gate.open()
        worker.drive()
        assert worker.alerts() == {"evalai.metric_differs"}


@pytest.mark.parametrize("call", ["running", "post"])
def test_a_deposed_leader_sends_nothing(harness: Harness, call: str) -> None:
    """A machine that slept just before a call wakes up after another one has answered the submission."""
    gate = Gate(f"before call {call}")
    with harness.worker(checkpoint=gate) as sleeper:
        sleeper.drive()
        gate.close()
        pk = harness.submit("A", embeddings(1))
        sleeper.drive(gate.reached)
        with harness.worker() as successor:
            successor.finish(pk)
        since = len(harness.evalai.journal)
        gate.open()
        with pytest.raises(Deposed):
            sleeper.drive(lambda: False)
        assert calls(harness, since) == []


@pytest.mark.parametrize("moved", [False, True])
def test_an_evalai_that_takes_long_for_each_call_is_asked_no_more_often(
    harness: Harness, moved: bool
) -> None:
    """If calls take longer than facts stay valid, a fresh reading is used once; the row has the time at which it was requested.

    So is a refusal: it means that somebody has moved the submission to another challenge.
    """
    clock = harness.clock
    assert clock is not None
    asked_at: list[datetime] = []

    def take_long(where: str) -> None:
        if where.startswith("before call") and where != "before call fetch":
            if where in ("before call read", "before call listing", "before call reconcile"):
                asked_at.append(clock.now())
            clock.advance(8)

    harness.configure(
        {"submission": {"answer_grid": 30}, "evalai": {"poll_every": 60, "reconcile_every": 600}}
    )
    with harness.worker(checkpoint=take_long) as worker:
        worker.drive(lambda: worker.daemon.intake.session.empty_polls > 0)
        since, pk = len(harness.evalai.journal), harness.submit("A", embeddings(1))
        worker.clock.advance(60)
        worker.drive(lambda: worker.states().get(pk) == "fetched")
        read_at = worker.row(pk).read_at
        assert read_at is not None
        assert min(abs((read_at - moment).total_seconds()) for moment in asked_at) < 1
        if moved:
            harness.evalai.edit(pk, phase="elsewhere")
        worker.drive(lambda: harness.status(pk) == "finished")
        # Neither the start of the scoring nor the answer needs more than one; a listing in between is one as well.
        to_answer = list(takewhile(lambda call: call.method != "PUT", calls(harness, since)))
        to_start = list(takewhile(lambda call: call.method != "PATCH", to_answer))
        for before in (to_start, to_answer[len(to_start) :]):
            assert [call.path for call in before].count(f"/api/jobs/submission/{pk}") <= 1
        assert len(harness.posts(pk)) == 1


def test_a_start_goes_on_from_what_it_has_read(harness: Harness) -> None:
    """EvalAI fails on every second call: each answer that came is used, and the worker is connected."""
    harness.evalai.faults.force(*[None, Fault.ERROR_BEFORE] * 5)
    with harness.worker() as worker:
        worker.drive(lambda: worker.daemon.intake.session.remote is not None)
    read = harness.evalai.journal.requests("GET", "/api/challenges/")
    answered = [entry.path for entry in read if entry.status == 200]
    assert len(answered) == len(set(answered)) == 5


def test_what_is_known_is_answered_before_the_first_listing(waiting: Harness) -> None:
    """A worker that is killed again and again before its first listing is complete posts all the same what was decided before."""
    with waiting.worker() as worker:
        pk = waiting.submit("A", embeddings(1))
        until_scored(worker, pk)
        worker.clock.advance(120)
    listing = Gate("before call reconcile")
    listing.close()
    with waiting.worker(checkpoint=listing) as worker:
        worker.drive(listing.reached)
        assert (worker.state(pk), len(waiting.posts(pk))) == (State.POSTED, 1)
        listing.open()
