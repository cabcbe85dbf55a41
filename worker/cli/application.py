"""The command line: assembles the commands and turns errors into a sentence, a cure and an exit code."""

from __future__ import annotations

import os
import sys

import typer
from typer.exceptions import TyperException

from scoring.errors import InfrastructureError, NeucoError
from scoring.printable import printable_lines
from worker.cli.board import board
from worker.cli.bundle import bundle
from worker.cli.challenge import challenge
from worker.cli.demo import demo
from worker.cli.doctor import doctor
from worker.cli.exchange import export_results, import_results
from worker.cli.fairness import commit, reveal, verify
from worker.cli.init import init
from worker.cli.plan import plan
from worker.cli.rank import rank
from worker.cli.rehearse import rehearse
from worker.cli.run import once, run
from worker.cli.sandbox import sandbox
from worker.cli.score import score
from worker.cli.status import status
from worker.cli.summarize import summarize
from worker.cli.task import task
from worker.cli.warm import warm
from worker.participant.template import template
from worker.participant.validate import validate

OF_UNITS = ("run", "once", "warm")
"""The commands of systemd's units; under systemd every line of theirs is a JSON object."""

app = typer.Typer(
    name="neuco-worker",
    help="Run hidden-task embedding challenges: score submissions from EvalAI, publish a dynamic-rank leaderboard.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for command in (
    warm,
    validate,
    template,
    demo,
    init,
    bundle,
    doctor,
    rehearse,
    plan,
    run,
    once,
    status,
    rank,
    score,
    summarize,
    sandbox,
):
    app.command()(command)
for step in (commit, reveal, verify):
    challenge.command()(step)
for group in (board, challenge, task, import_results, export_results):
    app.add_typer(group)


def main() -> None:
    """Run a command; the process's exit status is 0 done, 1 failed, 2 wrong usage, configuration or credentials."""
    sys.exit(guarded(sys.argv[1:]))


def guarded(arguments: list[str]) -> int:
    """Run a command and return its exit status; nobody ever sees a traceback.

    With ``NEUCO_WORKER_TRACEBACK`` set, an unexpected error shows one: for those who develop it.
    """
    try:
        return int(app(arguments, standalone_mode=False) or 0)
    except typer.Exit as ending:
        return ending.exit_code
    except TyperException as error:
        show = getattr(error, "show", None)
        if show is not None:
            show()
        else:
            print(f"neuco-worker: {error}", file=sys.stderr)
        return 2
    except (typer.Abort, KeyboardInterrupt):
        print("Stopped.", file=sys.stderr)
        return 1
    except NeucoError as error:
        return _ended(error, arguments)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what read us is gone: a pager, head
        return 1
    except Exception as error:
        if os.environ.get("NEUCO_WORKER_TRACEBACK"):
            raise
        unexpected = InfrastructureError(
            f"An unexpected {type(error).__name__} ended the command.",
            cure="Please report it; NEUCO_WORKER_TRACEBACK=1 shows where it happened.",
            code="unexpected",
        )
        return _ended(unexpected, arguments)


def _ended(error: NeucoError, arguments: list[str]) -> int:
    """Say what ended a command, to a person or to the journal, and return the exit status."""
    if arguments[0] in OF_UNITS:
        from worker.daemon.logs import for_systemd, last_words

        if for_systemd():
            last_words(error)
            return error.exit_code
    print(f"neuco-worker: {printable_lines(error.sentence)}", file=sys.stderr)
    if error.cure:
        print(f"  {printable_lines(error.cure)}", file=sys.stderr)
    return error.exit_code
