"""The challenge: the records of its phases, and the files and settings from which they are recorded.

Nothing is imported here, because the child that scores reads a record with :mod:`worker.challenge.records` alone, without the
configuration and the database.
"""

__all__ = [
    "configuration",
    "context",
    "records",
    "secrets",
    "sections",
    "setups",
    "signing",
]
