"""Files of this package for rendering: templates, the page's style and script, and the schemas of the published documents."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from leaderboard.rendering.documents import stamp
from leaderboard.rendering.names import breadth, display_name, markdown
from leaderboard.rendering.rows import account, minute, movement


@cache
def templates() -> Environment:
    """Return the environment of all templates, which escapes all values and refuses undefined ones."""
    environment = Environment(
        loader=PackageLoader("leaderboard.rendering"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,  # an upgrade must not mix new templates with the code of a running worker
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "name": display_name,
        "minute": minute,
        "stamp": stamp,
        "movement": movement,
        "account": account,
        "md": markdown,
        "breadth": breadth,
    }
    return environment


@cache
def asset(name: str) -> str:
    """Return the page's style or script."""
    return files("leaderboard.rendering").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def schemas() -> dict[str, bytes]:
    """Return the schemas that are published: name to content. They are kept in files, so that they do not depend on pydantic's version."""
    folder = files("leaderboard.rendering").joinpath("schema")
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir(), key=str)}
