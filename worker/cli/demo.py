"""``neuco-worker demo``: a whole challenge on one machine."""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
import threading
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scoring.errors import OrganizerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from worker.cli.terminal import Console
    from worker.organizer.demo.demo import DemoResult
    from worker.organizer.demo.folder import ChallengeFolder
    from worker.sandbox import Sandbox

SECRET_BYTES = 32


def demo(
    *,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir", help="Folder to keep everything in; by default a new one among the temporary files."
        ),
    ] = None,
    secret: Annotated[
        str | None, typer.Option(help="Challenge secret (64 hexadecimal digits), to repeat a demo's splits.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave EvalAI and worker running at the end, until Ctrl-C.")
    ] = False,
    folds: Annotated[int | None, typer.Option(hidden=True, min=1)] = None,
    phase: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    entries: Annotated[int | None, typer.Option(hidden=True, min=1)] = None,
) -> None:
    """Watch a hidden-task challenge happen: submissions arrive at an EvalAI sandbox, the worker scores them, a leaderboard appears in git.

    1,797 handwritten digits play the public data; the hidden tasks are what the digits are and where their ink lies. Five teams submit,
    publicly and privately, one file is broken, and the organizers add two baselines; first in a dev phase, then in an eval phase. At the
    end everything is revealed, and checked from the repository alone.

    Example: neuco-worker demo --dir my-demo
    """
    from worker.cli.terminal import Console
    from worker.organizer.demo.demo import run_demo
    from worker.organizer.demo.folder import FOLDS
    from worker.organizer.demo.screen import Screen

    # The worker is ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console(highlight=False)
    folder = (directory or Path(tempfile.mkdtemp(prefix="neuco-demo-"))).resolve()
    console.print(f"A hidden-task challenge in {folder}", soft_wrap=True, markup=False)
    result = run_demo(
        folder,
        Screen(console),
        secret=None if secret is None else _secret(secret),
        folds=FOLDS if folds is None else dict.fromkeys(FOLDS, folds),
        phases=phase or FOLDS,
        entries=entries,
        before_end=_wait_for_interrupt if keep else None,
    )
    for board in result.boards.values():
        console.print()
        console.print(_board(board))
    for team, message in result.failures.items():
        console.print(f"\nWhat EvalAI tells {team} about the failed submissions:", markup=False)
        console.print(indent(message, "  "), markup=False, soft_wrap=True)
    console.print(f"\nFrom the first submission to the last board: {result.seconds:.0f} seconds.\n")
    console.print(_paths(result), markup=False, soft_wrap=True)
    _verify(result, console)


def _secret(text: str) -> bytes:
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise OrganizerError(
            "--secret must be 32 bytes, written as 64 hexadecimal digits.",
            cure="Leave it out for a random one.",
            code="secret.form",
        )
    return secret


def _board(board: Mapping[str, Any]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"Leaderboard of phase {board['title']}", title_justify="left")
    table.add_column("Rank", justify="right")
    table.add_column("Team")
    table.add_column("Mean Q", justify="right")
    table.add_column("By mean Q", justify="right")
    for entry in board["entries"]:
        table.add_row(
            "–" if entry["rank"] is None else str(entry["rank"]),
            escape(entry["team"]),
            f"{entry['q_mean']:.{board['rules']['decimals']}f}",
            "–" if entry["rank_by_mean"] is None else str(entry["rank_by_mean"]),
        )
    return table


def _paths(result: DemoResult) -> str:
    challenge = result.challenge
    lines = [
        ("Git repository", challenge.repository),
        ("README", challenge.checkout / "README.md"),
        *(
            (f"JSON, {phase}", challenge.checkout / "leaderboard" / f"{phase}.json")
            for phase in result.boards
        ),
        ("Web page", challenge.checkout / "index.html"),
        ("Submissions", challenge.participants),
        ("Configuration", challenge.configuration),
        ("Worker's log", challenge.log),
    ]
    return "\n".join(f"{name + ':':<16} {path}" for name, path in lines)


def _verify(result: DemoResult, console: Console) -> None:
    """Check the repository as whoever came last in the last phase would, with the command that they would run."""
    from worker.cli.fairness import verify

    *_, board = [*result.boards.values()] or [{"entries": ()}]
    ranked = [entry for entry in board["entries"] if entry["rank"] is not None]
    command = sys.argv[0] if Path(sys.argv[0]).name == "neuco-worker" else "neuco-worker"
    words, receipt = [command, "verify", str(result.challenge.repository)], None
    whose = "Whoever wants to check it runs"
    if ranked:
        receipt = [result.receipts[ranked[-1]["submission"]]]
        words[2:2] = ["--receipt", str(receipt[0])]
        whose = f"{ranked[-1]['team']}, who came last and kept the receipt, can check it"
    told = "Both phases are closed, and what was hidden is published (the web page shows it)"
    undrawn = (
        "The demo uses no public beacon, so that nobody has to wait for one: that its splits were not chosen is believed. `neuco-worker"
        " rehearse` shows a draw."
    )
    console.print(f"\n{undrawn}", markup=False, soft_wrap=True)
    console.print(f"\n{told}. {whose}:\n\n  {' '.join(words)}\n", markup=False, soft_wrap=True)
    verify(str(result.challenge.repository), receipt=receipt)


def _wait_for_interrupt(evalai: Sandbox, challenge: ChallengeFolder) -> None:
    """Say where EvalAI listens and wait for Ctrl-C."""
    typer.echo(f"\nEvalAI sandbox: {evalai.url} (token of the host in {challenge.path / 'evalai.token'})")
    typer.echo("It runs until Ctrl-C.")
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
