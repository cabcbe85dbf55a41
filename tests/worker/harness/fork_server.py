"""Workers that are killed at a named point, and commands that start quickly.

Starting Python and importing the worker takes a second, and the tests need some hundred starts. So multiprocessing's fork server imports
everything once, and forks for each worker or command. A fork of a process with a single thread behaves like a new process: it opens its own
database, lock, connections and children.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from scoring.errors import NeucoError
from tests.waiting import LIMIT_S
from tests.worker.harness.harness import clean_environment
from worker import cli, daemon


def kill_at(name: str | None) -> Callable[[str], None]:
    """Return a checkpoint that kills this process, as a power cut would, when it is called with a name."""

    def checkpoint(here: str) -> None:
        if here == name:
            os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait()  # never goes on, whatever thread this is

    return checkpoint


def kill_after(seconds: float) -> None:
    """Kill this process at a random moment, after the given number of seconds."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


class ForkServer:
    """Starts workers and commands, one at a time."""

    def __init__(self) -> None:
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload([__name__, "tests.worker.harness.preloaded"])
        self._process: BaseProcess | None = None

    def start(self, config: Path, *, at: str | None = None, after_s: float | None = None) -> int:
        """Start a worker that dies at a checkpoint, or after some seconds; return its process id."""
        log = config.with_name("daemon.log")
        return self._begin(_work, (log, log), clean_environment(), config, at, after_s)

    def command(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path
    ) -> subprocess.CompletedProcess[str]:
        """Run ``neuco-worker`` to its end; its output is passed through files in a folder."""
        outputs = folder / "command.out", folder / "command.err"
        for path in outputs:
            path.unlink(missing_ok=True)
        self._begin(_obey, outputs, environment, list(arguments))
        status = self.end()
        printed, errors = (path.read_text() for path in outputs)
        return subprocess.CompletedProcess(["neuco-worker", *arguments], status, printed, errors)

    def end(self) -> int:
        """Wait until the worker has ended; return its exit status, negative for a signal."""
        assert self._process is not None
        self._process.join(LIMIT_S)
        self._process.kill()  # does nothing to one that has ended
        self._process.join()
        return int(self._process.exitcode or 0)

    def _begin(
        self,
        work: Callable[..., int],
        outputs: tuple[Path, Path],
        environment: Mapping[str, str],
        *arguments: Any,
    ) -> int:
        self._process = self._context.Process(
            target=_live, args=(work, outputs, dict(environment), *arguments)
        )
        self._process.start()
        return int(self._process.pid or 0)


def _live(
    work: Callable[..., int], outputs: tuple[Path, Path], environment: dict[str, str], *arguments: Any
) -> None:
    """Do some work in a child process, and end it with a status."""
    os.setsid()
    for target, path in enumerate(outputs, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), target)
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(work(*arguments))


def _work(config: Path, at: str | None, after_s: float | None) -> int:
    if after_s is not None:
        kill_after(after_s)
    try:
        daemon.run(config, checkpoint=kill_at(at))
    except NeucoError as error:
        os.write(2, f"{error.message}\n".encode())
        return error.exit_code
    return 0


def _obey(arguments: list[str]) -> int:
    sys.argv = ["neuco-worker", *arguments]
    return cli.guarded(arguments)
