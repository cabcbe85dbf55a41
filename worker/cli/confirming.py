"""The one rule for steps that cannot be undone: say what happens, ask at a terminal, and want --yes in a script."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def confirm(consequences: str, *, yes: bool) -> None:
    """Say what a step does, and return if it is wanted.

    Raises:
        typer.Exit: With status 1, if it is not wanted, or nobody can be asked.
    """
    print(consequences)
    if yes:
        return
    if sys.stdin.isatty() and sys.stdout.isatty() and typer.confirm("Do it?"):
        return
    print("Nothing has been done yet: add --yes to do it.")
    raise typer.Exit(1)
