"""The script that alembic runs to migrate, on the given connection and inside its open transaction.

Only :mod:`worker.state.migrations` uses it; there is no ``alembic.ini``.
"""

from __future__ import annotations

from alembic import context

from worker.state.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot alter a column; alembic copies the table instead
)
with context.begin_transaction():
    context.run_migrations()
