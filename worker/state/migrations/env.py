"""What alembic runs to migrate: on the connection that is handed in, inside the transaction that is open there.

Used by :mod:`worker.state.migrations` alone; there is no ``alembic.ini``.
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
