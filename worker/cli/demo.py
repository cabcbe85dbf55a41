"""``neuco-worker demo``: a complete challenge on one machine."""

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
            "--dir", help="Folder for everything the demo writes; by default a new temporary folder."
        ),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(help="Challenge secret (64 hexadecimal digits), to repeat the splits of another demo."),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the EvalAI sandbox and the worker running at the end, until Ctrl-C."
        ),
    ] = False,
    folds: Annotated[int | None, typer.Option(hidden=True, min=1)] = None,
    phase: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    entries: Annotated[int | None, typer.Option(hidden=True, min=1)] = None,
) -> None:
    """Run a whole challenge on this machine: teams submit to a sandbox of EvalAI, the worker scores, and a leaderboard is published in git.

    The public data are 1,797 images of handwritten digits; the hidden tasks ask which digit an image shows and where its ink is. First in
    a dev phase and then in an eval phase, five teams submit, publicly and privately, and the organizers add two baselines. In each
    phase, one file is faulty. At the end, everything is revealed, and checked with the repository alone.

    Example: `neuco-worker demo --dir my-demo`
    """
    from worker.cli.terminal import Console
    from worker.organizer.demo.demo import run_demo
    from worker.organizer.demo.folder import FOLDS
    from worker.organizer.demo.screen import Screen

    # leaving this block ends the worker
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    console = Console(highlight=False)
    folder = (directory or Path(tempfile.mkdtemp(prefix="neuco-demo-"))).resolve()
    console.print(f"Running a hidden-task challenge in {folder}", soft_wrap=True, markup=False)
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
        console.print(f"\nWhat EvalAI shows {team} about the submission that failed:", markup=False)
        console.print(indent(message, "  "), markup=False, soft_wrap=True)
    console.print(f"\nFrom the first submission to the last board, it took {result.seconds:.0f} seconds.\n")
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
            cure="Run the command without --secret to get a random one.",
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
    """Run `verify` on the repository, as the last team of the last phase would."""
    from worker.cli.fairness import verify

    *_, board = [*result.boards.values()] or [{"entries": ()}]
    ranked = [entry for entry in board["entries"] if entry["rank"] is not None]
    command = sys.argv[0] if Path(sys.argv[0]).name == "neuco-worker" else "neuco-worker"
    words, receipt = [command, "verify", str(result.challenge.repository)], None
    whose = "Anyone can check them with"
    if ranked:
        receipt = [result.receipts[ranked[-1]["submission"]]]
        words[2:2] = ["--receipt", str(receipt[0])]
        whose = f"{ranked[-1]['team']}, who came last and kept the receipt, can check the result with"
    told = "Both phases are now closed, and the hidden tasks are published (the web page shows them)"
    undrawn = (
        "The demo draws no public random value, because you would have to wait for it, so you have to trust that"
        " nobody chose its splits. `neuco-worker rehearse` shows such a draw."
    )
    console.print(f"\n{undrawn}", markup=False, soft_wrap=True)
    console.print(f"\n{told}. {whose}:\n\n  {' '.join(words)}\n", markup=False, soft_wrap=True)
    verify(str(result.challenge.repository), receipt=receipt)


def _wait_for_interrupt(evalai: Sandbox, challenge: ChallengeFolder) -> None:
    """Print EvalAI's address, and wait for Ctrl-C."""
    typer.echo(
        f"\nThe EvalAI sandbox runs at {evalai.url} (the host's token is in {challenge.path / 'evalai.token'})."
    )
    typer.echo("Press Ctrl-C to stop it.")
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
