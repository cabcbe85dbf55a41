"""The tables of phase records, which contain everything from which a phase's scores are made.

Released migrations never change: a database somewhere was made by them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision: str | None = "0003"


def upgrade() -> None:
    """Add the table and the columns; the next start records a phase if its files are those from which its scores were made."""
    op.create_table(
        "records",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("files", sa.String(length=64), nullable=True),
        sa.Column("recorded_at", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    for name in ("phases", "attempts"):
        with op.batch_alter_table(name) as table:
            table.add_column(sa.Column("record", sa.String(length=64), nullable=True))
