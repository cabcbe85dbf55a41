"""The script that alembic runs to migrate, on the given connection and inside its open transaction.

Only :mod:`worker.state.migrations` uses it; there is no ``alembic.ini``.
"""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
