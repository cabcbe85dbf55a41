"""The first version, made from the definitions of the tables until the first release freezes them here."""

from __future__ import annotations

from alembic import op

from worker.state.schema import metadata

revision = "tables_c178db83"
down_revision: str | None = None


def upgrade() -> None:
    """Make the tables."""
    metadata.create_all(op.get_bind())
