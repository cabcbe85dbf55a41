"""A process group: a child and all processes that it starts are measured, limited and killed together.

The group's number is its leader's process id. The kernel reuses that number only after the leader was reaped, so the leader is reaped only
after the whole group was killed. A signal therefore never reaches an unrelated process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import cast

import psutil

from worker.runtime.cgroup import Ceiling

ENDS_WITHIN_S = 4  # for a killed process, unless the kernel itself hangs


class ProcessGroup:
    """One process in a session of its own, and its descendants.

    Args:
        command: Program and arguments.
        folder: Its working directory.
        environment: Its whole environment.

    Raises:
        OSError: If the machine cannot start another process.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
    ) -> None:
        self._ceiling: Ceiling | None = None
        self.peak_memory_bytes = 0
        self._leader = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
        )

    def limit(self, ceiling: Ceiling) -> None:
        """Move the leader, and all processes that it will start, into a cgroup, which is ended with this group.

        The kernel counts memory that is allocated from now on; earlier memory remains with the cgroup that the process leaves.
        """
        self._ceiling = ceiling
        ceiling.admit(self._leader.pid)

    @property
    def pid(self) -> int:
        """Process id of the leader, which is also the group's number."""
        return self._leader.pid

    @property
    def streams(self) -> tuple[BufferedWriter, BufferedReader, BufferedReader]:
        """The leader's stdin, stdout and stderr, which are pipes."""
        leader = self._leader
        return cast(
            "tuple[BufferedWriter, BufferedReader, BufferedReader]",
            (leader.stdin, leader.stdout, leader.stderr),
        )

    def exited(self) -> bool:
        """Return whether the leader has ended; this does not reap it."""
        if self._leader.returncode is not None:
            return True
        try:
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._leader.pid, options) is not None
        except ChildProcessError:  # SIGCHLD is ignored, so the kernel has reaped it
            return True

    def kill(self) -> None:
        """Kill every process of the group; this is always safe, because nothing is sent after the leader was reaped."""
        if self._leader.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader.pid, signal.SIGKILL)
        if self._ceiling is not None:
            self._ceiling.kill()

    def end(self) -> int | None:
        """Kill the rest of the group and reap the leader; return its exit status, negative for a signal, None if it does not end."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._leader.wait(timeout=ENDS_WITHIN_S)
        return None

    def memory_bytes(self) -> int:
        """Measure the resident memory of the process and its descendants, and remember the peak."""
        total = 0
        try:
            process = psutil.Process(self._leader.pid)
            for member in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    total += member.memory_info().rss
        except psutil.Error:
            return 0
        self.peak_memory_bytes = max(self.peak_memory_bytes, total)
        return total

    def out_of_memory(self) -> bool:
        """Return whether the kernel killed it for exceeding its cgroup's limit."""
        return self._ceiling is not None and self._ceiling.hit()

    def close(self) -> None:
        """Kill the rest of the group, and close the leader's streams and the cgroup."""
        self.end()
        for stream in self.streams:
            with contextlib.suppress(OSError):
                stream.close()
        if self._ceiling is not None:
            self._ceiling.remove()
