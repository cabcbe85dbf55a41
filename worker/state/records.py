"""Rows of the durable state, as values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from worker.state.states import OutboxKind, State

LONGEST_WAIT = timedelta(seconds=120)
"""No back-off is longer: what seems to be was set before the clock was set back, and holds nobody up."""


def is_host_team(name: str | None) -> bool:
    """Tell whether a participant team is called as EvalAI calls those through which hosts submit."""
    return re.fullmatch(r"Host_\d+_Team", name or "", re.ASCII) is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmissionRow:
    """A submission as we know it: a row of ``submissions``; the columns are described there."""

    pk: int
    state: State
    first_seen_at: datetime
    message_phase: int | None
    phase_pk: int | None
    phase: str | None
    team_key: int | None
    submitted_at: datetime | None
    input_file: str | None
    public_at_first: bool | None
    created_by: int | None
    by_host: bool | None
    team: str | None
    method: str | None
    public_now: bool | None
    baseline: bool
    flagged: bool
    deleted: bool
    remote_status: str | None
    read_at: datetime | None
    not_before: datetime | None
    tries: int
    hold: str | None
    hold_reason: str | None
    running_at: datetime | None
    file_hash: str | None
    file_bytes: int | None
    content_hash: str | None
    q_mean: float | None
    answer: str | None
    posted: str | None
    reposts: int
    scored_at: datetime | None
    answered_at: datetime | None
    superseded_by: int | None
    excluded: str | None
    calls: int

    @property
    def own(self) -> bool:
        """Whether it is the organizers' own: sent by a host; until that is known, by a team that is called as EvalAI calls theirs."""
        return is_host_team(self.team) if self.by_host is None else self.by_host

    @property
    def board_facts(self) -> tuple[object, ...]:
        """What decides how a scored submission stands on the board, besides its scores."""
        return (
            self.team,
            self.method,
            self.public_now,
            self.own,
            self.baseline,
            self.flagged,
            self.deleted,
            self.remote_status == "cancelled",
        )

    @property
    def disputed(self) -> bool:
        """Whether what EvalAI says of it does not fit together: a person must settle that first."""
        return (self.hold or "").startswith("facts.")

    def waits(self, now: datetime) -> bool:
        """Tell whether it must not be touched yet."""
        return self.not_before is not None and now < self.not_before <= now + LONGEST_WAIT

    def can_go_on(self, now: datetime) -> bool:
        """Tell whether neither its next try nor a dispute about its facts is waited for; other holds end by themselves once fixed."""
        return not self.waits(now) and not self.disputed


@dataclass(frozen=True, kw_only=True)
class Owed:
    """A row of the outbox."""

    id: int
    kind: OutboxKind
    submission: int
    receipt: str | None
    created_at: datetime
    not_before: datetime
    tries: int
    sent_at: datetime | None
    done_at: datetime | None
    last_error: str | None


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A row of ``alerts``: something a person should know, raised until it is resolved."""

    key: str
    code: str
    text: str
    raised_at: datetime
    seen_at: datetime
    count: int
    sent_at: datetime | None
    resolved_at: datetime | None
