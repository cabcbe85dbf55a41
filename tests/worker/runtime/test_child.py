"""Children, their process groups and their memory, with real processes: none is left, and no unrelated one is killed."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from scoring.errors import NeucoError
from tests.waiting import LIMIT_S, until
from worker.runtime import child_acts
from worker.runtime.acts import LOOK_S
from worker.runtime.child import Child
from worker.runtime.child_acts import ChildAct, ChildRunner, Limits, OverLimit
from worker.state import Outcome, Store, Transaction

pytestmark = pytest.mark.processes

LEAVES = """setsid sleep 1000 & echo "{\\"pid\\": $!}\""""
STAYS = """sleep 1000 </dev/null >/dev/null 2>&1 & echo "{\\"pid\\": $!}\""""
START = datetime(2026, 1, 1, tzinfo=UTC)


def started(folder: Path, *command: str) -> Child:
    """Start a child."""
    return Child(command, {}, folder=folder / "child", wake=lambda: None)


def spoken(child: Child) -> int:
    """Return the process id that a child reports."""
    messages: list[dict[str, int]] = []
    until(lambda: bool(messages.extend(child.messages()) or messages))
    return messages[0]["pid"]


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that only waits to be reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_child_finds_the_libraries_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the parent looks for them, but in no place that is relative to the child's own folder."""
    monkeypatch.setenv("PYTHONPATH", ":/opt/numpy:relative::/opt/more:")
    order = 'import json, os; print(json.dumps({"places": os.environ["PYTHONPATH"]}))'
    with closing(started(tmp_path, sys.executable, "-c", order)) as child:
        messages: list[dict[str, str]] = []
        until(lambda: bool(messages.extend(child.messages()) or messages))
    assert messages == [{"places": "/opt/numpy:/opt/more"}]


def test_what_a_child_leaves_behind_is_killed_before_it_is_reaped(tmp_path: Path) -> None:
    """While members may be alive, the dead child keeps the group's number; then all of them are gone, with the folder."""
    with closing(started(tmp_path, "sh", "-c", STAYS)) as child:
        member = spoken(child)
        until(child.exited)
        assert psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE
        assert is_alive(member)
        until(lambda: child.ended() == 0)
        until(lambda: not is_alive(member))
    assert child.end() == 0
    assert not (tmp_path / "child").exists()


def test_a_process_that_left_the_group_does_not_delay_the_end(tmp_path: Path) -> None:
    """It is not killed, and keeps the pipes open, from which threads still read."""
    child = started(tmp_path, "sh", "-c", LEAVES)
    member = spoken(child)
    until(lambda: os.getpgid(member) == member)
    closing_thread = threading.Thread(target=child.close, daemon=True)
    closing_thread.start()
    try:
        closing_thread.join(LIMIT_S)
        assert not closing_thread.is_alive()
    finally:
        os.kill(member, signal.SIGKILL)


class LateReader(Child):
    """A child whose stderr is read late, once a thread may do so."""

    may_read: threading.Event

    def _listen_errors(self) -> None:
        assert self.may_read.wait(LIMIT_S)
        super()._listen_errors()


def test_a_death_is_reported_with_its_reason(tmp_path: Path) -> None:
    """The child has not ended before all of its stderr was read, which the log needs."""
    LateReader.may_read = threading.Event()
    command = ("sh", "-c", "echo reason >&2; exit 3")
    with closing(LateReader(command, {}, folder=tmp_path / "child", wake=lambda: None)) as child:
        until(child.exited)
        assert child.ended() is None
        child.may_read.set()
        until(lambda: child.ended() == 3)
        assert child.errors() == "reason"


@pytest.mark.parametrize("which", ["out", "err", "in"])
def test_a_child_for_which_there_is_no_thread_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """It could not be spoken with; that it was started is told as if there had been no process."""
    start, named = threading.Thread.start, set[str]()

    def limited(thread: threading.Thread) -> None:
        """Start a thread, unless the machine allows no more."""
        named.add(thread.name)
        if thread.name.startswith("child-") and thread.name.endswith(f"-{which}"):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(OSError, match="temporarily unavailable"):
        started(tmp_path, "sleep", "1000")
    assert not (tmp_path / "child").exists()
    (pid,) = {int(name.split("-")[1]) for name in named if name.startswith("child-")}
    assert not psutil.pid_exists(pid)


class Growth(ChildAct[dict[str, str]]):
    """Give a child an order that takes memory.

    Args:
        folder: The child's folder.
        size: How many bytes to take.
    """

    name = "growth"
    module = "tests.worker.runtime.child_that_grows"
    limits = Limits(deadline_s=LIMIT_S, memory_bytes=300_000_000)

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._size = folder, size
        self.helper = 0
        self.failed: list[NeucoError] = []

    @property
    def folder(self) -> Path:
        """As given."""
        return self._folder

    def order(self) -> Mapping[str, object]:
        """Say how much to take."""
        return {"bytes": self._size}

    def progress(self, message: Mapping[str, int]) -> None:
        """Note the process that holds the memory."""
        self.helper = message["pid"]

    def outcome(self, tx: Transaction, result: dict[str, str], now: datetime) -> None:
        """Never called."""

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Keep it."""
        self.failed.append(error)


def test_a_child_may_be_closed_before_its_threads_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that the machine runs late ends quietly."""
    closed, run = threading.Event(), threading.Thread.run
    monkeypatch.setattr(threading.Thread, "run", lambda thread: closed.wait() and run(thread))
    child = started(tmp_path, "true")
    threads = [thread for thread in threading.enumerate() if thread.name.startswith(f"child-{child.pid}-")]
    child.close()
    closed.set()
    for thread in threads:
        thread.join()
    assert len(threads) == 3


def test_a_child_that_outgrows_its_memory_limit_is_killed_alone(tmp_path: Path) -> None:
    """The memory of all processes of a child counts, and all of them are killed; another child goes on."""
    small, large = Growth(tmp_path / "small", 1_000_000), Growth(tmp_path / "large", 400_000_000)
    with closing(Store(f"sqlite:///{tmp_path}/worker.db")) as store:
        children = ChildRunner(store, wake=lambda: None)

        def look_until(condition: Callable[[], bool]) -> None:
            """Look at the children until something has happened."""
            until(lambda: children.look(START) is not None and condition())

        for act in (small, large):
            children.start(act, START)
        look_until(lambda: bool(large.failed))
        (error,) = large.failed
        assert isinstance(error, OverLimit)
        assert error.limit is Outcome.MEMORY
        until(lambda: large.helper == 0 or not is_alive(large.helper))
        look_until(lambda: small.helper > 0)
        assert is_alive(small.helper)
        assert children.acts == [small]
        children.stop(START)


def test_a_child_is_killed_at_its_deadline(tmp_path: Path) -> None:
    """Of a long pause between two looks, as after a suspension of the machine, only a few seconds count."""
    act = Growth(tmp_path / "child", 1_000_000)
    act.limits = replace(act.limits, deadline_s=2.5 * LOOK_S)
    with closing(Store(f"sqlite:///{tmp_path}/worker.db")) as store:
        children = ChildRunner(store, wake=lambda: None)
        children.start(act, START)
        for number in range(1, 5):
            assert (children.acts, act.failed) == ([act], [])
            children.look(START + number * timedelta(hours=1))
        (error,) = act.failed
        assert isinstance(error, OverLimit)
        assert (error.limit, children.acts, list(tmp_path.glob("child"))) == (Outcome.DEADLINE, [], [])


class HeardLate(Child):
    """A child to whose messages nobody listens until it is killed."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._killed = threading.Event()
        super().__init__(*arguments, **options)

    def _listen(self) -> None:
        assert self._killed.wait(LIMIT_S)
        super()._listen()

    def has_spoken(self) -> bool:
        """Return whether it has sent something."""
        return bool(select.select([self._stdout], [], [], 0)[0])

    def kill(self) -> None:
        """Kill it."""
        super().kill()
        self._killed.set()


def test_what_a_child_said_before_it_was_killed_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stage that it had reached decides who is to blame for an exceeded limit, however late a thread reads it."""
    monkeypatch.setattr(child_acts, "Child", HeardLate)
    large = Growth(tmp_path / "large", 400_000_000)
    with closing(Store(f"sqlite:///{tmp_path}/worker.db")) as store:
        children = ChildRunner(store, wake=lambda: None)
        children.start(large, START)
        (performance,) = children._performances
        assert isinstance(performance.child, HeardLate)
        until(performance.child.has_spoken)
        until(lambda: children.look(START) is not None and bool(large.failed))
        assert large.helper > 0
