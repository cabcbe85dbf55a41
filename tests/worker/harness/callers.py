"""Which processes make the calls that reach a sandbox."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import psutil
from flask import request

from worker.sandbox import Journal, JournalEntry

DOWNLOAD = "worker.fetching.fetch_child"
"""A word on the command line of a process that downloads a submitted file."""


@dataclass(frozen=True)
class Caller:
    """A process: its id, its parent's id and the words of its command line."""

    pid: int
    parent: int
    command: tuple[str, ...]


class CallersJournal(Journal):
    """A sandbox's journal that also notes the process behind each call.

    The kernel tells whose a connection is as long as it is open, so the process is looked up while its call is answered. Put the journal in
    place of ``sandbox.world.journal`` before anybody calls.

    Attributes:
        made: How many calls each process made.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made: Counter[Caller] = Counter()

    def write(self, kind: Any, **fields: Any) -> JournalEntry:
        """Append an entry; if it is a call, note who made it."""
        if kind == "request":
            self.made[_caller()] += 1
        return super().write(kind, **fields)


def _caller() -> Caller:
    """Return the process at the other end of the connection that is being answered.

    A process that is being started holds its parent's connections for a moment, so the oldest holder of this connection is returned.

    Raises:
        RuntimeError: If no process on this machine has it.
    """
    ends = int(request.environ["REMOTE_PORT"]), int(request.environ["SERVER_PORT"])
    while True:
        holders = (found.pid for found in psutil.net_connections("tcp") if _is_between(found, ends))
        pid = next((pid for pid in holders if pid is not None), None)
        if pid is None:
            raise RuntimeError(f"nobody on this machine has the connection from port {ends[0]}")
        with contextlib.suppress(psutil.NoSuchProcess):  # it was one that was being started
            process = psutil.Process(pid)
            while (parent := process.parent()) is not None and _holds(parent, ends):
                process = parent
            return Caller(process.pid, process.ppid(), tuple(process.cmdline()))


def _holds(process: psutil.Process, ends: tuple[int, int]) -> bool:
    """Return whether a process has the connection from one port to another; a process of another user cannot have one of ours."""
    with contextlib.suppress(psutil.AccessDenied):
        return any(_is_between(found, ends) for found in process.net_connections("tcp"))
    return False


def _is_between(connection: Any, ends: tuple[int, int]) -> bool:
    if not connection.laddr or not connection.raddr:
        return False
    return (connection.laddr.port, connection.raddr.port) == ends
