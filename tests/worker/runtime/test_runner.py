"""Acts that hang: each is given up after its time-out, its late result is ignored, and work continues."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import psutil
import pytest

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from tests.waiting import LIMIT_S
from tests.worker.harness.gate import Gate
from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.runtime.acts import LOOK_S, Act, Runner
from worker.runtime.child_acts import ChildAct, ChildRunner, Limits
from worker.state import State, StateFailed, Store, Transaction

START = datetime(2026, 1, 1, tzinfo=UTC)


class Sayings(Act[str, str]):
    """Return a word once allowed, and record it."""

    name = "say"
    what: ClassVar[str] = "A saying"
    time_out_s = 10.0

    def __init__(self, word: str, *, at: str = "", problem: Exception | None = None) -> None:
        self.word = word
        self._at, self.problem = at, problem
        self.may_go_on = threading.Event()
        self.ended_by_force = False

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Begin, unless there is a problem."""
        self._meet("the intent")

    def _meet(self, at: str) -> None:
        if self.problem is not None and at == self._at:
            raise self.problem

    def perform(self, resource: str) -> str:
        """Wait."""
        assert self.may_go_on.wait(LIMIT_S)
        return f"{self.word} {resource}"

    def outcome(self, tx: Transaction, result: str, now: datetime) -> None:
        """Record it, and then meet the problem, if there is one."""
        tx.set_fact("said", f"{tx.fact('said') or ''}{result};")
        self._meet("the outcome")

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Record it."""
        tx.set_fact("said", f"{tx.fact('said') or ''}{error.code};")

    def give_up(self, resource: str) -> None:
        """Note that it was given up."""
        self.ended_by_force = True


class Mumble(ChildAct[dict[str, str]]):
    """Give a child an order that writes a file into the child's folder."""

    name = "mumble"
    module = "worker.evaluation.evaluate_child"
    limits = Limits(deadline_s=LIMIT_S, memory_bytes=300_000_000)

    def __init__(self, folder: Path, *, defect: bool) -> None:
        self._folder = folder
        self._defect = defect
        self.failed: list[str] = []

    @property
    def folder(self) -> Path:
        """As given."""
        return self._folder

    def order(self) -> Mapping[str, object]:
        """Put a file there, like the hidden tasks, or fail."""
        if self._defect:
            raise KeyError(self.name)
        self.folder.mkdir()
        (self.folder / "tasks").write_text("hidden")
        return {}

    def outcome(self, tx: Transaction, result: dict[str, str], now: datetime) -> None:
        """Never called."""

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Keep it."""
        self.failed.append(error.sentence)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A database."""
    with closing(Store(f"sqlite:///{tmp_path}/worker.db")) as store:
        yield store


def runner(store: Store, wake: threading.Event | None = None) -> Runner[str]:
    """Return a runner."""
    return Runner("test", store, wake=(wake or threading.Event()).set, checkpoint=lambda _: None)


def pass_time(runner: Runner[str], now: datetime, seconds: float) -> datetime:
    """Look at the act every second for the given time."""
    ends = now + timedelta(seconds=seconds)
    while now < ends:
        now += timedelta(seconds=1)
        runner.look(now)
    return now


def recorded(store: Store) -> str | None:
    """Return what was recorded."""
    with store.read() as tx:
        return tx.fact("said")


def test_a_late_result_is_ignored(store: Store) -> None:
    """The act that follows one that was given up gets its own result, even if the older one ends first."""
    wake = threading.Event()
    acts, old, new = runner(store, wake), Sayings("old"), Sayings("new")
    acts.start(old, "word", START)
    now = pass_time(acts, START, 11)
    ended = acts.collect(now)
    assert ended is not None
    assert (ended.given_up, old.ended_by_force) == (True, True)
    acts.start(new, "word", now)
    for act in (old, new):
        assert acts.collect(now) is None
        wake.clear()
        act.may_go_on.set()
        assert wake.wait(LIMIT_S)  # it has said what it had to say
    acts.collect(now)
    assert recorded(store) == "act.timed_out;new word;"


@pytest.mark.parametrize("jump", [86400, -86400])
def test_a_clock_that_jumps_gives_nothing_up(store: Store, jump: int) -> None:
    """Neither a suspended machine nor a clock that is set back counts against the act; real seconds do."""
    acts = runner(store)
    act = Sayings("word")
    acts.start(act, "", START)
    now = START + timedelta(seconds=jump)
    assert acts.look(now) is None
    now = pass_time(acts, now, 4)
    assert not act.ended_by_force
    pass_time(acts, now, 7)
    assert act.ended_by_force
    act.may_go_on.set()


def test_a_computation_is_given_up_by_processor_time_alone(store: Store) -> None:
    """On a machine that is busy with other things, it takes as long as it takes; before and after it, every second counts."""
    acts = runner(store)
    act = Sayings("word")
    act.time_out_s, act.computing = 600.0, True
    acts.start(act, "", START)
    now = pass_time(acts, START, 3600)  # by a clock on which this process computes for a moment only
    assert not act.ended_by_force
    act.computing = False
    pass_time(acts, now, 601)
    assert act.ended_by_force
    act.may_go_on.set()


@pytest.mark.parametrize(
    "problem",
    [
        KeyError("a defect"),
        OrganizerError("The mode is wrong.", code="secret.mode"),
        InfrastructureError("The record is damaged.", code="record.damaged"),
    ],
    ids=lambda problem: type(problem).__name__,
)
@pytest.mark.parametrize("at", ["the intent", "the outcome"])
def test_an_error_before_or_after_an_act_is_its_failure(
    store: Store, capsys: pytest.CaptureFixture[str], at: str, problem: Exception
) -> None:
    """Nothing of the outcome is kept, the log gets a defect's traceback, and the next act can begin: it does not recur at every step."""
    wake = threading.Event()
    acts = runner(store, wake)
    act = Sayings("word", at=at, problem=problem)
    act.may_go_on.set()
    acts.start(act, "again", START)
    assert wake.wait(0 if at == "the intent" else LIMIT_S)
    ended = acts.collect(START)
    assert ended is not None
    assert ended.error is not None
    assert recorded(store) == f"{ended.error.code};"
    assert not acts.busy
    if isinstance(problem, KeyError):
        assert ended.error.message.startswith(f"Unexpected KeyError in {at} of say.")
        assert "in _meet" in capsys.readouterr().out
    else:
        assert ended.error is problem


def test_a_result_is_kept_while_the_state_fails(store: Store) -> None:
    """The error is the state's and not the act's, so the outcome is recorded as soon as that is possible."""
    wake = threading.Event()
    acts = runner(store, wake)
    act = Sayings("word", at="the outcome", problem=StateFailed("The database is locked."))
    act.may_go_on.set()
    acts.start(act, "kept", START)
    assert wake.wait(LIMIT_S)
    for _ in range(2):
        with pytest.raises(StateFailed):
            acts.collect(START)
    act.problem = None
    ended = acts.collect(START)
    assert ended is not None
    assert (ended.error, recorded(store)) == (None, "word kept;")


@pytest.mark.parametrize(
    "defect",
    [pytest.param(True, id="defect"), pytest.param(False, id="no interpreter", marks=pytest.mark.processes)],
)
def test_an_act_whose_child_cannot_start_fails(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: bool
) -> None:
    """It does not stay under way indefinitely; without an interpreter, as after an upgrade, the filled folder is removed."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    wake = threading.Event()
    children = ChildRunner(store, wake=wake.set)
    act = Mumble(tmp_path / "child", defect=defect)
    children.start(act, START)
    assert wake.is_set()
    assert not act.folder.exists()
    children.look(START)
    (sentence,) = act.failed
    assert sentence.startswith(
        "Unexpected KeyError in the start of mumble."
        if defect
        else "A child process for a submission could not be started (No such file"
    )
    assert children.acts == []


def pass_seconds(worker: StepWorker, seconds: float, *, calls_hang: bool = False) -> None:
    """Let the given time pass, with a step every five seconds, the most that counts between two looks.

    Unless calls to EvalAI are to hang, each of them ends first: a call of a few real milliseconds must not appear to take minutes.
    """
    for _ in range(int(seconds / LOOK_S)):
        worker.clock.advance(LOOK_S)
        worker.step()
        if not calls_hang:
            worker.drive(lambda: not worker.daemon.intake.busy)


@pytest.mark.processes
def test_a_call_that_hangs_is_given_up(harness: Harness, worker: StepWorker) -> None:
    """If EvalAI never responds, the call is tried again after 75 s, the organizer is told, and nothing is lost."""
    worker.drive()
    evalai = harness.evalai.url
    with socket.create_server(("127.0.0.1", 0)) as silent:
        harness.configure({"evalai": {"server": f"http://127.0.0.1:{silent.getsockname()[1]}"}})
        worker.reload()
        worker.drive(lambda: worker.daemon.intake.busy)
        pass_seconds(worker, 70, calls_hang=True)
        assert not worker.daemon.intake.calls.failing
        pass_seconds(worker, 10, calls_hang=True)
        assert worker.daemon.intake.calls.failing
        pass_seconds(worker, 160, calls_hang=True)
        assert worker.alerts() == {"act.timed_out"}
        harness.configure({"evalai": {"server": evalai}})
        worker.reload()
        pk = harness.submit("A", embeddings(1))
        pass_seconds(worker, 80, calls_hang=True)  # the call that is under way still hangs
        worker.finish(pk)
    assert worker.alerts() == set()


@pytest.mark.processes
def test_a_call_that_was_given_up_sends_nothing_later(harness: Harness) -> None:
    """Its thread goes on when another call has sent the answer, and after that a newer one, which stands."""
    gate = Gate("before call post")
    posting: list[threading.Thread] = []

    def checkpoint(name: str) -> None:
        """Note the threads that post, and hold the first one."""
        if name == "before call post":
            posting.append(threading.current_thread())
        gate(name)

    gate.close()
    with harness.worker(checkpoint=checkpoint) as worker:
        pk = harness.submit("A", embeddings(1))
        worker.drive(gate.reached)
        pass_seconds(worker, 80, calls_hang=True)
        worker.finish(pk)
        (harness.folder / "tasks" / "dev" / "gamma__regr.csv").unlink()
        assert harness.rescore() == 1
        worker.drive()
        newest = harness.stdout(pk)
        gate.open()
        posting[0].join(LIMIT_S)
        assert (harness.stdout(pk), len(harness.posts(pk))) == (newest, 2)


@pytest.mark.processes
def test_a_call_that_hangs_while_the_token_cannot_be_read_is_tried_again(harness: Harness) -> None:
    """The token that is known goes on to be used; that the call was given up concerns its own thread alone."""
    gate = Gate("before call post")
    with harness.worker(checkpoint=gate) as worker:
        worker.drive()
        gate.close()
        pk = harness.submit("A", embeddings(1))
        worker.drive(gate.reached)
        (harness.folder / "token").unlink()
        pass_seconds(worker, 80, calls_hang=True)
        worker.finish(pk)
        gate.open()


@pytest.mark.processes
def test_a_push_that_hangs_is_given_up(harness: Harness, worker: StepWorker) -> None:
    """Git and all its processes are killed, the next push uses a new publisher, and answers never wait."""
    worker.drive()
    hook, pids = harness.board / "hooks" / "pre-receive", harness.folder / "hanging"
    hook.write_text(f"#!/bin/sh\necho $$ >> {pids}\nexec sleep 100000\n")
    hook.chmod(0o755)
    first = harness.submit("A", embeddings(1))
    worker.drive(lambda: pids.exists() and pids.read_text().endswith("\n"))
    pid = int(pids.read_text())
    pass_seconds(worker, 120)  # of the worker's clock; git's own time-out goes by the machine's
    assert psutil.pid_exists(pid)
    hook.unlink()  # for the next push, which may follow at once
    pass_seconds(worker, 15)
    error = worker.daemon.publishing.last_error
    assert error is not None
    assert error.code == "act.timed_out"
    harness.until(lambda: not psutil.pid_exists(pid))
    second = harness.submit("B", embeddings(2))
    worker.drive()
    assert {worker.state(first), worker.state(second)} == {State.PUBLISHED}
    assert set(harness.teams()) == {"A", "B"}
    assert worker.alerts() == set()
