"""Write ``docs/cli.md`` with typer's own generator, and the tables of ``docs/configuration.md`` from pydantic's JSON schema.

It also writes the schemas of the published documents.

Run it in the project's folder: ``.venv/bin/python docs/reference.py``. ``tests/acceptance/test_documents.py`` compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

from leaderboard.rendering.documents import MODELS, schema
from worker.challenge.configuration import Configuration
from worker.cli import program

DOCS = Path(__file__).parent
SCHEMAS = DOCS.parent / "leaderboard" / "rendering" / "schema"
LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
COMMON = r"\* `(?:(?:-h, )?--help|-c, --config FILE)`: .*\n"
USAGE = r"\*\*Usage\*\*:\n\n```console\n.*\n```\n\n"
LEFT_OUT = re.compile(
    rf"{USAGE}|\*\*Options\*\*:\n\n(?:{COMMON})+\n|{COMMON}|\*\*Commands\*\*:\n\n(?:\* .*\n)+\n"
)
"""What the page says elsewhere: usage, lists of commands, --help and --config."""


def commands() -> str:
    """Return the page on the command line."""
    context = typer.Context(program, **program.context_settings)
    page = get_docs_for_click(obj=program, ctx=context, name="neuco-worker", title="Command line")
    return LEFT_OUT.sub("", page).strip() + "\n"


def configuration() -> str:
    """Return the page on the configuration with new tables."""
    place = DOCS / "configuration.md"
    before, _, rest = place.read_text(encoding="utf-8").partition("<!-- keys -->\n")
    after = rest.partition("<!-- end of keys -->\n")[2]
    return f"{before}<!-- keys -->\n{''.join(tables())}<!-- end of keys -->\n{after}"


def tables() -> Iterator[str]:
    """Yield a table for each section."""
    schema = Configuration.model_json_schema()
    defined = schema["$defs"]
    for name, part in schema["properties"].items():
        kinds = [part, *part.get("patternProperties", {}).values()]
        sections = [defined[kind["$ref"].rpartition("/")[2]] for kind in kinds if "$ref" in kind]
        title = f"{name}.<codename>" if "patternProperties" in part else name
        for section in sections:
            yield f"## `{title}`\n\n{section['description']}\n\n{table(section, defined)}\n"
        if not sections:
            yield f"## `{title}`\n\n{part['description']} The default is {default(part)}.\n\n"


def table(section: dict[str, Any], defined: dict[str, Any]) -> str:
    """Return a table of the keys of a section; the types of some are defined elsewhere in the schema."""
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key, own in section["properties"].items():
        part = defined.get(own.get("$ref", "").rpartition("/")[2], {}) | own
        lines.append(f"| `{key}` | {value(part)} | {default(part)} | {part['description']} |")
    return "\n".join(lines) + "\n"


def default(part: dict[str, Any]) -> str:
    """Return the default of a key."""
    if "default" not in part:
        return "required"
    usual = part["default"]
    return f"`{usual if isinstance(usual, str) else json.dumps(usual, ensure_ascii=False)}`"


def value(part: dict[str, Any]) -> str:
    """Return the values that a key takes."""
    if "anyOf" in part:
        return " or ".join(value(kind) for kind in part["anyOf"])
    if "items" in part:
        return f"list of {value(part['items'])}"
    if "enum" in part or "const" in part:
        return " or ".join(f"`{choice}`" for choice in part.get("enum", [part.get("const")]))
    limits = [f"{sign} {part[name]}" for name, sign in LIMITS.items() if name in part]
    return ", ".join([part.get("format", part["type"]), *limits])


if __name__ == "__main__":
    (DOCS / "cli.md").write_text(commands(), encoding="utf-8")
    (DOCS / "configuration.md").write_text(configuration(), encoding="utf-8")
    for name, model in MODELS.items():
        (SCHEMAS / name).write_bytes(schema(model))
