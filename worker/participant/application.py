"""The command ``neuco-check``: validate and template alone, for participants who install nothing else."""

from __future__ import annotations

import sys

import typer
from typer.exceptions import TyperException

from scoring.errors import NeucoError
from scoring.printable import printable_lines
from worker.participant.commands import template, validate

INTERRUPTED = 130
"""Exit code with which typer ends after Ctrl-C."""

app = typer.Typer(
    name="neuco-check",
    help="Check a submission to an embedding challenge before you send it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (validate, template):
    app.command(help=(command.__doc__ or "").replace("neuco-worker", "neuco-check"))(command)


def main() -> None:
    """Run a command; the process's exit status is 0 (done), 1 (refused or failed) or 2 (wrong usage)."""
    try:
        sys.exit(run(app, sys.argv[1:]))
    except NeucoError as error:
        sys.exit(report("neuco-check", error))


def run(program: typer.Typer, arguments: list[str]) -> int:
    """Run a command and return its exit status; wrong usage is reported here.

    Raises:
        NeucoError: If the command ended with it.
    """
    try:
        status = int(program(arguments, standalone_mode=False) or 0)
        if status != INTERRUPTED:
            return status
        raise KeyboardInterrupt
    except typer.Exit as ending:
        return ending.exit_code
    except TyperException as error:
        show = getattr(error, "show", None)
        if show is None:
            print(error, file=sys.stderr)
        else:
            show()
        return 2
    except (typer.Abort, KeyboardInterrupt):
        print("Stopped.", file=sys.stderr)
        return 1


def report(name: str, error: NeucoError) -> int:
    """Print what ended a command, and what to do about it; return the exit status."""
    print(f"{name}: {printable_lines(error.sentence)}", file=sys.stderr)
    if error.cure:
        print(f"  {printable_lines(error.cure)}", file=sys.stderr)
    return error.exit_code
