"""The command ``neuco-check``: validate and template alone, for participants who install nothing else."""

from __future__ import annotations

import sys

import typer
from typer.exceptions import TyperException

from scoring.errors import NeucoError
from scoring.printable import printable_lines
from worker.participant.template import template
from worker.participant.validate import validate

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
        status = int(app(standalone_mode=False) or 0)
    except typer.Exit as ending:
        status = ending.exit_code
    except TyperException as error:
        show = getattr(error, "show", None)
        if show is not None:
            show()
        else:
            print(f"neuco-check: {error}", file=sys.stderr)
        status = 2
    except (typer.Abort, KeyboardInterrupt):
        print("Stopped.", file=sys.stderr)
        status = 1
    except NeucoError as error:
        print(f"neuco-check: {printable_lines(error.sentence)}", file=sys.stderr)
        if error.cure:
            print(f"  {printable_lines(error.cure)}", file=sys.stderr)
        status = error.exit_code
    sys.exit(status)
