"""The process that is kept ready has loaded its code, knows nothing of any submission, and is used once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from scoring.errors import NeucoError
from tests.worker.harness.harness import NEW, Harness, embeddings, evaluating
from worker.runtime.child_acts import ChildAct, Limits
from worker.runtime.child_runner import READY_AFTER, ChildRunner
from worker.runtime.children import WAITS_IN
from worker.state import Store, Transaction

LIMIT_S = 60.0  # of real time; reached only when something is wrong
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODULE = "worker.evaluation.evaluate_child"


class Defective(ChildAct[dict[str, str]]):
    """Give a child an invalid order, so that it ends at once."""

    name = "defective"
    module = MODULE
    limits = Limits(deadline_s=LIMIT_S)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.failed: list[str] = []

    @property
    def folder(self) -> Path:
        """The given folder."""
        return self._folder

    def order(self) -> Mapping[str, object]:
        """Name no file."""
        return {}

    def outcome(self, tx: Transaction, result: dict[str, str], now: datetime) -> None:
        """Never called."""

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Keep the error."""
        self.failed.append(error.sentence)


class Runner:
    """A runner of child acts that keeps a process ready, and the event that wakes it."""

    def __init__(self, store: Store) -> None:
        self.woken = threading.Event()
        self.children = ChildRunner(store, wake=self.woken.set)
        self.children.ahead = MODULE

    def until_over(self, act: Defective) -> None:
        """Look until an act has failed."""
        while not act.failed:
            self.woken.wait(0.05)
            self.children.look(NOW)

    def be_quiet(self) -> None:
        """Let enough time pass without an act for a process to be kept ready."""
        for now in (NOW, NOW + READY_AFTER):
            self.children.look(now)


@pytest.fixture
def runner(store: Store) -> Iterator[Runner]:
    """A runner, stopped at the end."""
    runner = Runner(store)
    yield runner
    runner.children.stop(NOW)


def processes(pid: int | None = None) -> set[psutil.Process]:
    """Return the processes below this one, or below a daemon, that can score."""
    found = set()
    for process in psutil.Process(pid).children():
        with suppress(psutil.Error):
            if MODULE in command(process):
                found.add(process)
    return found


def command(process: psutil.Process) -> list[str]:
    """Return a process's command line. Just after its start, Linux shows nothing; for one that has ended, psutil raises."""
    while not (words := process.cmdline()):
        pass
    return words


def test_an_act_uses_the_ready_process_and_the_next_one_gets_another(runner: Runner, tmp_path: Path) -> None:
    """No process handles two orders; during a burst none is started ahead."""
    runner.children.look(NOW)
    assert processes() == set()
    runner.be_quiet()
    (first,) = processes()
    assert Path(first.cwd()) == WAITS_IN
    act = Defective(tmp_path / "child")
    assert runner.children.start(act, NOW)
    assert processes() <= {first}
    runner.until_over(act)
    assert act.failed == ["A process ended with exit status 1."]
    assert processes() == set()
    runner.be_quiet()
    (second,) = processes()
    assert second != first


def test_a_ready_process_that_died_is_replaced_when_an_act_needs_it(runner: Runner, tmp_path: Path) -> None:
    """It is not restarted while nothing needs it; the act gets a process all the same."""
    runner.be_quiet()
    (dead,) = processes()
    dead.kill()
    dead.wait(timeout=LIMIT_S)
    runner.be_quiet()
    assert processes() == set()
    act = Defective(tmp_path / "child")
    assert runner.children.start(act, NOW)
    runner.until_over(act)
    assert act.failed == ["A process ended with exit status 1."]


def test_only_a_daemon_keeps_a_ready_process_and_none_is_left_at_the_end(store: Store) -> None:
    """`once` and `rescore` start no process that they may not need; a daemon ends its own."""
    children = ChildRunner(store, wake=lambda: None)
    for now in (NOW, NOW + READY_AFTER):
        children.look(now)
    assert processes() == set()
    runner = Runner(store)
    runner.be_quiet()
    assert len(processes()) == 1
    runner.children.stop(NOW)
    assert processes() == set()


def test_the_daemon_scores_in_the_process_that_it_kept_ready(live: Harness) -> None:
    """It loads its code before it has an order, and then works in a folder of its own."""
    live.configure({"phases": {"dev": {"folds": 60_000}}})  # lasts until it is ended
    daemon = live.run()
    live.until(lambda: len(processes(daemon.pid)) == 1)
    (ready,) = processes(daemon.pid)
    live.until(lambda: any("llvmlite" in place.path for place in ready.memory_maps()))
    live.submit("A", embeddings(NEW))
    live.until(lambda: bool(evaluating(daemon.pid)))
    (at_work,) = evaluating(daemon.pid)
    assert at_work == ready
    assert Path(at_work.cwd()).name.startswith("evaluate-")
    daemon.terminate()
    assert daemon.wait(timeout=LIMIT_S) == 0
