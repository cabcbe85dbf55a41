"""The columns for a submission's author, and whether that is a host.

Released migrations never change: a database somewhere was made by them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision: str | None = "0002"


def upgrade() -> None:
    """Add the columns; EvalAI's next listing fills them for earlier submissions."""
    with op.batch_alter_table("submissions") as table:
        table.add_column(sa.Column("created_by", sa.Integer(), nullable=True))
        table.add_column(sa.Column("by_host", sa.Boolean(), nullable=True))
        table.create_index(table.f("ix_submissions_by_host"), ["by_host"], unique=False)
