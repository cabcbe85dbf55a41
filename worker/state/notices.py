"""Alerts and named facts, among them the leader and the publish cycles.

The leader is the one process that takes and answers submissions, and pushes; each new leader begins an epoch. A leader that has lost its
lock without noticing (its machine slept, its network broke) finds a later epoch at its next write, and ends.

A publish cycle publishes everything that was decided before it began. A decision raises the requested generation. The next cycle covers
all generations requested before it began, and when its push has ended, they are completed or have failed. A request that comes during a
cycle is covered by the next one.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from scoring.errors import InfrastructureError, NeucoError, error_document, read_error
from worker.state.rows import Alert
from worker.state.schema import Tables, alerts, facts

ALERT_CODES = frozenset(
    {
        "act.timed_out",
        "beacon.*",
        "board.folds_differ",
        "challenge.paused",
        "child.start",
        "clock.wrong",
        "disk.*",
        "download.broken",
        "download.host",
        "download.redirected",
        "engine.*",
        "evalai.challenge_differs",
        "evalai.email_unverified",
        "evalai.hosts_changed",
        "evalai.hosts_unknown",
        "evalai.metric_differs",
        "evalai.not_found",
        "evalai.not_permitted",
        "evalai.phase_unknown",
        "evalai.redirected",
        "evalai.rejected",
        "evalai.server_address",
        "evalai.split_unknown",
        "evalai.throttled",
        "evalai.token_form",
        "evalai.token_refused",
        "evalai.unintelligible",
        "evalai.unreachable",
        "evaluate.*",
        "facts.author_not_in_team",
        "facts.changed",
        "facts.number_used",
        "facts.other_challenge",
        "facts.phase_unconfigured",
        "facts.sender_unusual",
        "fetch.*",
        "file.link_expired",
        "leaderboard.*",
        "leaderboard.overwritten",
        "leaderboard.rewritten",
        "library.*",
        "memory",
        "phase.end_moved",
        "phase.not_open",
        "phase.not_recorded",
        "phase.open",
        "phase.paused",
        "queue.foreign",
        "record.*",
        "restore.answered_since",
        "secret.*",
        "state.*",
        "submission.answered_elsewhere",
        "submission.given_up",
        "submission.quota",
        "submission.set_back",
        "submission.timed_out",
        "submission.unreadable",
        "team.name_alike",
        "submission.waiting",
        "unexpected",
        "upload.unfinished",
    }
)
"""Codes, and families of codes whose errors say themselves what to do."""
ALERT_KEPT_FOR = timedelta(days=1)  # an alert about what has happened


def alert_code(code: str) -> str:
    """Return the code under which an error is reported: its own if the runbook explains it, else that of unexpected errors."""
    family = f"{code.partition('.')[0]}.*"
    return code if not ALERT_CODES.isdisjoint((code, family)) else "unexpected"


RESTORED = "restored_from"  # set while the state comes from a backup: the time until which it is complete
ATTESTED = "promised_at"  # the latest time on any attestation
REVEALED = "revealed_at"  # when something was last revealed
AT_EVALAI = "at_evalai"  # deadlines and limits of the phases
LOG_UNSEEN = "log_unseen"  # set while a restored state may lack lines of the public log of receipts

_LEADER, _CYCLES = "leader", "publish_cycles"
_ALERTS = sa.select(alerts).order_by(alerts.c.raised_at)
_FACT = sa.select(facts.c.value).where(facts.c.name == sa.bindparam("fact"))


PAUSE = "pause"  # a named fact, and the key of its alert


@dataclass(frozen=True, kw_only=True)
class Pause:
    """What the organizers have stopped.

    Attributes:
        mode: ``pause``: scoring; ``drain``: taking more submissions.
        since: Since when, ISO 8601.
    """

    mode: Literal["pause", "drain"]
    since: str

    @property
    def sentence(self) -> str:
        """Say what is stopped, since when, and how it ends."""
        follows = {"pause": "nothing is scored", "drain": "no more submissions are received"}[self.mode]
        since = f"{datetime.fromisoformat(self.since):%Y-%m-%d %H:%M} UTC"
        return f"The challenge has been paused since {since}: {follows}. `neuco-worker challenge pause --undo` ends this."


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


@dataclass(frozen=True, kw_only=True)
class Completed:
    """The last cycle that was pushed.

    Attributes:
        generation: All generations up to this one are in the repository.
        commit: The commit that contains them.
        changed: Whether the cycle changed anything in the repository.
    """

    generation: int = 0
    commit: str = ""
    changed: bool = False


class Notices(Tables):
    """Methods for alerts and facts."""

    def raise_alert(self, key: str, code: str, text: str, *, now: datetime, happened: bool = False) -> None:
        """Raise an alert about something that needs a person.

        Args:
            key: What it is about. Whoever raises it there again only changes its text.
            code: One of :data:`ALERT_CODES`, which the runbook explains.
            text: What it says.
            now: The time.
            happened: Whether it is about an event, and ends a day after the last one; any other is resolved when its cause has gone.

        Raises:
            ValueError: If the runbook does not explain the code.
        """
        if alert_code(code) != code:
            raise ValueError(f"ALERT_CODES lacks {code}")
        values = {"code": code, "text": text, "ends_at": now + ALERT_KEPT_FOR if happened else None}
        raised = self._connection.execute(alerts.update().where(alerts.c.key == key).values(values))
        if raised.rowcount == 0:
            self._connection.execute(alerts.insert().values(key=key, raised_at=now, **values))

    def report(self, key: str, error: NeucoError, *, now: datetime) -> None:
        """Raise an alert about an error that is not a participant's."""
        self.raise_alert(key, alert_code(error.code), error.message, now=now)

    def resolve_alert(self, key: str) -> None:
        """Resolve an alert, if it was raised."""
        self._connection.execute(alerts.delete().where(alerts.c.key == key))

    def resolve_faults(self, step: str, families: Collection[str]) -> None:
        """Resolve the alerts about faults of a step that are not about one submission: their keys name a code of one of these families."""
        found = [alerts.c.key.like(f"{step}:{family}.%") for family in families]
        self._connection.execute(alerts.delete().where(sa.or_(*found)))

    def alerts(self) -> list[Alert]:
        """Return all alerts, the oldest first."""
        return self._all(Alert, _ALERTS)

    def alert_sent(self, alert: Alert, *, now: datetime) -> None:
        """Record that the organizer was told, unless the alert was resolved and raised again meanwhile."""
        same = (alerts.c.key == alert.key) & (alerts.c.raised_at == alert.raised_at)
        self._connection.execute(alerts.update().where(same).values(sent_at=now))

    def fact(self, name: str) -> str | None:
        """Return a named fact."""
        return self._connection.execute(_FACT, {"fact": name}).scalar()

    def set_fact(self, name: str, value: str | None) -> None:
        """Set or remove a named fact."""
        self._connection.execute(facts.delete().where(facts.c.name == name))
        if value is not None:
            self._connection.execute(facts.insert().values(name=name, value=value))

    def document(self, name: str) -> dict[str, Any]:
        """Return a named fact that is a JSON object, empty if it was never set."""
        document: dict[str, Any] = json.loads(self.fact(name) or "{}")
        return document

    def pause(self) -> Pause | None:
        """Return what the organizers have stopped, if anything."""
        document = self.document(PAUSE)
        return Pause(**document) if document else None

    def is_paused(self, mode: Literal["pause", "drain"]) -> bool:
        """Return whether the organizers have stopped scoring (``pause``), or taking more submissions (``drain``)."""
        pause = self.pause()
        return pause is not None and pause.mode == mode

    def set_pause(self, mode: Literal["pause", "drain"] | None, *, now: datetime) -> None:
        """Begin a pause, or end it; a pause that lasts already keeps its beginning."""
        before = self.pause()
        since = before.since if before else now.isoformat()
        self.set_fact(PAUSE, json.dumps(asdict(Pause(mode=mode, since=since))) if mode else None)
        if mode is None:
            self.resolve_alert(PAUSE)

    def attestation_time(self, now: datetime) -> datetime:
        """Return the time to write on an attestation (a commitment, a receipt, a board, a reveal): later than on all earlier ones.

        Verifiers order attestations by these times, and a clock that is set back, or is behind another machine's, must not change the
        order.
        """
        last = self.fact(ATTESTED)
        at = now if last is None else max(now, datetime.fromisoformat(last) + timedelta(microseconds=1))
        self.set_fact(ATTESTED, at.isoformat())
        return at

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

    def check_epoch(self, epoch: int) -> None:
        """Check that no other process has become the leader since.

        Raises:
            Deposed: If another process has.
        """
        if self.document(_LEADER).get("epoch") != epoch:
            raise Deposed(
                "Another worker leads this challenge now, so this worker has stopped.",
                hint="Do nothing. When this worker is restarted, it waits until no other worker leads (on SQLite, it exits instead).",
                code="leader.deposed",
            )

    def request_publish(self, *, awaited: bool = False) -> int:
        """Request a cycle that begins after this moment; return its generation.

        Args:
            awaited: Whether a caller waits for it, so that it begins at once.
        """
        generation = self.requested_publish() + 1
        self._note_cycle(requested=generation, **({"awaited": generation} if awaited else {}))
        return generation

    def requested_publish(self) -> int:
        """Return the last requested generation."""
        return int(self.document(_CYCLES).get("requested", 0))

    def completed_publish(self) -> Completed:
        """Return the last completed cycle."""
        return Completed(**self.document(_CYCLES).get("completed", {}))

    def publish_awaited(self) -> bool:
        """Return whether a caller waits for a cycle that has neither been completed nor failed."""
        cycles = self.document(_CYCLES)
        ended = max(self.completed_publish().generation, cycles.get("failed", 0))
        return bool(cycles.get("awaited", 0) > ended)

    def complete_publish(self, completed: Completed) -> None:
        """Record that a cycle has been pushed."""
        self._note_cycle(completed=asdict(completed), failed=0)

    def fail_publish(self, generation: int, error: NeucoError) -> None:
        """Record why a cycle could not be pushed; it will be repeated."""
        self._note_cycle(failed=generation, error=error_document(error))

    def publish_failure(self, generation: int) -> NeucoError | None:
        """Return why the cycle of a generation, or of a later one, could not be pushed; None if none has failed."""
        cycles = self.document(_CYCLES)
        return None if cycles.get("failed", 0) < generation else read_error(cycles["error"])

    def _note_cycle(self, **values: Any) -> None:
        self.set_fact(_CYCLES, json.dumps({**self.document(_CYCLES), **values}))
