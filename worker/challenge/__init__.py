"""The challenge: its phases on record, and the files and settings that they are recorded from.

Nothing is imported here: the child that scores reads a record with :mod:`worker.challenge.records` alone, without the configuration and
the database.
"""

__all__ = [
    "canonical",
    "configuration",
    "context",
    "differences",
    "files",
    "keys",
    "records",
    "secrets",
    "sections",
    "setups",
    "web_address",
]
