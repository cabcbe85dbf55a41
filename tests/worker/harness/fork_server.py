"""Workers that are killed at a named point, and commands that start quickly.

Starting Python and importing the worker takes a second, and a crash matrix needs some hundred starts. So one process imports everything
once, and forks for each worker or command (:class:`ForkServer`). A fork of a process with a single thread behaves like a new process: it
opens its own database, lock, connections and children.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from tests.worker.harness.harness import ROOT, clean_environment

LIMIT_S = 200.0  # for one worker; reached only when something is wrong


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
    """Starts workers quickly, from a process that begins when it is needed; a context manager."""

    def __init__(self) -> None:
        self._order = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if "_process" in vars(self):
            self._process.kill()
            self._process.communicate(timeout=60)

    @cached_property
    def _process(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.worker.harness.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=clean_environment(),
        )

    def start(self, config: Path, *, at: str | None = None, after_s: float | None = None) -> int:
        """Start a worker that dies at a checkpoint, or after some seconds; return its process id."""
        return int(self._exchange({"config": str(config), "at": at, "after_s": after_s})["pid"])

    def command(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path
    ) -> subprocess.CompletedProcess[str]:
        """Run ``neuco-worker`` to its end; its output is passed through files in a folder."""
        outputs = [folder / name for name in ("command.out", "command.err")]
        self._exchange(
            {
                "command": list(arguments),
                "environment": dict(environment),
                "outputs": [str(path) for path in outputs],
            }
        )
        status = self.end()
        printed, errors = (path.read_text() for path in outputs)
        return subprocess.CompletedProcess(["neuco-worker", *arguments], status, printed, errors)

    def end(self) -> int:
        """Wait until the worker has ended; return its exit status, negative for a signal."""
        return int(self._answer()["status"])

    def _exchange(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._order += 1
        self._process.stdin.write(json.dumps({**order, "number": self._order}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        """Return the next answer to the last order; answers left by an interrupted test are skipped."""
        assert self._process.stdout is not None
        while True:
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
            if answer["number"] == self._order:
                return answer


def _serve() -> None:
    from worker import cli, daemon  # everything a worker needs is imported before the first fork

    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _live(
                partial(_obey, order, cli.guarded)
                if "command" in order
                else partial(_work, order, daemon.run)
            )
        _say(number=order["number"], pid=pid)
        ends = time.monotonic() + LIMIT_S
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > ends:
                os.kill(pid, signal.SIGABRT)
            time.sleep(0.003)
        _say(number=order["number"], status=os.waitstatus_to_exitcode(status))


def _live(work: Callable[[], int]) -> NoReturn:
    """Do some work in a child process and end it, so that no code of the fork server continues there."""
    os.setsid()
    status = 99
    try:
        status = work()
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _work(order: dict[str, Any], run: Callable[..., None]) -> int:
    from scoring.errors import NeucoError

    log = str(Path(order["config"]).with_name("daemon.log"))
    _redirect(log, log)
    if order["after_s"] is not None:
        kill_after(order["after_s"])
    try:
        run(Path(order["config"]), checkpoint=kill_at(order["at"]))
    except NeucoError as error:
        os.write(2, f"{error.message}\n".encode())
        return error.exit_code
    return 0


def _obey(order: dict[str, Any], guarded: Callable[[list[str]], int]) -> int:
    for path in order["outputs"]:
        Path(path).unlink(missing_ok=True)
    _redirect(*order["outputs"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["neuco-worker", *order["command"]]
    return guarded(order["command"])


def _redirect(printed: str, errors: str) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    out, err = (os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for path in (printed, errors))
    for source, target in ((null, 0), (out, 1), (err, 2)):
        os.dup2(source, target)


def _say(**answer: int) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _serve()
