"""Children: processes of our own that may be killed at any moment.

A child reads one JSON line from stdin (nothing secret on a command line or in an environment), answers with JSON lines on stdout, and
lives in its own process group, which is killed whole. It watches its parent and dies with it. What a participant sent is parsed nowhere
else.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

KEPT_ENVIRONMENT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "VIRTUAL_ENV", "XDG_CACHE_HOME"),
    *("NUMBA_CACHE_DIR", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
)
"""What a child may see of our environment; tokens and secrets are not among it."""
STDERR_KEPT_BYTES = 8192
LINE_LIMIT_BYTES = 64 * 1024 * 1024  # of one answer; a scorecard of 100 tasks x 1,000 folds has 2 MB


class Child:
    """One process.

    Args:
        module: Python module to run, e.g. ``worker.evaluate_child``.
        order: What it shall do, sent as one JSON line.
        folder: Its temporary folder; made here, removed by :meth:`close` in every outcome.
        wake: Called from a thread when something arrived or the child ended.

    Raises:
        OSError: If the machine has no room for another process or its folder.
    """

    def __init__(self, module: str, order: dict[str, Any], *, folder: Path, wake: Callable[[], None]) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        environment = {key: os.environ[key] for key in KEPT_ENVIRONMENT if key in os.environ}
        environment |= {
            "TMPDIR": str(folder),
            "PYTHONUNBUFFERED": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "worker.child_main", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._arrived: deque[dict[str, Any]] = deque()
        self._errors = bytearray()
        self._wake = wake
        self.peak_memory_bytes = 0
        self._threads = [
            threading.Thread(target=self._listen, daemon=True, name=f"child-{self._process.pid}-out"),
            threading.Thread(target=self._listen_errors, daemon=True, name=f"child-{self._process.pid}-err"),
        ]
        for thread in self._threads:
            thread.start()
        self.send(order)

    @property
    def pid(self) -> int:
        """Process id, which is also its group's id."""
        return self._process.pid

    def send(self, message: dict[str, Any]) -> None:
        """Send one JSON line; a dead child is noticed by :meth:`ended`, not here."""
        stdin = self._process.stdin
        if stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                stdin.write(json.dumps(message).encode() + b"\n")
                stdin.flush()

    def _listen(self) -> None:
        stdout = self._process.stdout
        if stdout is None:
            return
        while line := stdout.readline(LINE_LIMIT_BYTES):
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict):
                    self._arrived.append(message)
            self._wake()
        self._wake()

    def _listen_errors(self) -> None:
        stderr = self._process.stderr
        if stderr is None:
            return
        while chunk := stderr.read1(4096) if hasattr(stderr, "read1") else stderr.read(4096):
            self._errors += chunk
            del self._errors[:-STDERR_KEPT_BYTES]

    def receive(self) -> dict[str, Any] | None:
        """Return the next message, if one has arrived."""
        return self._arrived.popleft() if self._arrived else None

    @property
    def pending(self) -> bool:
        """Whether messages wait to be received."""
        return bool(self._arrived)

    def ended(self) -> int | None:
        """Return the exit status once the process is gone and all it said has arrived; negative for a signal."""
        status = self._process.poll()
        if status is None:
            return None
        if self._threads[0].is_alive():
            self._threads[0].join(timeout=0.2)
            if self._threads[0].is_alive():  # a grandchild holds the pipe
                self._kill_group()
                return None
        return status

    def memory_bytes(self) -> int:
        """Measure the resident memory of the process and its descendants, and remember the peak."""
        total = 0
        try:
            process = psutil.Process(self._process.pid)
            for member in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    total += member.memory_info().rss
        except psutil.Error:
            return 0
        self.peak_memory_bytes = max(self.peak_memory_bytes, total)
        return total

    def errors(self) -> str:
        """Return the end of its stderr: for the organizer's log alone."""
        return self._errors.decode("utf-8", "replace").strip()

    def kill(self) -> None:
        """Kill the whole group; safe to call at any time."""
        self._kill_group()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill what is left of it and remove its folder."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)
