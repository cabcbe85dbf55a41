"""The tables of the durable state: those whose rows are dataclasses, see :mod:`worker.state.rows`, and small ones."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

from worker.state import rows
from worker.state.columns import table

metadata = MetaData()

submissions = table("submissions", metadata, rows.SubmissionRow)
attempts = table(
    "attempts", metadata, rows.AttemptRow, ForeignKeyConstraint(["submission"], ["submissions.pk"])
)
cells = table("cells", metadata, rows.CellRow)
outbox = table(
    "outbox",
    metadata,
    rows.Owed,
    ForeignKeyConstraint(["submission"], ["submissions.pk"]),
    Index("outbox_due", "done_at", "not_before"),
)
phases = table("phases", metadata, rows.PhaseRow)
alerts = table("alerts", metadata, rows.Alert)
audit = table("audit", metadata, rows.AuditStep)
events = table("events", metadata, rows.Event, Index("events_latest", "kind", "subject"))

boards = Table(
    "boards",
    metadata,
    Column("phase", String(100), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("document", Text, nullable=False),
)

records = Table(
    "records",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("document", LargeBinary, nullable=False),  # compressed; contains hidden labels
    Column("files", String(64)),  # fingerprint of the files from which it was read
)

choices = Table(
    "choices",
    metadata,
    Column("phase", String(100), primary_key=True),
    Column("team_key", Integer, primary_key=True),
    Column("submission", Integer, nullable=False),
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

batches = Table(
    "batches",
    metadata,
    Column("sequence", Integer, primary_key=True),
    Column("line", Text, nullable=False),
    Column("fillers", String(64)),  # key of the line's filler entries; NULL in lines without them
)

reveals = Table(
    "reveals",
    metadata,
    Column("phase", String(100), primary_key=True),
    Column("files", Text, nullable=False),  # JSON {path: text}
)
