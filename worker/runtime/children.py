"""Child processes, which may be killed at any moment.

A child reads its order from stdin (nothing secret is on a command line or in an environment) and responds with JSON lines on stdout. It has
its own process group, which is killed as a whole (:mod:`worker.runtime.process_group`), and it dies with its parent. Participants' files
are parsed only in children.

A child handles one order and ends, so that no submission can affect another one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from worker.runtime.cgroup import Ceiling
from worker.runtime.process_group import ProcessGroup

KEPT_ENVIRONMENT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "VIRTUAL_ENV", "XDG_CACHE_HOME"),
    *("NUMBA_CACHE_DIR", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"),
    # Which GPU to use, and where a container has its driver.
    *("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
)
"""The environment variables that a child may see; none holds a token or a secret."""
STDERR_KEPT_BYTES = 8192
LINE_LIMIT_BYTES = 64 * 1024 * 1024  # of one message; a scorecard of 100 tasks x 1,000 folds takes 2 MB


class Child:
    """One process with its order.

    Args:
        module: Python module to run, e.g. ``worker.evaluation.evaluate_child``.
        order: What it is to do, sent as JSON.
        folder: Its temporary folder, in which it works; made here, and always removed by :meth:`close`.
        wake: Called from a thread when a message has arrived or the child has ended.
        ceiling: The cgroup that limits its memory, if any.

    Attributes:
        group: The process and all that it starts.

    Raises:
        OSError: If its folder cannot be made, or the machine cannot start another process.
    """

    def __init__(
        self,
        module: str,
        order: Mapping[str, object],
        *,
        folder: Path,
        wake: Callable[[], None],
        ceiling: Ceiling | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        environment = {key: os.environ[key] for key in KEPT_ENVIRONMENT if key in os.environ}
        environment |= {"PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment["TMPDIR"] = str(folder)
        command = [sys.executable, "-P", "-m", "worker.runtime.child_main", module]
        self.folder = folder
        self.group = group = ProcessGroup(command, folder=folder, environment=environment)
        if ceiling is not None:
            group.limit(ceiling)
        self._stdin, self._stdout, self._stderr = self.group.streams
        self._arrived: deque[dict[str, Any]] = deque()
        self._errors = bytearray()
        self._wake = wake
        self._listener = threading.Thread(target=self._listen, daemon=True, name=f"child-{group.pid}-out")
        self._listener.start()
        threading.Thread(target=self._listen_errors, daemon=True, name=f"child-{group.pid}-err").start()
        # A thread, because a child that is still starting accepts no more than a pipe holds.
        threading.Thread(target=self._send, args=(order,), daemon=True, name=f"child-{group.pid}-in").start()

    def _send(self, order: Mapping[str, object]) -> None:
        """Send the order and close stdin; :meth:`ended` notices a dead child."""
        with contextlib.suppress(OSError, ValueError):
            self._stdin.write(json.dumps(order).encode())
            self._stdin.close()

    def _listen(self) -> None:
        while line := self._stdout.readline(LINE_LIMIT_BYTES):
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict):
                    self._arrived.append(message)
            self._wake()
        self._wake()

    def _listen_errors(self) -> None:
        while chunk := self._stderr.read1(4096):
            self._errors += chunk
            del self._errors[:-STDERR_KEPT_BYTES]

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the messages that have arrived."""
        while self._arrived:
            yield self._arrived.popleft()

    def ended(self) -> int | None:
        """Return the exit status, negative for a signal, once the process has ended and all its messages have arrived; None before."""
        if not self.group.exited():
            return None
        if self._listener.is_alive():
            self._listener.join(timeout=0.2)
            if self._listener.is_alive():  # a grandchild holds the pipe
                self.group.kill()
                return None
        return self.group.end()

    def errors(self) -> str:
        """Return the end of its stderr, which is meant only for the organizer's log."""
        return self._errors.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Kill everything that is left of it, and remove its folder."""
        self.group.close()
        shutil.rmtree(self.folder, ignore_errors=True)
