"""The one rule for an organizer's decisions: say what follows, ask at a terminal, and want --yes and a reason in a script."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from scoring.errors import OrganizerError

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
ReasonOption = Annotated[
    str,
    typer.Option("--reason", help="The reason, which is published; a terminal asks for it.", metavar="TEXT"),
]


def confirm(consequences: str, *, reason: str, yes: bool) -> str:
    """Say what a step does, and return its reason if the step is wanted.

    Args:
        consequences: What follows, in sentences.
        reason: The reason, if it was given; otherwise a terminal asks for it.
        yes: Whether it is wanted without asking.

    Raises:
        OrganizerError: If there is no reason.
        typer.Exit: With status 1, if it is not wanted, or nobody can be asked.
    """
    print(consequences)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not yes and not (terminal and typer.confirm("Do it?")):
        print("Nothing has been done yet. To do it, add: --yes --reason TEXT")
        raise typer.Exit(1)
    if not reason.strip() and terminal:
        reason = typer.prompt("The reason, which is published")
    if not reason.strip():
        raise OrganizerError(
            "This needs a reason, which is published.",
            cure='Add --reason "TEXT"; `verify` shows it to everyone.',
            code="decision.reason",
        )
    return reason.strip()
