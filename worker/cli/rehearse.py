"""``neuco-worker rehearse`` and ``demo``: the real worker with a sandbox instead of EvalAI."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
import time
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer

from scoring.printable import count_of
from worker.cli.terminal import ConfigOption, Console, JsonOption, table_of

if TYPE_CHECKING:
    from worker.organizer.rehearsal import PhaseReport, Rehearsal


def rehearse(
    *,
    config: ConfigOption,
    submission: Annotated[
        list[str] | None,
        typer.Option(
            help="Also submit this file, such as `dev=mine.csv`; may be repeated.",
            metavar="PHASE=FILE",
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="Train at most this many folds, to finish sooner.", min=1)
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="New or empty folder in which to keep leaderboard, database and log.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Run your challenge on this machine: your tasks and settings and the real worker, with a sandbox in place of EvalAI.

    Submits random embeddings, a malformed file, and your files. Shows the boards; closes, reveals and verifies the phases. Uses a
    practice value in place of the public random value. Exits with 1 if something does not work.

    Next: `neuco-worker doctor` shows what is still to do before launch.

    Example: `neuco-worker rehearse --config challenge.yaml --submission dev=mine.csv --folds 10`
    """
    from worker.challenge.configuration import load
    from worker.organizer.rehearsal import rehearse as run_rehearsal
    from worker.organizer.rehearsal.entries import own_entries, usual_entries

    aside = Console(stderr=True, highlight=False, soft_wrap=True)
    configuration = load(config)
    own = own_entries(submission or (), configuration.phases)
    entries = {
        codename: (*usual, *own.get(codename, ())) for codename, usual in usual_entries(configuration).items()
    }
    rehearsal = run_rehearsal(
        configuration,
        entries,
        folds=folds,
        keep=keep,
        tell=lambda sentence: aside.print(sentence, markup=False, style="dim"),
    )
    if json_output:
        typer.echo(json.dumps(rehearsal.to_json(), indent=2))
    else:
        console = Console(highlight=False, soft_wrap=True)
        show_rehearsal(console, rehearsal)
        kept = (
            "The files of the rehearsal were deleted; --keep DIR keeps them."
            if keep is None
            else f"Everything is kept in {keep}."
        )
        following = (
            ""
            if rehearsal.faults
            else " Next: `neuco-worker doctor` shows what is still to do before launch."
        )
        console.print(f"{kept}{following}", markup=False)
    if rehearsal.faults:
        raise typer.Exit(1)


def show_rehearsal(console: Console, rehearsal: Rehearsal) -> None:
    """Print all results of a rehearsal."""
    for phase in rehearsal.phases:
        _show_phase(console, phase)
    if rehearsal.verified:
        console.print("\nThe phases were closed and revealed. `verify` says of the repository:", style="bold")
        for sentence in rehearsal.verified:
            console.print(f"  {sentence}", markup=False)
    for heading, style, sentences in (
        ("Worth a look", "bold yellow", rehearsal.remarks),
        ("Problems", "bold red", rehearsal.faults),
    ):
        if sentences:
            console.print(f"\n{heading}", style=style)
            for sentence in sentences:
                console.print(f"  • {sentence}", markup=False)
    if rehearsal.faults:
        return
    if rehearsal.like_random:
        verdict, style = f"is not clearly better than random numbers: {rehearsal.like_random}", "bold yellow"
        console.print(f"\nThe worker did all it should, but this {verdict}.", style=style, markup=False)
    else:
        console.print(f"\nEverything worked as it should, in {rehearsal.seconds:.0f} s.", style="bold green")


def _show_phase(console: Console, phase: PhaseReport) -> None:
    folds = (
        count_of(phase.folds, "fold")
        if phase.folds == phase.configured_folds
        else f"{phase.folds} of {phase.configured_folds} folds"
    )
    answers = {
        "Method": [row.entry.method for row in phase.submissions],
        "Visibility": ["public" if row.entry.public else "private" for row in phase.submissions],
        "Result": [row.status for row in phase.submissions],
        "Mean Q": [_value(row.q_mean, phase) for row in phase.submissions],
        "Seconds": [_number(row.seconds, 1) for row in phase.submissions],
    }
    console.print(table_of(answers, f"\nPhase {phase.codename} ({folds}): submissions"))
    board = {
        "Rank": [_number(entry["rank"]) or "–" for entry in phase.entries],
        "Team": [str(entry["team"]) for entry in phase.entries],
        "Mean Q": [_value(entry["q_mean"], phase) for entry in phase.entries],
        "By mean Q": [_number(entry["rank_by_mean"]) or "–" for entry in phase.entries],
    }
    console.print(table_of(board, f"Leaderboard of phase {phase.codename}"))
    for row in phase.submissions:
        if row.message:
            console.print(f"  What EvalAI shows {row.entry.team} about {row.entry.method}:", markup=False)
            console.print(indent(row.message, "    "), markup=False)


def _value(q_mean: float | None, phase: PhaseReport) -> str:
    from leaderboard.rendering import printed

    return "" if q_mean is None else printed(q_mean, phase.rounding.decimals, phase.rounding.ladder_step)


def _number(value: float | None, decimals: int = 0) -> str:
    return "" if value is None else f"{value:.{decimals}f}"


def demo(
    *,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="Folder to write to; by default a new temporary one."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="Train at most this many folds, to finish sooner.", min=1)
    ] = None,
) -> None:
    """Run a whole challenge on this machine, with a sandbox in place of EvalAI, and publish its leaderboard in git.

    Five teams and two baselines submit embeddings of 1,797 images of handwritten digits in two phases. The hidden tasks ask which digit
    an image shows and where its ink is. At the end, everything is revealed and verified.

    Next: `neuco-worker init` sets up a challenge of your own.

    Example: `neuco-worker demo --dir my-demo`
    """
    from worker.organizer.demo import run_demo

    console = Console(highlight=False, soft_wrap=True)
    path = (directory or Path(tempfile.mkdtemp(prefix="neuco-demo-"))).resolve()
    began = time.monotonic()
    folder, rehearsal = run_demo(
        path,
        folds=folds,
        tell=lambda sentence: console.print(f"{time.monotonic() - began:5.1f} s  {sentence}", markup=False),
    )
    show_rehearsal(console, rehearsal)
    if rehearsal.faults:
        raise typer.Exit(1)
    *_, last = rehearsal.phases
    entry = [entry for entry in last.entries if entry["rank"] is not None][-1]
    receipt = folder.answer(last.codename, entry["submission"])
    program = sys.argv[0] if Path(sys.argv[0]).name == "neuco-worker" else "neuco-worker"
    command = shlex.join([program, "verify", "--receipt", str(receipt), str(folder.repository)])
    console.print(
        f"""
Leaderboard:     {path / "leaderboard" / "README.md"}
Web page:        {path / "leaderboard" / "index.html"}
Git repository:  {folder.repository}
Submissions:     {receipt.parent.parent}
Worker's log:    {folder.log}
Verdict:         {rehearsal.verified[-1]}

The hidden tasks are now published; the web page shows them. Next, {entry["team"]}, who came last, can check the result with the receipt:

  {command}""",
        markup=False,
    )
