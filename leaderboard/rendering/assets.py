"""Files of this package for rendering: templates, the page's style and script, and the schema of ``leaderboard/<phase>.json``."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from leaderboard.rendering.names import display_name
from leaderboard.rendering.rows import minute

SCHEMA_VERSION = 1  # increased when readers of old files would misread new ones
SCHEMA_NAME = f"phase-v{SCHEMA_VERSION}.json"


@cache
def templates() -> Environment:
    """Return the environment of all templates, which escapes all values and refuses undefined ones."""
    environment = Environment(
        loader=PackageLoader("leaderboard.rendering"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["name"] = display_name
    environment.filters["minute"] = lambda stamp: minute(datetime.fromisoformat(stamp))
    return environment


@cache
def asset(name: str) -> str:
    """Return the page's style or script."""
    return files("leaderboard.rendering").joinpath("templates", name).read_text(encoding="utf-8")


def schema_bytes() -> bytes:
    """Return the schema of this version, which is published with the files."""
    return files("leaderboard.rendering").joinpath("schema", SCHEMA_NAME).read_bytes()
