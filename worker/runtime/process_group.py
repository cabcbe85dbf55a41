"""A group of processes: what one child and whatever it starts may use, and how all of it is ended at once.

The group's number is its leader's process id. The kernel gives that number to somebody else only after the leader was reaped, so the
leader is left unreaped until the whole group was killed: a signal never reaches a stranger.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

from worker.runtime.cgroup import Ceiling

ENDS_WITHIN_S = 4  # a killed process, unless the kernel itself is stuck


class ProcessGroup:
    """One process in a session of its own, and its descendants.

    Args:
        command: Program and arguments.
        folder: Where it runs.
        environment: All that it sees.

    Raises:
        OSError: If the machine has no room for another process.
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
        """Put the leader, and all that it will start, under a ceiling that is ended with this group.

        The kernel counts what is taken from then on; what a process had before stays with the group that it leaves.
        """
        self._ceiling = ceiling
        ceiling.admit(self._leader.pid)

    @property
    def pid(self) -> int:
        """Process id of the leader, which is also the group's number."""
        return self._leader.pid

    @property
    def streams(self) -> tuple[IO[bytes] | None, IO[bytes] | None, IO[bytes] | None]:
        """The leader's stdin, stdout and stderr."""
        return self._leader.stdin, self._leader.stdout, self._leader.stderr

    def exited(self) -> bool:
        """Return whether the leader is gone; it is not reaped by this."""
        if self._leader.returncode is not None:
            return True
        try:
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._leader.pid, options) is not None
        except ChildProcessError:  # somebody who ignores SIGCHLD has reaped it for us
            return True

    def kill(self) -> None:
        """Kill every process of the group; safe to call at any time, because nothing is sent once the leader was reaped."""
        if self._leader.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader.pid, signal.SIGKILL)
        if self._ceiling is not None:
            self._ceiling.kill()

    def end(self) -> int | None:
        """Kill what is left and reap the leader; return its exit status, negative for a signal, None if it does not go."""
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
        """Return whether the kernel ended it for going over its ceiling."""
        return self._ceiling is not None and self._ceiling.hit()

    def close(self) -> None:
        """Kill what is left of it, and close everything that it held open here."""
        self.end()
        for stream in self.streams:
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self._ceiling is not None:
            self._ceiling.remove()
