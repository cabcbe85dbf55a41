"""The leader is the one process that takes and answers submissions, and pushes; each new leader begins an epoch.

A leader that has lost its lock without noticing (its machine slept, its network broke) finds a later epoch at its next write, and ends.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from datetime import datetime

from scoring.errors import InfrastructureError
from worker.state.notices import Notices

_LEADER = "leader"


class Deposed(InfrastructureError):
    """This process is no longer the leader, and must not finish what it was about to do."""


@dataclass(frozen=True, kw_only=True)
class Leader:
    """The process that became the leader last.

    Attributes:
        epoch: How many leaders there have been, including this one.
        host: Its machine.
        process: Its process id there.
        since: When it became the leader, ISO 8601.
    """

    epoch: int
    host: str
    process: int
    since: str


class Leadership(Notices):
    """Methods for leadership."""

    def last_leader(self) -> Leader | None:
        """Return the last leader, whether or not its process still runs."""
        stored = self.fact(_LEADER)
        return None if stored is None else Leader(**json.loads(stored))

    def begin_epoch(self, now: datetime) -> int:
        """Record that this process leads; return its epoch."""
        last = self.last_leader()
        leader = Leader(
            epoch=1 if last is None else last.epoch + 1,
            host=socket.gethostname(),
            process=os.getpid(),
            since=now.isoformat(),
        )
        self.set_fact(_LEADER, json.dumps(asdict(leader)))
        return leader.epoch

    def check_epoch(self, epoch: int) -> None:
        """Check that no other process has become the leader since.

        Raises:
            Deposed: If another process has.
        """
        last = self.last_leader()
        if last is None or last.epoch != epoch:
            raise Deposed(
                "Another worker leads this challenge now, so this worker has stopped.",
                cure="Do nothing. When this worker is restarted, it waits until no other worker leads (on SQLite, it exits instead).",
                code="leader.deposed",
            )
