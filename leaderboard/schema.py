"""The JSON Schema of ``leaderboard/<phase>.json``: shipped with us, published beside the files."""

from __future__ import annotations

from importlib.resources import files

SCHEMA_VERSION = 1  # raised when a reader of the old files would misread the new ones
SCHEMA_NAME = f"phase-v{SCHEMA_VERSION}.json"


def schema_bytes() -> bytes:
    """Return the schema of this version as it is published."""
    return files("leaderboard").joinpath("schema", SCHEMA_NAME).read_bytes()
