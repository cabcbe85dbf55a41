"""The leader: the one process that takes and answers submissions, and pushes.

Each new leader begins an epoch. A leader that has lost its lock without noticing (its machine slept, its network broke) finds a later epoch
at its next write, and ends.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from datetime import datetime

from scoring.errors import InfrastructureError
from worker.state.facts import Facts

_LEADER = "leader"


class StateFailed(InfrastructureError):
    """The database cannot be read or written."""


class Deposed(StateFailed):
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


class Leadership(Facts):
    """Methods for the leader."""

    def last_leader(self) -> Leader | None:
        """Return the last leader, whether or not its process still runs."""
        document = self.document(_LEADER)
        return Leader(**document) if document else None

    def begin_epoch(self, now: datetime) -> int:
        """Record that this process leads; return its epoch."""
        epoch = self.document(_LEADER).get("epoch", 0) + 1
        leader = Leader(epoch=epoch, host=socket.gethostname(), process=os.getpid(), since=now.isoformat())
        self.set_fact(_LEADER, json.dumps(asdict(leader)))
        return leader.epoch

    def check_epoch(self, epoch: int | None) -> None:
        """Check that no other process has become the leader since an epoch began; None stands for no epoch.

        Raises:
            Deposed: If another process has.
        """
        if epoch is not None and self.document(_LEADER).get("epoch") != epoch:
            raise Deposed(
                "Another worker leads this challenge now, so this worker has stopped.",
                hint="Do nothing. When this worker is restarted, it waits until no other worker leads (on SQLite, it exits instead).",
                code="leader.deposed",
            )
