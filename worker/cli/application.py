"""The command line: assemble the commands, and turn errors into a sentence, a hint and an exit code."""

from __future__ import annotations

import gc
import os
import sys
from typing import Annotated, Any, cast

import typer

from scoring.errors import InfrastructureError, NeucoError
from worker import __version__
from worker.cli.board import board
from worker.cli.challenge import challenge
from worker.cli.doctor import doctor
from worker.cli.exchange import export_results, import_results
from worker.cli.fairness import reveal, verify
from worker.cli.init import bundle, init
from worker.cli.rank import compare, rank
from worker.cli.rehearse import demo, rehearse
from worker.cli.run import compile_code, once, run
from worker.cli.sandbox import sandbox
from worker.cli.score import score
from worker.cli.status import status, submissions
from worker.cli.task import task
from worker.participant.commands import template, validate
from worker.participant.process import end, end_in_order, hear_of_children, report
from worker.participant.process import run as run_command

OF_UNITS = ("run", "once", "compile")
"""The commands of systemd's units; under systemd they write each line as a JSON object."""

SECTIONS: dict[str, dict[str, Any]] = {
    "For organizers: set up a challenge": {
        "init": init,
        "bundle": bundle,
        "doctor": doctor,
        "rehearse": rehearse,
        "task": task,
    },
    "For organizers: run it": {
        "run": run,
        "once": once,
        "status": status,
        "submissions": submissions,
        "board": board,
        "challenge": challenge,
    },
    "For participants, and anyone who wants to check a challenge": {
        "validate": validate,
        "template": template,
        "verify": verify,
    },
    "For researchers": {
        "score": score,
        "compare": compare,
        "rank": rank,
        "import": import_results,
        "export": export_results,
    },
    "To try it": {"demo": demo, "sandbox": sandbox},
}
"""Every command and group of commands, by audience and in the order of work; only ``compile`` is hidden."""

app = typer.Typer(
    name="neuco-worker",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for heading, commands in SECTIONS.items():
    for name, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=heading)
        else:
            app.command(name, rich_help_panel=heading)(command)
app.command("compile", hidden=True)(compile_code)
challenge.command(rich_help_panel="What anyone can check")(reveal)


def _say_version(asked: bool) -> None:
    if asked:
        print(f"neuco-worker {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_say_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Run hidden-task embedding challenges: score submissions from EvalAI and publish a dynamic-rank leaderboard.

    `neuco-worker COMMAND --help` explains a command. In commands for organizers, `-c, --config FILE` names the challenge's configuration
    file or its folder; the default is the file that NEUCO_CHALLENGE names, or challenge.yaml. Exit status: 0 if the command succeeded, 1
    if it failed, 2 if its usage, the configuration or the credentials are wrong, 130 after Ctrl-C.
    """


program = cast("typer.core.TyperGroup", typer.main.get_command(app))
"""All commands; a process builds them once, since that takes a tenth of a second."""


def main() -> None:
    """Run a command, and end the process with its exit status."""
    gc.set_threshold(100_000)  # imports make hundreds of thousands of objects, and next to no garbage
    hear_of_children()
    if sys.argv[1:2] not in [[unit] for unit in OF_UNITS]:  # these have handlers of their own
        end_in_order()
    status = guarded(sys.argv[1:])
    gc.freeze()  # a process that ends need not look for garbage: a sixth of a short command
    end(status)


def guarded(arguments: list[str]) -> int:
    """Run a command and return its exit status; without ``NEUCO_WORKER_TRACEBACK``, nobody sees a traceback.

    With that environment variable, an unexpected error shows one; this is for developers.
    """
    try:
        return run_command(program, arguments)
    except NeucoError as error:
        ended = error
    except Exception as error:
        if os.environ.get("NEUCO_WORKER_TRACEBACK"):
            raise
        ended = InfrastructureError(
            f"The command failed with an unexpected {type(error).__name__}.",
            hint="This is a bug in neuco-worker. Run the command with NEUCO_WORKER_TRACEBACK=1, and report what it prints.",
            code="unexpected",
        )
    if arguments and arguments[0] in OF_UNITS:
        from worker.daemon.logs import for_systemd, log_end

        if for_systemd():  # to the journal instead of a person
            log_end(ended)
            return ended.exit_code
    return report("neuco-worker", ended)
