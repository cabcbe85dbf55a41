"""The tables that every challenge needs: submissions, attempts, score cells, outbox, boards, notices.

Released migrations never change: a database somewhere was made by them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "alerts",
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("code", sa.String(length=64), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("raised_at", sa.String(32), nullable=False),
        sa.Column("seen_at", sa.String(32), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("sent_at", sa.String(32), nullable=True),
        sa.Column("resolved_at", sa.String(32), nullable=True),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("actor", sa.String(length=100), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("submission", sa.Integer(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "boards",
        sa.Column("phase", sa.String(length=100), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.String(32), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("phase", "sequence"),
    )
    op.create_table(
        "cells",
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("task", sa.String(length=200), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("protocol_hash", sa.String(length=64), nullable=False),
        sa.Column("phase", sa.String(length=100), nullable=False),
        sa.Column("type", sa.String(length=8), nullable=False),
        sa.Column("row_set", sa.String(length=64), nullable=False),
        sa.Column("folds", sa.Text(), nullable=False),
        sa.Column("mean", sa.Float(), nullable=True),
        sa.Column("std", sa.Float(), nullable=True),
        sa.Column("q", sa.Float(), nullable=True),
        sa.Column("failed_folds", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("scored_at", sa.String(32), nullable=False),
        sa.Column("provenance", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("content_hash", "task", "version", "protocol_hash"),
    )
    op.create_table(
        "choices",
        sa.Column("phase", sa.String(length=100), nullable=False),
        sa.Column("team_key", sa.Integer(), nullable=False),
        sa.Column("submission", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("phase", "team_key"),
    )
    op.create_table(
        "facts",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "phases",
        sa.Column("phase", sa.String(length=100), nullable=False),
        sa.Column("protocol_hash", sa.String(length=64), nullable=False),
        sa.Column("tasks", sa.Text(), nullable=False),
        sa.Column("frozen_at", sa.String(32), nullable=True),
        sa.PrimaryKeyConstraint("phase"),
    )
    op.create_table(
        "submissions",
        sa.Column("pk", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("first_seen_at", sa.String(32), nullable=False),
        sa.Column("message_phase", sa.Integer(), nullable=True),
        sa.Column("phase_pk", sa.Integer(), nullable=True),
        sa.Column("phase", sa.String(length=100), nullable=True),
        sa.Column("team_key", sa.Integer(), nullable=True),
        sa.Column("submitted_at", sa.String(32), nullable=True),
        sa.Column("input_file", sa.Text(), nullable=True),
        sa.Column("public_at_first", sa.Boolean(), nullable=True),
        sa.Column("team", sa.Text(), nullable=True),
        sa.Column("method", sa.Text(), nullable=True),
        sa.Column("public_now", sa.Boolean(), nullable=True),
        sa.Column("baseline", sa.Boolean(), nullable=False),
        sa.Column("flagged", sa.Boolean(), nullable=False),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("remote_status", sa.String(length=24), nullable=True),
        sa.Column("read_at", sa.String(32), nullable=True),
        sa.Column("not_before", sa.String(32), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("hold", sa.String(length=64), nullable=True),
        sa.Column("hold_reason", sa.Text(), nullable=True),
        sa.Column("running_at", sa.String(32), nullable=True),
        sa.Column("file_hash", sa.String(length=64), nullable=True),
        sa.Column("file_bytes", sa.Integer(), nullable=True),
        sa.Column("content_hash", sa.String(length=64), nullable=True),
        sa.Column("q_mean", sa.Float(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("posted", sa.Text(), nullable=True),
        sa.Column("reposts", sa.Integer(), nullable=False),
        sa.Column("scored_at", sa.String(32), nullable=True),
        sa.Column("answered_at", sa.String(32), nullable=True),
        sa.Column("superseded_by", sa.Integer(), nullable=True),
        sa.Column("excluded", sa.Text(), nullable=True),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("pk"),
    )
    op.create_index(op.f("ix_submissions_content_hash"), "submissions", ["content_hash"], unique=False)
    op.create_index(op.f("ix_submissions_state"), "submissions", ["state"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("submission", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("worker", sa.String(length=100), nullable=False),
        sa.Column("opened_at", sa.String(32), nullable=False),
        sa.Column("lease_until", sa.String(32), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("closed_at", sa.String(32), nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("peak_memory_bytes", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["submission"],
            ["submissions.pk"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_attempts_submission"), "attempts", ["submission"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("submission", sa.Integer(), nullable=False),
        sa.Column("receipt", sa.Text(), nullable=True),
        sa.Column("created_at", sa.String(32), nullable=False),
        sa.Column("not_before", sa.String(32), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("sent_at", sa.String(32), nullable=True),
        sa.Column("done_at", sa.String(32), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["submission"],
            ["submissions.pk"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("outbox_due", "outbox", ["done_at", "not_before"], unique=False)
