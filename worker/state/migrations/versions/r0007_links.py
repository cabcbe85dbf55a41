"""The columns for the links to code and paper that participants give for their methods.

Released migrations never change: a database somewhere was made by them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision: str | None = "0006"


def upgrade() -> None:
    """Add the columns; the next listing of EvalAI fills them."""
    with op.batch_alter_table("submissions") as table:
        table.add_column(sa.Column("project_url", sa.Text(), nullable=True))
        table.add_column(sa.Column("publication_url", sa.Text(), nullable=True))
