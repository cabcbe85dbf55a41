"""A signal is heard at every moment, whichever thread is faster."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.worker.harness.harness import ROOT, Harness, clean_environment
from worker.daemon.signals import Signals, Stopped
from worker.daemon.start import take
from worker.state import LeaderLock

FIRST_MOMENT = """
import signal, sys, threading
start = threading.Thread.start
def signalled(thread):
    start(thread)
    if thread.name == "signals":
        signal.raise_signal(signal.SIGTERM)
threading.Thread.start = signalled
from worker.cli import main
main()
"""


WAITED = """
import sys
from pathlib import Path
from worker.cli import main
from worker.state import LeaderLock
take = LeaderLock.take
def taken(lock):
    configuration = Path(sys.argv[-1])
    configuration.write_text(configuration.read_text() + "state: sqlite:///./elsewhere/worker.db")
    return take(lock)
LeaderLock.take = taken
main()
"""


class LookedAt(threading.Event):
    """An event that is set by another thread as soon as somebody has found that it is not."""

    def is_set(self) -> bool:
        """Look, and be set."""
        found = super().is_set()
        self.set()
        return found


def test_a_reload_that_is_asked_for_during_the_look_is_not_lost() -> None:
    """It is found by the next look."""
    signals = Signals()
    signals.reload = LookedAt()
    assert not signals.reload_asked()
    assert signals.reload_asked()


class Slow(LeaderLock):
    """A lock whose server takes long: SIGTERM comes meanwhile, and no other thread has a turn before it is taken."""

    signals: Signals

    def take(self) -> bool:
        """Take it."""
        self.signals._receive(signal.SIGTERM, None)
        return True


def test_a_stop_while_the_lock_is_taken_ends_the_start(tmp_path: Path) -> None:
    """The start does not go on until another thread has set the event."""
    lock = Slow(tmp_path)
    lock.signals = Signals()
    with pytest.raises(Stopped):
        take(lock, lock.signals, wait=False)


@pytest.mark.processes
@pytest.mark.parametrize(("command", "status"), [("run", 0), ("once", 1)])
def test_a_stop_at_the_first_moment_is_no_error(live: Harness, command: str, status: int) -> None:
    """The daemon ends as at any other moment, and `once` says that it was stopped."""
    done = scripted(FIRST_MOMENT, command, live)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)


@pytest.mark.processes
def test_a_state_that_is_named_during_the_wait_for_the_lock_is_not_used(live: Harness) -> None:
    """The lock that the worker got is another state's, in which another worker may lead."""
    done = scripted(WAITED, "once", live)
    assert (done.returncode, "Restart the worker." in done.stderr) == (2, True)
    assert not (live.folder / "elsewhere").exists()


def scripted(script: str, command: str, live: Harness) -> subprocess.CompletedProcess[str]:
    """Run a script with a command of the challenge."""
    return subprocess.run(
        [sys.executable, "-c", script, command, "--config", str(live.path)],
        env=clean_environment(),
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.mark.processes
def test_a_caller_that_ignores_the_ends_of_processes_hides_no_failure(live: Harness) -> None:
    """The kernel would keep no exit status, and a push that was refused would count as done."""
    hook = live.board / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "worker.cli", "once", "--config", str(live.path)],
        env=clean_environment(),
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )
    assert done.returncode == 1, done.stderr
    assert "refused the push: pre-receive hook declined" in done.stderr
