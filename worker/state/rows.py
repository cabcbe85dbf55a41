"""Rows of the durable state, as values; the tables are made from them, see :mod:`worker.state.schema`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any

from sqlalchemy import String

from worker.state.columns import Code, Document, FoldScores, Hash, Name
from worker.state.states import Attempt, OutboxKind, State

LONGEST_WAIT = timedelta(seconds=120)
"""No back-off is longer: what seems to be was set before the clock was set back, and holds nobody up."""
KEY = {"primary_key": True}
INDEXED = {"index": True}


def is_host_team(name: str | None) -> bool:
    """Tell whether a participant team is called as EvalAI calls those through which hosts submit."""
    return re.fullmatch(r"Host_\d+_Team", name or "", re.ASCII) is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmissionRow:
    """A submission as we know it: a row of ``submissions``."""

    pk: int = field(metadata={**KEY, "autoincrement": False})
    state: State = field(metadata=INDEXED)
    first_seen_at: datetime
    # what EvalAI said at first sight; participants can edit some of it later
    message_phase: int | None  # None if the listing brought it
    phase_pk: int | None
    phase: Name | None  # codename
    team_key: int | None
    submitted_at: datetime | None
    input_file: str | None
    public_at_first: bool | None
    created_by: int | None  # the user who sent it, by EvalAI's number
    by_host: bool | None = field(metadata=INDEXED)  # whether a host sent it; None until EvalAI has told
    # what EvalAI says now
    team: str | None
    method: str | None
    project_url: str | None
    publication_url: str | None
    public_now: bool | None
    baseline: bool = False
    flagged: bool = False
    deleted: bool = False
    remote_status: Annotated[str, String(24)] | None
    read_at: datetime | None  # when EvalAI was last asked
    # our state of it
    not_before: datetime | None
    tries: int = 0  # failed tries since the last success, for the back-off
    hold: Code | None  # code of what a person must fix
    hold_reason: str | None
    running_at: datetime | None  # EvalAI accepted `running`; base of the answer grid
    file_hash: Hash | None
    file_bytes: int | None
    content_hash: Hash | None = field(metadata=INDEXED)
    q_mean: float | None
    answer: str | None  # JSON of what is to be posted; decided once, changed by a rescore
    posted: str | None  # the answer that EvalAI accepted last
    reposts: int = 0
    scored_at: datetime | None
    answered_at: datetime | None
    superseded_by: int | None  # pk of the re-run; this one counts until that one is answered
    excluded: str | None  # reason of a disqualification
    calls: int = 0  # EvalAI calls spent on it alone

    @property
    def own(self) -> bool:
        """Whether it is the organizers' own: sent by a host; until that is known, by a team that is called as EvalAI calls theirs."""
        return is_host_team(self.team) if self.by_host is None else self.by_host

    @property
    def board_facts(self) -> tuple[object, ...]:
        """What decides how a scored submission is shown on the board, besides its scores."""
        return (
            self.team,
            self.method,
            self.project_url,
            self.publication_url,
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
class AttemptRow:
    """A row of ``attempts``: one try at a submission; its id is its fencing token."""

    id: int = field(metadata=KEY)
    submission: int = field(metadata=INDEXED)
    kind: Attempt
    worker: Name
    opened_at: datetime
    closed_at: datetime | None
    outcome: Annotated[str, String(16)] | None  # one of Outcome, or of those that an earlier version had
    reason: str | None
    peak_memory_bytes: int | None
    record: Hash | None  # of the phase, which an evaluation was begun on


@dataclass(frozen=True, kw_only=True)
class CellRow:
    """A row of ``cells``: the scores of one content on one task."""

    content_hash: Hash = field(metadata=KEY)
    task: Annotated[str, String(200)] = field(metadata=KEY)
    version: Hash = field(metadata=KEY)
    protocol_hash: Hash = field(metadata=KEY)
    phase: Name
    type: Annotated[str, String(8)]
    row_set: Hash
    folds: Annotated[tuple[float, ...], FoldScores()]
    mean: float | None
    std: float | None
    q: float | None
    failed_folds: int
    seconds: float
    scored_at: datetime
    provenance: str  # JSON: versions, machine, remarks

    @property
    def engine(self) -> str:
        """What trained the probes."""
        return str(json.loads(self.provenance).get("versions", {}).get("engine", "local"))


@dataclass(frozen=True, kw_only=True)
class Owed:
    """A row of ``outbox``."""

    id: int = field(metadata=KEY)
    kind: OutboxKind
    submission: int
    receipt: str | None  # for deletes: always the newest handle
    created_at: datetime
    not_before: datetime
    tries: int = 0
    sent_at: datetime | None  # set before the first byte leaves
    done_at: datetime | None
    last_error: str | None


@dataclass(frozen=True, kw_only=True)
class PhaseRow:
    """A row of ``phases``: what a phase's scores are made from."""

    phase: Name = field(metadata=KEY)
    protocol_hash: Hash
    tasks: Annotated[dict[str, str], Document()]  # identifier to the version that the scores are made from
    frozen_at: datetime | None
    record: Hash | None  # of its current record; None until a phase of an earlier version is recorded


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A row of ``alerts``: something a person should know, raised until it is resolved."""

    key: Annotated[str, String(200)] = field(metadata=KEY)
    code: Code
    text: str
    raised_at: datetime
    seen_at: datetime
    count: int = 1
    sent_at: datetime | None
    resolved_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class AuditStep:
    """A row of ``audit``: what an organizer or EvalAI did."""

    id: int = field(metadata=KEY)
    at: datetime
    actor: Name
    action: Code
    submission: int | None
    detail: Annotated[dict[str, object], Document()]


@dataclass(frozen=True, kw_only=True)
class Event:
    """A row of ``events``: something that decides a board, and that the challenge commits to."""

    id: int = field(metadata=KEY)
    kind: Annotated[str, String(16)]
    subject: Annotated[str, String(120)]  # whom it is about, such as `submission 1001`
    phase: Name | None = field(metadata=INDEXED)
    facts: Hash  # of what it says besides its time, by which a change is noticed
    fields: Annotated[dict[str, Any], Document()]
    nonce: Hash  # what the commitment is salted with
    commitment: Hash = field(metadata={"unique": True})
    batch: int | None  # line of the public log that holds the commitment
