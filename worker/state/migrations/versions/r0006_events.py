"""The register of events, and the keys that open the filler entries in the lines of the public log.

Released migrations never change: a database somewhere was made by them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision: str | None = "0005"


def upgrade() -> None:
    """Add the table and the column; the next leader registers what was scored before."""
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("subject", sa.String(length=120), nullable=False),
        sa.Column("phase", sa.String(length=100), nullable=True),
        sa.Column("facts", sa.String(length=64), nullable=False),
        sa.Column("fields", sa.Text(), nullable=False),
        sa.Column("nonce", sa.String(length=64), nullable=False),
        sa.Column("commitment", sa.String(length=64), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("commitment"),
    )
    op.create_index("ix_events_phase", "events", ["phase"])
    op.create_index("events_latest", "events", ["kind", "subject"])
    with op.batch_alter_table("batches") as table:
        table.add_column(sa.Column("fillers", sa.String(length=64), nullable=True))
