"""Who leads: the one process that calls EvalAI and pushes; every take-over begins an epoch of its own.

A leader that has lost its lock without knowing (its machine slept, its network broke) finds a later epoch with its next write, and ends.
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
    """This process does not lead any more: whatever it was about to do is another one's affair."""


@dataclass(frozen=True, kw_only=True)
class Leader:
    """Who became the leader last.

    Attributes:
        epoch: How many leaders there were, this one included.
        host: Its machine.
        process: Its number there.
        since: When it became the leader, ISO 8601.
    """

    epoch: int
    host: str
    process: int
    since: str


class Leadership(Notices):
    """The verbs of leading."""

    def last_leader(self) -> Leader | None:
        """Return who became the leader last, whether or not it still lives."""
        found = self.fact(_LEADER)
        return None if found is None else Leader(**json.loads(found))

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
        """Check that nobody has become the leader since.

        Raises:
            Deposed: If somebody has.
        """
        last = self.last_leader()
        if last is None or last.epoch != epoch:
            raise Deposed(
                "Another worker leads this challenge now, so this worker has stopped.",
                cure="Do nothing. After a restart, it waits as the standby, or names the leader and ends.",
                code="leader.deposed",
            )
