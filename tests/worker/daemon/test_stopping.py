"""SIGTERM at any moment: the daemon ends with 0 in the promised time, leaves no process running and loses nothing."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress

import psutil
import pytest

from tests.worker.harness.gate import NEVER_SCORES, hanging, interpreter
from tests.worker.harness.harness import NEW, Harness, embeddings, evaluating
from worker.sandbox import Fault, FaultPlan

pytestmark = pytest.mark.processes

SOON_S = 50  # less than a call, a push or an evaluation may take; test_deploy_units.py adds up what the daemon may wait for


@contextmanager
def locked(harness: Harness) -> Iterator[None]:
    """Keep the database locked, as a hanging program does."""
    with closing(sqlite3.connect(harness.state / "worker.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextmanager
def a_start_that_hangs(harness: Harness) -> Iterator[subprocess.Popen[str]]:
    """It reads a file from a disk that does not respond."""
    with hanging(harness.folder / "ids.txt"):
        daemon = harness.run()
        readers: list[int] = []

        def read() -> bool:
            with suppress(OSError):  # nobody reads it yet
                readers.append(os.open(harness.folder / "ids.txt", os.O_WRONLY | os.O_NONBLOCK))
            return bool(readers)

        harness.until(read)
        yield daemon
        os.close(readers[0])


@contextmanager
def idle(harness: Harness) -> Iterator[subprocess.Popen[str]]:
    """There is nothing to do."""
    daemon = harness.run()
    harness.until(lambda: "published" in harness.states().values())
    yield daemon


@contextmanager
def a_call(harness: Harness) -> Iterator[subprocess.Popen[str]]:
    """EvalAI does not respond."""
    with idle(harness) as daemon:
        harness.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.SLOW,), slow_s=300))
        harness.until(lambda: any(entry.kind == "fault" for entry in harness.evalai.journal))
        yield daemon
        harness.evalai.set_faults(FaultPlan())


@contextmanager
def an_evaluation(harness: Harness) -> Iterator[subprocess.Popen[str]]:
    """Scoring takes long."""
    daemon = harness.run(interpreter=interpreter(harness.folder, NEVER_SCORES))
    harness.until(lambda: bool(evaluating(daemon.pid)))
    yield daemon


@contextmanager
def a_push(harness: Harness) -> Iterator[subprocess.Popen[str]]:
    """The repository accepts it but does not respond."""
    hook, pushing = harness.board / "hooks" / "pre-receive", harness.folder / "pushing"
    hook.write_text(f"#!/bin/sh\ntouch {pushing}\nexec sleep 600\n")
    hook.chmod(0o755)
    daemon = harness.run()
    harness.until(pushing.exists)
    # While an answer is on its way, the next worker cannot know whether it arrived, and sends it again.
    harness.until(lambda: set(harness.states().values()) == {"posted"})
    yield daemon
    hook.unlink()


@contextmanager
def a_locked_database(harness: Harness) -> Iterator[subprocess.Popen[str]]:
    """Another program holds the lock."""
    harness.configure({"evalai": {"reconcile_every": 1}})  # so that it soon wants to write
    with idle(harness) as daemon, locked(harness):
        harness.until(lambda: "state.database" in harness.log)
        yield daemon


Phase = Callable[[Harness], AbstractContextManager[subprocess.Popen[str]]]
PHASES: list[Phase] = [
    a_start_that_hangs,
    a_call,
    an_evaluation,
    a_push,
    a_locked_database,
]


@pytest.mark.parametrize("phase", PHASES, ids=[phase.__name__ for phase in PHASES])
def test_sigterm_ends_the_daemon_in_time_and_without_loss(live: Harness, phase: Phase) -> None:
    """Exit status 0 without waiting for the work in progress; no process is left, and the next worker does the rest exactly once."""
    pk = live.submit("A", embeddings(NEW if phase is an_evaluation else 1))
    with phase(live) as daemon:
        below = psutil.Process(daemon.pid).children(recursive=True)
        daemon.terminate()
        assert daemon.wait(timeout=SOON_S) == 0
        live.until(lambda: not any(map(runs, below)))  # those that were killed need a moment to die
    assert live.once().returncode == 0
    assert live.status(pk) == "finished"
    assert len(live.posts(pk)) == 1


def runs(process: psutil.Process) -> bool:
    """Return whether a process is still running."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
