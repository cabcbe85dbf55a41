"""The page on the configuration, written from its schema: every key with its meaning, values and default.

``python -m worker.organizer.configuration_docs`` writes ``docs/configuration.md``; with ``--check`` it exits with 1 if the file is not up
to date. The text around the tables is in :data:`INTRODUCTION` and :data:`EPILOGUE`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from scoring.protocol import Recipe
from worker.challenge.configuration import Configuration
from worker.challenge.records import PhaseRules
from worker.challenge.sections import NAMED_AFTER, Leaderboard, Phase
from worker.organizer.generated_page import write_or_check

PLACE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
INTRODUCTION = """\
# Configuration

<!-- Written by `python -m worker.organizer.configuration_docs` from worker/challenge/sections.py; change it there. -->

Each challenge has one YAML file. `neuco-worker init` writes a short one with the keys that you must set;
[`config/challenge.yaml`](../config/challenge.yaml) is an example with every key.

- [The glossary](glossary.md) explains terms such as *phase*, *commitment* and *reveal*.
- Relative paths are relative to the file.
- An unknown key is an error that names the nearest known key. All faults of the file are reported together.
- The file never contains a secret, only where to find it: `env:NAME` (an environment variable), `file:PATH`, or
  `credential:NAME` (a [credential of the systemd service](organizers.md#5-install-the-service)). `challenge.secret` is a
  path or `credential:NAME`.
- A running worker reads the file again on SIGHUP (`systemctl reload`). If the file has a fault, the worker keeps the old
  settings. A few keys need a restart ([table](#when-a-change-takes-effect)).
- `neuco-worker doctor` checks that the file agrees with EvalAI, the repository and the machine.
"""
EPILOGUE = """\
## When a change takes effect

When the worker first reads a phase, it records its ids, its labels and the keys in the first three rows below. Until the
phase has a score, every start and reload updates this record. From then on, a change has no effect until you run the command
in the table; `status` and `doctor` show what differs from the record.

| change | applied by |
|---|---|
| {scored} | `neuco-worker challenge rescore`, which computes the affected scores again |
| `scoring.engine` | `neuco-worker challenge rescore`; scores that exist do not change |
| of a phase: {of_phase}; in `leaderboard`: {of_board} | `neuco-worker challenge rules --reason TEXT`, from the next board on |
| `fairness.publish_files` | nothing, once the phase has a commitment: participants were told whose files will be published |
| `state`, `metrics.listen`; in `evalai`: `server`, `challenge`, `queue` | a restart |
| `fairness.beacon` | the next commitment before the first score: the first start makes one, and so does a change listed in the first row |
| everything else | a reload |

If you change `challenge.secret` after a phase was scored, the worker refuses to start until you restore the old secret or run
`neuco-worker challenge rescore`. A board that you closed with `neuco-worker board freeze` does not change, even if you change the
rules later.

## Baselines and trials

A submission is the hosts' own if a member of the challenge's host team at EvalAI sent it. It is a *baseline* if EvalAI
marks it as one, or if `leaderboard.baselines` lists its method name. Baselines are shown on the board in their place among
the teams, but without a rank. Every other submission of the hosts is a *trial*: it is answered but never shown. A participant's
submission is a baseline only if EvalAI marks it as one; the name of its team or method does not matter.
"""
SCORED = ("phases.<codename>.ids", "phases.<codename>.folds", "submission.embedding_dim", "challenge.secret")
"""Keys that decide scores, besides label files and the recipe."""


def document() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION]
    top: list[tuple[str, FieldInfo]] = []
    for name, field in Configuration.model_fields.items():
        section = _section(field.annotation)
        if section is None:
            top.append((name, field))
        else:
            heading = f"`{name}.<codename>`" if section is Phase else f"`{name}`"
            parts.append(_table(heading, str(section.__doc__), list(section.model_fields.items())))
    parts.append(_table("Top level", "Keys outside the sections.", top))
    rules = [field.name for field in dataclasses.fields(PhaseRules)]
    epilogue = EPILOGUE.format(
        scored=f"label files, {_listed(SCORED)}; in `scoring`: {_listed(field.name for field in dataclasses.fields(Recipe))}",
        of_phase=_listed(name for name in rules if name in Phase.model_fields),
        of_board=_listed(name for name in rules if name in Leaderboard.model_fields),
    )
    return "\n".join([*parts, epilogue])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def keys() -> Iterator[str]:
    """Name every key by its path, phases without their codename."""
    for name, field in Configuration.model_fields.items():
        section = _section(field.annotation)
        yield from [name] if section is None else (f"{name}.{key}" for key in section.model_fields)


def _section(annotation: Any) -> type[BaseModel] | None:
    """Return the section's class; for a mapping of codenames to sections, that of its values."""
    candidates = [annotation, *typing.get_args(annotation)]
    return next((one for one in candidates if isinstance(one, type) and issubclass(one, BaseModel)), None)


def _table(heading: str, summary: str, fields: list[tuple[str, FieldInfo]]) -> str:
    lines = [f"## {heading}", "", summary, "", "| key | value | default | meaning |", "|---|---|---|---|"]
    for key, field in fields:
        cells = (f"`{key}`", _value(field), _default(field), str(field.description))
        lines.append("| " + " | ".join(_escaped(cell) for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _escaped(cell: str) -> str:
    """Escape what Markdown would treat as markup outside of code."""
    pieces = cell.split("`")
    pieces[::2] = [piece.replace("|", "\\|").replace("<", "\\<") for piece in pieces[::2]]
    return "`".join(pieces)


def _default(field: FieldInfo) -> str:
    if isinstance(field.json_schema_extra, dict):
        return f"`{str(field.json_schema_extra[NAMED_AFTER]).format(codename='<codename>')}`"
    if field.is_required():
        return "required"
    value = field.get_default()
    if isinstance(value, Path):
        return f"`./{value}`"
    return f"`{json.dumps(value, ensure_ascii=False)}`" if not isinstance(value, str) else f"`{value}`"


def _value(field: FieldInfo) -> str:
    limits = [_limit(item) for item in field.metadata]
    return ", ".join([_type(field.annotation), *(limit for limit in limits if limit)])


def _limit(item: object) -> str:
    signs = {Gt: ">", Ge: "≥", Lt: "<", Le: "≤"}
    for kind, sign in signs.items():
        if isinstance(item, kind):
            return f"{sign} {getattr(item, kind.__name__.lower())}"
    return "not empty" if isinstance(item, MinLen) else ""


def _type(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        limits = [_limit(part) for item in arguments[1:] for part in getattr(item, "metadata", [item])]
        return " ".join([_type(arguments[0]), *(limit for limit in limits if limit)])
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("`null`" if part is type(None) else _type(part) for part in arguments)
    if origin is list:
        return f"list of {_type(arguments[0])}"
    names = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`", Path: "path"}
    return names.get(annotation, str(annotation))


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` compare it."""
    return write_or_check(PLACE, document(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
