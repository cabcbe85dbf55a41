"""The tables of the durable state.

Times are aware UTC, stored as ISO 8601 text with microseconds so that they sort and read the same in every database. JSON is text.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)


class Instant(TypeDecorator[datetime]):
    """An aware UTC time as fixed-width ISO text."""

    impl = String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        """Refuse naive times: they would silently mean the machine's zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("naive datetime")
        return value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Read it back as aware UTC."""
        return None if value is None else datetime.fromisoformat(value)


metadata = MetaData()

submissions = Table(
    "submissions",
    metadata,
    Column("pk", Integer, primary_key=True, autoincrement=False),
    Column("state", String(16), nullable=False, index=True),
    Column("first_seen_at", Instant, nullable=False),
    # what EvalAI said at first sight; participants can edit some of it later
    Column("message_phase", Integer),  # None if the listing brought it
    Column("phase_pk", Integer),
    Column("phase", String(100)),  # codename
    Column("team_key", Integer),
    Column("submitted_at", Instant),
    Column("input_file", Text),
    Column("public_at_first", Boolean),
    Column("created_by", Integer),  # the user who sent it, by EvalAI's number
    Column("by_host", Boolean, index=True),  # whether a host sent it; None until EvalAI has told
    # what EvalAI says now
    Column("team", Text),
    Column("method", Text),
    Column("public_now", Boolean),
    Column("baseline", Boolean, nullable=False, default=False),
    Column("flagged", Boolean, nullable=False, default=False),
    Column("deleted", Boolean, nullable=False, default=False),
    Column("remote_status", String(24)),
    Column("read_at", Instant),  # when EvalAI was last asked
    # where we stand
    Column("not_before", Instant),
    Column(
        "tries", Integer, nullable=False, default=0
    ),  # failed tries since the last success, for the back-off
    Column("hold", String(64)),  # code of what a person must mend
    Column("hold_reason", Text),
    Column("running_at", Instant),  # EvalAI accepted `running`; base of the answer grid
    Column("file_hash", String(64)),
    Column("file_bytes", Integer),
    Column("content_hash", String(64), index=True),
    Column("q_mean", Float),
    Column("answer", Text),  # JSON of what is to be posted; decided once, changed by a rescore
    Column("posted", Text),  # the answer that EvalAI accepted last
    Column("reposts", Integer, nullable=False, default=0),
    Column("scored_at", Instant),
    Column("answered_at", Instant),
    Column("superseded_by", Integer),  # pk of the re-run; this one counts until that one is answered
    Column("excluded", Text),  # reason of a disqualification
    Column("calls", Integer, nullable=False, default=0),  # EvalAI calls spent on it alone
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("submission", Integer, ForeignKey("submissions.pk"), nullable=False, index=True),
    Column("kind", String(16), nullable=False),
    Column("worker", String(100), nullable=False),
    Column("opened_at", Instant, nullable=False),
    Column("lease_until", Instant),  # unused
    Column("fence", Integer, nullable=False, default=0),  # unused: an attempt's id is its fencing token
    Column("closed_at", Instant),
    Column("outcome", String(16)),
    Column("reason", Text),
    Column("peak_memory_bytes", Integer),
    Column("record", String(64)),  # of the phase, which an evaluation was begun on
)

cells = Table(
    "cells",
    metadata,
    Column("content_hash", String(64), primary_key=True),
    Column("task", String(200), primary_key=True),
    Column("version", String(64), primary_key=True),
    Column("protocol_hash", String(64), primary_key=True),
    Column("phase", String(100), nullable=False),
    Column("type", String(8), nullable=False),
    Column("row_set", String(64), nullable=False),
    Column("folds", Text, nullable=False),  # JSON list, null = failed fold
    Column("mean", Float),
    Column("std", Float),
    Column("q", Float),
    Column("failed_folds", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("scored_at", Instant, nullable=False),
    Column("provenance", Text, nullable=False),  # JSON: versions, machine, remarks
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("submission", Integer, ForeignKey("submissions.pk"), nullable=False),
    Column("receipt", Text),  # for deletes: always the newest handle
    Column("created_at", Instant, nullable=False),
    Column("not_before", Instant, nullable=False),
    Column("tries", Integer, nullable=False, default=0),
    Column("sent_at", Instant),  # set before the first byte leaves
    Column("done_at", Instant),
    Column("last_error", Text),
    Index("outbox_due", "done_at", "not_before"),
)

boards = Table(
    "boards",
    metadata,
    Column("phase", String(100), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("made_at", Instant, nullable=False),
    Column("document", Text, nullable=False),
)

phases = Table(
    "phases",
    metadata,
    Column("phase", String(100), primary_key=True),
    Column("protocol_hash", String(64), nullable=False),
    Column("tasks", Text, nullable=False),  # JSON {identifier: version} that the scores stand on
    Column("frozen_at", Instant),
    Column(
        "record", String(64)
    ),  # hash of its current record; None until a phase of an earlier version is recorded
)

records = Table(
    "records",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("document", LargeBinary, nullable=False),  # compressed; it holds hidden labels
    Column("files", String(64)),  # fingerprint of the files that it was read from
    Column("recorded_at", Instant, nullable=False),
)

choices = Table(
    "choices",
    metadata,
    Column("phase", String(100), primary_key=True),
    Column("team_key", Integer, primary_key=True),
    Column("submission", Integer, nullable=False),
    Column("reason", Text, nullable=False),
)

alerts = Table(
    "alerts",
    metadata,
    Column("key", String(200), primary_key=True),
    Column("code", String(64), nullable=False),
    Column("text", Text, nullable=False),
    Column("raised_at", Instant, nullable=False),
    Column("seen_at", Instant, nullable=False),
    Column("count", Integer, nullable=False, default=1),
    Column("sent_at", Instant),
    Column("resolved_at", Instant),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("actor", String(100), nullable=False),
    Column("action", String(64), nullable=False),
    Column("submission", Integer),
    Column("detail", Text, nullable=False),
)

facts = Table(
    "facts",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
)

commitments = Table(
    "commitments",
    metadata,
    Column("sequence", Integer, primary_key=True),
    Column("public", Text, nullable=False),
    Column("private", Text, nullable=False),  # what opens it: nonces, salts, manifests
)

receipts = Table(
    "receipts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("submission", Integer, nullable=False, index=True),
    Column("commitment", String(64), nullable=False, unique=True),
    Column("nonce", String(64), nullable=False),
    Column("record", Text, nullable=False),
    Column("batch", Integer),  # line of the public log; NULL until published
)

batches = Table(
    "batches",
    metadata,
    Column("sequence", Integer, primary_key=True),
    Column("line", Text, nullable=False),
)

reveals = Table(
    "reveals",
    metadata,
    Column("phase", String(100), primary_key=True),
    Column("files", Text, nullable=False),  # JSON {path: text}
)
