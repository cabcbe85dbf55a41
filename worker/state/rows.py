"""Rows of the durable state, as values; the tables are made from them, see :mod:`worker.state.schema`.

Times are aware UTC, stored as ISO 8601 text with microseconds, so that they sort and read the same in every database.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import sqlalchemy as sa

from worker.state.states import Outcome, State


class Instant(sa.TypeDecorator[datetime]):
    """An aware UTC time as fixed-width ISO text."""

    impl = sa.String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> str | None:
        """Refuse a naive time, which would silently depend on the machine's time zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("naive datetime")
        return value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> datetime | None:
        """Read it back as aware UTC."""
        return None if value is None else datetime.fromisoformat(value)


Hash = Annotated[str, sa.String(64)]
Code = Annotated[str, sa.String(64)]
Name = Annotated[str, sa.String(100)]
LONGEST_WAIT = timedelta(seconds=120)
"""The longest back-off; a time further in the future was set before the clock was set back, and is ignored."""
ALERT_AFTER_TRIES = 3  # that failed one after the other
HOPELESS_TRIES = 10
"""After so many failed tries in a row, a submission needs a person, and should take no time from others."""
HOPELESS_WAIT = timedelta(minutes=15)
"""The time between its tries from then on."""
LONGEST_LOOK = timedelta(hours=6)
"""The longest time between two looks at an upload that is under way."""
KEY = {"primary_key": True}
INDEXED = {"index": True}


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmissionRow:
    """A submission in our database: a row of ``submissions``."""

    pk: int = field(metadata={**KEY, "autoincrement": False})
    state: State = field(metadata=INDEXED)
    first_seen_at: datetime
    # EvalAI's facts when it was first seen, which stay: anybody may edit them there later
    message_phase: int | None  # None if it was first seen in the listing
    messaged_at: datetime | None  # when a message about it last came
    phase_pk: int | None
    phase: Name | None  # codename
    team_key: int | None
    submitted_at: datetime | None = field(metadata=INDEXED)
    input_file: str | None
    public_at_first: bool | None
    created_by: int | None  # the user who sent it, by EvalAI's number
    # whether a host sent it, by a list of the hosts that was read later than the submission; None while unknown
    by_host: bool | None = field(metadata=INDEXED)
    by_member: bool | None = field(
        metadata=INDEXED
    )  # whether its author belonged to its team; None while unknown
    method: str | None
    project_url: str | None
    publication_url: str | None
    public: bool | None  # as `public_at_first`, or as the organizers decided later
    # EvalAI's facts now
    team: str | None  # name of the team with the number team_key
    evalai_shows: str | None  # JSON, to notice changes: nothing is decided by it after the answer
    # when EvalAI was last asked; None if it must be asked again
    read_at: datetime | None = field(metadata=INDEXED)
    moved: bool = False  # whether EvalAI ever showed another team or phase than at first sight
    # our own state
    not_before: datetime | None  # of the next try, or the moment of the answer
    tries: int = 0  # failed tries since the last success, for the back-off
    hold: Code | None  # code of the problem that a person must fix
    hold_reason: str | None
    running_at: datetime | None  # when EvalAI accepted `running`; base of the answer grid
    file_hash: Hash | None
    content_hash: Hash | None = field(metadata=INDEXED)
    q_mean: float | None
    answer: str | None  # JSON of the answer; changes only if its score changes, or what may be shown of it
    decided_at: datetime  # since when the answer is due; before that, when it was first seen
    sent_at: datetime | None  # set before the first byte of this answer is sent
    posted: str | None  # the last answer that EvalAI accepted
    answer_files: str | None  # where EvalAI keeps it; None until it was read
    reposts: int = 0
    superseded_by: int | None  # pk of the re-run; this submission counts until the re-run is answered
    excluded: str | None  # reason of a disqualification
    insisted: bool = False  # the organizer has it scored although it was cancelled or deleted at EvalAI
    # whether the register may lack something of it: every change says so, see `register` in worker/fairness/register.py
    unregistered: bool = field(default=True, metadata={**INDEXED, "onupdate": True})

    @property
    def own(self) -> bool:
        """Whether a host sent it. While that is unknown, it is a participant's, whatever its team is called."""
        return self.by_host is True

    @property
    def is_rerun(self) -> bool:
        """Whether it repeats another submission: its file's address names that one."""
        return f"/submission_{self.pk}/" not in (self.input_file or "")

    @property
    def at_evalai(self) -> dict[str, Any]:
        """What EvalAI showed last; empty before the first reading."""
        return dict(json.loads(self.evalai_shows or "{}"))

    @property
    def remote_status(self) -> str | None:
        """The status that EvalAI showed last."""
        return self.at_evalai.get("status")

    def showing(self, **changes: object) -> str:
        """Return what EvalAI shows after changes by us, as stored."""
        return json.dumps({**self.at_evalai, **changes}, sort_keys=True)

    @property
    def disputed(self) -> bool:
        """Whether EvalAI's facts about it contradict each other, so that a person must act first."""
        return (self.hold or "").startswith("facts.")

    @property
    def due_at(self) -> datetime:
        """When the answer that is decided may leave."""
        return self.not_before or self.decided_at

    def waits(self, now: datetime) -> bool:
        """Return whether it is too early to continue with it."""
        longest = HOPELESS_WAIT if self.tries >= HOPELESS_TRIES else LONGEST_WAIT
        if self.state is State.UPLOADING:
            longest = LONGEST_LOOK
        return self.not_before is not None and now < self.not_before <= now + longest

    def can_go_on(self, now: datetime) -> bool:
        """Return whether it can continue now: its next try is due, and its facts do not contradict each other.

        Other holds do not count, because they end by themselves once their cause is fixed.
        """
        return not self.waits(now) and not self.disputed


@dataclass(frozen=True, kw_only=True)
class AttemptRow:
    """A row of ``attempts``: one try to score a submission."""

    id: int = field(metadata=KEY)
    submission: int = field(metadata=INDEXED)
    opened_at: datetime
    closed_at: datetime | None
    outcome: Outcome | None


@dataclass(frozen=True, kw_only=True)
class CellRow:
    """A row of ``cells``: the scores of one content on one task."""

    content_hash: Hash = field(metadata=KEY)
    task: Annotated[str, sa.String(200)] = field(metadata=KEY)
    version: Hash = field(metadata=KEY)
    protocol_hash: Hash = field(metadata=KEY)
    phase: Name = field(metadata=INDEXED)
    row_set: Hash
    test_parts: Annotated[list[int], sa.JSON()]
    folds: Annotated[list[float | None], sa.JSON()]  # null for a failed fold, which JSON has no NaN for
    q: float | None
    provenance: Annotated[dict[str, Any], sa.JSON()]  # versions and machine with which it was scored


@dataclass(frozen=True, kw_only=True)
class PhaseRow:
    """A row of ``phases``: what a phase's scores are made from."""

    phase: Name = field(metadata=KEY)
    protocol_hash: Hash
    tasks: Annotated[dict[str, str], sa.JSON()]  # identifier to the version from which the scores are made
    closed_at: datetime | None
    record: Hash  # hash of its current record


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A row of ``alerts``: something a person should know, raised until it is resolved."""

    key: Annotated[str, sa.String(200)] = field(metadata=KEY)
    code: Code
    text: str
    raised_at: datetime
    ends_at: datetime | None  # None: with its cause
    sent_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Event:
    """A row of ``events``: something that decides a board and to which the challenge commits."""

    id: int = field(metadata=KEY)
    kind: Annotated[str, sa.String(16)]
    subject: Annotated[str, sa.String(120)]  # what it is about, such as `submission 1001`
    phase: Name | None = field(metadata=INDEXED)
    facts: Hash  # hash of its contents without the time, to detect changes
    fields: Annotated[dict[str, Any], sa.JSON()]
    nonce: Hash  # salt of the commitment
    commitment: Hash = field(metadata={"unique": True})
    batch: int | None  # number of the log line that contains the commitment
