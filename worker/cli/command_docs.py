"""The page on the command line, generated from the commands themselves.

``python -m worker.cli.command_docs`` writes ``docs/cli.md``; with ``--check`` it exits with 1 if the file is not up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from worker.cli.application import SECTIONS, app
from worker.organizer.generated_page import write_or_check

PLACE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
TYPE = re.compile(r" <([^>]*)>$")
"""Names in the help for values without a name of their own, by type."""
VALUES = {
    "file": "FILE",
    "float": "NUMBER",
    "float range": "NUMBER",
    "int": "N",
    "int range": "N",
    "list[Path]": "PATH",
    "list[str]": "TEXT",
    "path": "PATH",
    "str": "TEXT",
}
DEFAULT = re.compile(r"\[default: \((.*)\)(.*)\]$")
"""A default that is a text for people, not a value."""
INTRODUCTION = """\
# Command line

<!-- Written by `python -m worker.cli.command_docs` from the commands in worker/cli; change them there. -->

`neuco-worker` has these commands. Each also describes itself with `--help`, and `neuco-worker --install-completion` lets your shell
complete commands and options. [The glossary](glossary.md) explains the terms.

- The commands for organizers that have the option `--config` read `./challenge.yaml` by default or, if there is none, the file that the
  environment variable `NEUCO_CHALLENGE` names.
- With `--json`, a command writes one JSON document to stdout. If it ends with an error, the message is on stderr.
- The exit code is 0 if the command succeeded, 1 if it failed, and 2 if its usage, the configuration or the credentials are wrong.
"""


def document() -> str:
    """Return the whole page: an overview by audience, then every command."""
    root = _root()
    overview, details = [], []
    for heading, names in SECTIONS.items():
        overview += [
            "",
            f"**{heading}:** " + ", ".join(f"[`{name}`](#neuco-worker-{name})" for name in names),
        ]
        for name in names:
            for path, command in _commands(root.commands[name], (name,)):
                details.append(_described(path, command))
    return "\n".join([INTRODUCTION.rstrip("\n"), *overview, "", *details])


def commands() -> Iterator[tuple[str, ...]]:
    """Return the names of all commands, such as ``("board", "show")``."""
    for name, command in _root().commands.items():
        for path, _ in _commands(command, (name,)):
            yield path


def _root() -> typer.core.TyperGroup:
    root = typer.main.get_command(app)
    if not isinstance(root, typer.core.TyperGroup):
        raise TypeError("neuco-worker has only one command")
    return root


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield a command, or a group and its commands."""
    yield path, command
    if isinstance(command, typer.core.TyperGroup):
        for name, part in command.commands.items():
            yield from _commands(part, (*path, name))


def _described(path: tuple[str, ...], command: Any) -> str:
    """Return the section of a command."""
    program = f"neuco-worker {' '.join(path)}"
    lines = [f"{'#' * (len(path) + 1)} {program}", ""]
    for paragraph in (command.help or "").split("\n\n"):
        text = " ".join(paragraph.split())
        example = text.removeprefix("Example: ")
        lines += [text, ""] if example == text else ["```console", f"$ {example}", "```", ""]
    rows = [
        f"| `{given}` | {_escaped(meaning)} |"
        for given, meaning in filter(None, (_record(parameter, command) for parameter in command.params))
        if given != "-h, --help"
    ]
    if rows:
        lines += ["| argument or option | meaning |", "|---|---|", *rows, ""]
    if isinstance(command, typer.core.TyperGroup):
        parts = [f"[`{name}`](#{'-'.join(('neuco-worker', *path, name))})" for name in command.commands]
        lines += [f"Commands: {', '.join(parts)}", ""]
    return "\n".join(lines)


def _record(parameter: Any, command: Any) -> tuple[str, str] | None:
    """Return what a command's help says about a parameter; None if the parameter is hidden."""
    if getattr(parameter, "hidden", False):
        return None
    given, meaning = parameter.get_help_record(typer.Context(command, info_name=command.name))
    is_option = parameter.param_type_name == "option"
    given = TYPE.sub(lambda match: f" {VALUES[match[1]]}" if is_option else "", given)
    return given, DEFAULT.sub(r"[default: \1\2]", meaning)


def _escaped(text: str) -> str:
    """Escape what Markdown would treat as markup outside of code."""
    pieces = " ".join(text.split()).split("`")
    pieces[::2] = [
        piece.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*").replace("_", "\\_")
        for piece in pieces[::2]
    ]
    return "`".join(pieces)


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` compare it."""
    return write_or_check(PLACE, document(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
