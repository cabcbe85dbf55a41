"""Child processes, which may be killed at any moment.

A child reads its order from stdin (nothing secret is on a command line or in an environment) and responds with JSON lines on stdout. It
handles one order and ends, so that no submission can affect another one. Participants' files are parsed only in children.

A child and all processes that it starts are one process group, which is measured, limited and killed as a whole. The group's number is
the child's process id. The kernel reuses that number only after the child was reaped, so it is reaped only after the whole group was
killed. A signal therefore never reaches an unrelated process.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

import psutil

KEPT_ENVIRONMENT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "VIRTUAL_ENV", "XDG_CACHE_HOME", "PYTHONUSERBASE"),
    *("NUMBA_CACHE_DIR", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"),
    # Which GPU to use, and where a container has its driver.
    *("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"),
)
"""The environment variables that a child may see; none holds a token or a secret."""
STDERR_KEPT_BYTES = 8192
LINE_LIMIT_BYTES = 64 * 1024 * 1024  # of one message; a scorecard of 100 tasks x 1,000 folds takes 2 MB
ARRIVES_WITHIN_S = 0.2  # what a dead process had said, unless another one holds the pipe
ENDS_WITHIN_S = 4  # for a killed process, unless the kernel itself hangs


def command(module: str) -> list[str]:
    """Return the command of a child that runs a module, such as ``worker.evaluation.evaluate_child``."""
    return [sys.executable, "-P", "-m", "worker.runtime.child_main", module]


class Child:
    """One process with its order, in a session of its own.

    Args:
        command: Program and arguments, see :func:`command`.
        order: What it is to do, sent as JSON.
        folder: Its temporary folder, in which it works; made here, and always removed by :meth:`close`.
        wake: Called from a thread when a message has arrived or the child has ended.

    Attributes:
        pid: Its process id, which is also the number of its process group.

    Raises:
        OSError: If its folder cannot be made, or the machine cannot start another process or thread.
    """

    def __init__(
        self,
        command: Sequence[str],
        order: Mapping[str, object],
        *,
        folder: Path,
        wake: Callable[[], None],
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        environment = {key: os.environ[key] for key in KEPT_ENVIRONMENT if key in os.environ}
        environment |= {"PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment["TMPDIR"] = str(folder)
        # Clusters provide libraries by it. A relative or empty part would mean the child's own folder.
        places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(place for place in places if place.startswith("/"))
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._folder = folder
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = cast("tuple[IO[bytes], IO[bytes], IO[bytes]]", streams)
        self._arrived: deque[dict[str, Any]] = deque()
        self._errors = bytearray()
        self._wake = wake
        # Each stream belongs to a thread, which closes it: closing waits for a read or a write in another thread. An order needs one,
        # because a child that is still starting accepts no more than a pipe holds.
        sender, *self._listeners = (
            threading.Thread(target=target, args=given, daemon=True, name=f"child-{self.pid}-{name}")
            for target, given, name in (
                (self._send, (order,), "in"),
                (self._listen, (), "out"),
                (self._listen_errors, (), "err"),
            )
        )
        try:
            for thread in (*self._listeners, sender):
                thread.start()
        except RuntimeError as problem:  # the machine allows no more threads
            self.close()
            for thread, stream in zip((sender, *self._listeners), streams, strict=True):
                if thread.ident is None and stream is not None:
                    stream.close()
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from problem

    def _send(self, order: Mapping[str, object]) -> None:
        """Send the order and close stdin; :meth:`ended` notices a dead child."""
        with contextlib.suppress(OSError), self._stdin:
            self._stdin.write(json.dumps(order).encode())

    def _listen(self) -> None:
        with self._stdout:
            while line := self._stdout.readline(LINE_LIMIT_BYTES):
                with contextlib.suppress(ValueError):
                    message = json.loads(line)
                    if isinstance(message, dict):
                        self._arrived.append(message)
                self._wake()
        self._wake()

    def _listen_errors(self) -> None:
        with self._stderr:
            while line := self._stderr.readline(STDERR_KEPT_BYTES):
                self._errors += line
                del self._errors[:-STDERR_KEPT_BYTES]

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the messages that have arrived."""
        while self._arrived:
            yield self._arrived.popleft()

    def errors(self) -> str:
        """Return the end of its stderr, which is meant only for the organizer's log."""
        return self._errors.decode("utf-8", "replace").strip()

    def exited(self) -> bool:
        """Return whether the process has ended; this does not reap it."""
        if self._process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def ended(self) -> int | None:
        """Return the exit status, negative for a signal, once the process has ended and all that it said has arrived; None before."""
        if not self.exited():
            return None
        for listener in self._listeners:
            listener.join(timeout=ARRIVES_WITHIN_S)
            if listener.is_alive():  # a grandchild holds the pipe
                self.kill()
                return None
        return self.end()

    def kill(self) -> None:
        """Kill every process of the group; this is always safe, because nothing is sent after the child was reaped."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> int | None:
        """Kill the rest of the group and reap the child; return its exit status, negative for a signal, None if it does not end."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout=ENDS_WITHIN_S)
        return None

    def hear_out(self) -> None:
        """Kill it, and wait until all that it had said has arrived, unless a process that left the group keeps the pipes open."""
        self.end()
        for listener in self._listeners:
            listener.join(timeout=ARRIVES_WITHIN_S)

    def memory_bytes(self) -> int:
        """Measure the resident memory of the process and its descendants."""
        total = 0
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            for member in (process, *process.children(recursive=True)):
                total += member.memory_info().rss
        return total

    def close(self) -> None:
        """Kill everything that is left of it, and remove its folder."""
        self.end()
        shutil.rmtree(self._folder, ignore_errors=True)
