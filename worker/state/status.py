"""The state of a challenge as values, for `status`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from worker.state import Alert, Leader, Store
from worker.state.states import ACTIVE, OutboxKind


@dataclass(frozen=True, kw_only=True)
class Status:
    """The facts that an organizer wants to know.

    Attributes:
        leader: The daemon or command that leads; None if nobody does.
        states: How many submissions are in each state.
        waiting: Submissions whose participants wait for an answer; a new answer after a rescore is none of them.
        oldest_waiting_s: Age of the oldest of them in seconds, by its submission time.
        held: Submissions on hold for a person: pk to reason.
        retried: Submissions that wait for the next try after a failed call, download or evaluation.
        owed: Rows of the outbox.
        alerts: What needs a person.
        last_poll: When the queue was last polled.
        last_reconcile: When the listing was last compared.
        last_push: When the board was last pushed.
        token_expires: When the EvalAI token expires; None for tokens without an expiry date.
        free_bytes: Free disk space for stored files.
    """

    leader: Leader | None
    states: dict[str, int]
    waiting: int
    oldest_waiting_s: float | None
    held: dict[int, str]
    retried: tuple[int, ...]
    owed: int
    alerts: tuple[Alert, ...]
    last_poll: datetime | None
    last_reconcile: datetime | None
    last_push: datetime | None
    token_expires: datetime | None
    free_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        document: dict[str, Any] = TypeAdapter(Status).dump_python(self, mode="json")
        return document


def read_status(
    store: Store, *, now: datetime, led: bool, token_expires: datetime | None, free_bytes: int
) -> Status:
    """Read the state of the challenge; ``led`` says whether a process holds the leader's lock."""
    with store.read() as tx:
        active = tx.submissions(ACTIVE)
        waiting = [row for row in active if row.remote_status != "finished"]
        retried = {row.pk for row in active if row.tries > 0 and row.hold is None}
        retried |= {owed.submission for owed in tx.owed(OutboxKind.POST) if owed.tries > 0}
        times = [row.submitted_at or row.first_seen_at for row in waiting]
        return Status(
            leader=tx.last_leader() if led else None,
            states=tx.counts(),
            waiting=len(waiting),
            oldest_waiting_s=max((now - time).total_seconds() for time in times) if times else None,
            held={row.pk: row.hold_reason or row.hold for row in active if row.hold is not None},
            retried=tuple(sorted(retried)),
            owed=len(tx.owed()),
            alerts=tuple(tx.alerts()),
            last_poll=_instant(tx.fact("polled_at")),
            last_reconcile=_instant(tx.fact("reconciled_at")),
            last_push=_instant(tx.fact("pushed_at")),
            token_expires=token_expires,
            free_bytes=free_bytes,
        )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
