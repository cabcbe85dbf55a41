"""The documentation of the configuration, written from its schema: every key with its meaning, values and default.

``python -m worker.organizer.configuration_docs`` writes ``config/README.md`` again; ``--check`` tells if it is up to date.
What people should know besides the keys is in :data:`INTRODUCTION` and :data:`EPILOGUE`.
"""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from worker.challenge.configuration import Configuration
from worker.challenge.sections import NAMED_AFTER, Phase

PLACE = Path(__file__).resolve().parents[2] / "config" / "README.md"
INTRODUCTION = """\
# Configuration

<!-- Written by `python -m worker.organizer.configuration_docs` from the schema in worker/challenge/sections.py; change it there. -->

One YAML file per challenge. [`challenge.yaml`](challenge.yaml) is a complete example with comments; `neuco-worker init` writes a short one
with what you have to decide.

- Relative paths are relative to the file.
- An unknown key is an error that names the nearest known one; all faults of a file are told at once.
- Secrets are never written into the file, only where they are: `env:NAME` (environment variable), `file:PATH` (relative to the file), or
  `credential:NAME` (handed over by systemd, see [`deploy/README.md`](../deploy/README.md)).
- A running worker reads the file again on SIGHUP (`systemctl reload`). A faulty file is refused and the old one kept; `state` and the
  challenge at EvalAI need a restart.
"""
EPILOGUE = """\
## What a change does to a phase

A phase is recorded when the worker first sees it: its ids, its labels and the keys below. Until its first score, every start and reload
records it again if something changed. From the first score on, edited files and keys have no effect; `status` and `doctor` say what differs
from the record, and a command takes it up:

- `neuco-worker challenge rescore` takes up what decides scores, and scores what is missing: label files, `phases.<codename>.ids`,
  `phases.<codename>.folds`, `submission.embedding_dim`, `challenge.secret`, and of `scoring` {recipe}.
  It takes up `scoring.engine` too, for which nothing is scored again: an engine changes no score.
- `neuco-worker challenge rules --reason TEXT` takes up what decides the board: `selection`, `visibility` and `eligible_if_scored_in` of a
  phase; `baselines`, `baselines_weigh`, `hidden_teams`, `ghost_task` and `decimals` of `leaderboard`. The next board follows them.
- Nothing takes up `fairness.publish_files` for a phase that was committed to: whoever submitted was told whose files the reveal publishes.
- A reload takes up everything else.

The worker does not start with another `challenge.secret` than the one that a phase with scores was recorded with.

A submission is one of the hosts' own if a member of the challenge's host team at EvalAI sent it. No name of a team or
method makes a participant's submission a baseline. A host's that is not a baseline is a trial: it is answered and never on the board.

What is frozen (`neuco-worker board freeze`) stays, whatever the rules.

Beside this file lies what else comes with the software: [`participant/`](participant/README.md) (how to write a valid submission),
`bundle/` (templates of EvalAI's challenge bundle, used by `init`), [`demo/`](demo/README.md) (the data of `neuco-worker demo`).
"""


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
    parts.append(_table("At the top", "Beside the sections.", top))
    recipe = ", ".join(
        f"`{key}`"
        for key in Configuration.model_fields["scoring"].get_default().recipe().__dataclass_fields__
    )
    return "\n".join([*parts, EPILOGUE.format(recipe=recipe)])


def keys() -> Iterator[str]:
    """Name every key by its path, phases without their codename."""
    for name, field in Configuration.model_fields.items():
        section = _section(field.annotation)
        yield from [name] if section is None else (f"{name}.{key}" for key in section.model_fields)


def _section(annotation: Any) -> type[BaseModel] | None:
    """Return the section's class, also of a mapping of codenames to sections."""
    candidates = [annotation, *typing.get_args(annotation)]
    return next((one for one in candidates if isinstance(one, type) and issubclass(one, BaseModel)), None)


def _table(heading: str, summary: str, fields: list[tuple[str, FieldInfo]]) -> str:
    lines = [f"## {heading}", "", summary, "", "| key | value | default | meaning |", "|---|---|---|---|"]
    for key, field in fields:
        cells = (f"`{key}`", _value(field), _default(field), str(field.description))
        lines.append("| " + " | ".join(_escaped(cell) for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _escaped(cell: str) -> str:
    return cell if cell.startswith("`") else cell.replace("|", "\\|").replace("<", "\\<")


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
    if "--check" in arguments:
        return int(PLACE.read_text(encoding="utf-8") != document())
    PLACE.write_text(document(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
