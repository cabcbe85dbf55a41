"""Help and errors of the command line: sections, no Python types, color at a terminal, and the nearest name for a mistyped command."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

HELP_WIDTH = 100
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH}
PLACEHOLDERS = {
    "int": "N",
    "float": "NUMBER",
    "str": "TEXT",
    "path": "PATH",
    "file": "FILE",
    "directory": "DIR",
}
"""Text in the help for a value of a Python type."""
_TYPE = re.compile(r"<(?:list\[)?(?P<type>\w+)(?: range)?\]?>")
_HEADING = re.compile(r"(?P<text>\S.*):")
_ENTRY = re.compile(r"  (?P<text>\S+(?: \S+)*)")
BOLD, CYAN, RESET = "\x1b[1m", "\x1b[36m", "\x1b[0m"


class Command(TyperCommand):
    """One command."""

    def get_help(self, ctx: Any) -> str:
        """Return the help page, in color if the terminal shows it."""
        return colored(super().get_help(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, with plain words for their values."""
        write_parameters(self.get_params(ctx), ctx, formatter)


class Group(TyperGroup):
    """A group of commands; the program's own group has sections, in the order of work."""

    sections: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def get_help(self, ctx: Any) -> str:
        """Return the help page, in color if the terminal shows it."""
        return colored(super().get_help(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write options, with plain words for their values, and the commands."""
        write_parameters(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with their first sentence, in sections if there are any."""
        shown = {name: command for name, command in self.commands.items() if not command.hidden}
        width = max(len(name) for name in shown)
        for heading, names in self.sections or (("Commands", tuple(shown)),):
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{width}}", _summary(shown[name])) for name in names])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; for an unknown name, suggest the nearest one, even in other groups."""
        name = args[0]
        if name not in self.commands and not name.startswith("-") and not ctx.resilient_parsing:
            near = list(self._nearest(name))
            hint = f" Did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else ""
            ctx.fail(f"There is no command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def _nearest(self, name: str) -> Iterator[str]:
        """Yield the commands that a mistyped name may mean, with their groups."""
        known = dict(_paths(self))
        found = [path for path, last in known.items() if last == name]
        if not found:
            near = get_close_matches(name, known.values(), n=2, cutoff=0.7)
            found = [path for path, last in known.items() if last in near[:1]]
        yield from found[:3]


class Commands(typer.Typer):
    """A group to which commands are added as to any application of typer."""

    def __init__(self, **options: Any) -> None:
        defaults: dict[str, Any] = {
            "cls": Group,
            "context_settings": CONTEXT,
            "no_args_is_help": True,
            "rich_markup_mode": None,
        }
        super().__init__(**defaults | options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Return a decorator that adds a function as a command."""
        defaults: dict[str, Any] = {"cls": Command, "context_settings": CONTEXT}
        return super().command(name, **defaults | options)


def _paths(group: TyperGroup, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield every visible command below a group: its path and its last word."""
    for name, command in group.commands.items():
        if not command.hidden:
            yield f"{above}{name}", name
            if isinstance(command, TyperGroup):
                yield from _paths(command, f"{above}{name} ")


def _summary(command: Any) -> str:
    """Return the first sentence of a command's help."""
    first = " ".join((command.help or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.:;])\s", first)[0].rstrip(".:;")


def write_parameters(parameters: Sequence[Any], ctx: Any, formatter: Any) -> None:
    """Write the arguments and options of a command, with plain words for their values."""
    for heading, kind in (("Arguments", "argument"), ("Options", "option")):
        of_kind = [one for one in parameters if one.param_type_name == kind]
        records = [record for one in of_kind if (record := one.get_help_record(ctx)) is not None]
        if records:
            with formatter.section(heading):
                formatter.write_dl([(_plain(name, kind), text) for name, text in records])


def _plain(name: str, kind: str) -> str:
    """Replace the Python type after an option with a plain word; an argument needs only its name."""
    if kind == "argument":
        return _TYPE.sub("", name).strip()
    return _TYPE.sub(lambda found: PLACEHOLDERS.get(found["type"], found["type"].upper()), name)


def colored(page: str) -> str:
    """Color a help page if it goes to a terminal that supports colors."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return page
    lines, listed = [], False
    for line in page.split("\n"):
        if heading := _HEADING.fullmatch(line):
            listed = True
            lines.append(f"{BOLD}{heading['text']}:{RESET}")
        elif listed and (entry := _ENTRY.match(line)):
            lines.append(f"  {CYAN}{entry['text']}{RESET}{line[entry.end() :]}")
        else:
            lines.append(line)
    return "\n".join(lines)
