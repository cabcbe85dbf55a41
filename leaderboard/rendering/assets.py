"""What is shipped with us to render by: templates, style and script of the page, and the schema of ``leaderboard/<phase>.json``."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from leaderboard.rendering.names import display_name
from leaderboard.rendering.rows import minute

SCHEMA_VERSION = 1  # raised when a reader of the old files would misread the new ones
SCHEMA_NAME = f"phase-v{SCHEMA_VERSION}.json"


@cache
def templates() -> Environment:
    """Return the environment of all templates: everything is escaped, nothing may be undefined."""
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
    """Return the schema of this version as it is published next to the files."""
    return files("leaderboard.rendering").joinpath("schema", SCHEMA_NAME).read_bytes()
