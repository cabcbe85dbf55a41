"""Files of this package for rendering: templates, the page's style and script, and the schema of ``leaderboard/<phase>.json``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from leaderboard.rendering.names import display_name
from leaderboard.rendering.rows import minute, stamp

SCHEMA_NAME = "phase-v1.json"


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
    environment.filters |= {"name": display_name, "minute": minute, "stamp": stamp}
    return environment


@cache
def asset(name: str) -> str:
    """Return the page's style or script."""
    return files("leaderboard.rendering").joinpath("templates", name).read_text(encoding="utf-8")


def schema_bytes() -> bytes:
    """Return the schema of the phases' JSON, which is published with it."""
    return files("leaderboard.rendering").joinpath("schema", SCHEMA_NAME).read_bytes()
