"""Attempts lose two columns that nothing reads: the lease, and the fence, because the attempt's id serves as one.

Released migrations never change: a database somewhere was made by them.
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision: str | None = "0004"


def upgrade() -> None:
    """Drop the columns."""
    with op.batch_alter_table("attempts") as table:
        table.drop_column("lease_until")
        table.drop_column("fence")
