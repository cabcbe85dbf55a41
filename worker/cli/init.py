"""``neuco-worker init``: from nothing to a challenge that can be rehearsed."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_PHASES = ("dev", "eval")
DEFAULT_FOLDS = (40, 200)
DEFAULT_DIM = 1024
DEFAULT_TITLE = "My hidden-task challenge"


def init(
    directory: Annotated[Path, typer.Argument(help="Folder of the new challenge.", metavar="DIR")],
    *,
    title: Annotated[str | None, typer.Option(help="Title on EvalAI and on the board.")] = None,
    phase: Annotated[
        list[str] | None, typer.Option(help="Codename of a phase, in order; give it once for each phase.")
    ] = None,
    folds: Annotated[
        list[int] | None, typer.Option(help="Random splits; once for all phases, or once for each.", min=1)
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Numbers in one embedding.", min=1)] = None,
    beacon: Annotated[
        str,
        typer.Option(
            help="The public value that decides the splits with the secret, so that nobody can choose them: drand, SOURCE@TIME for a"
            " machine without a network, or none."
        ),
    ] = "drand",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take the defaults.")] = False,
    bundle_only: Annotated[
        bool,
        typer.Option("--bundle-only", help="Only pack DIR/bundle again, after you changed texts or dates."),
    ] = False,
) -> None:
    """Set up a new challenge: configuration, secret, example tasks and the bundle that creates it on EvalAI.

    Asks for what is not given. Nothing that exists is overwritten.

    Example: neuco-worker init my-challenge --title "Embed2Scale 2027" --phase dev --phase eval --folds 40 --folds 200 --dim 1024 --yes
    """
    from worker.organizer import scaffold
    from worker.organizer.bundle import LEADERBOARD
    from worker.organizer.bundle_check import pages_to_fill_in

    if bundle_only:
        packed = scaffold.pack_bundle(directory)
        typer.echo(f"Packed {packed}.")
        for page in pages_to_fill_in(packed):
            typer.echo(
                f"{page} does not say yet where the leaderboard is: set leaderboard.repository in {directory}/challenge.yaml"
                f" and pack again, or write the address over {LEADERBOARD} in {directory}/bundle/{page}.",
                err=True,
            )
        return
    asking = not yes and sys.stdin.isatty()
    title = title or (typer.prompt("Title", default=DEFAULT_TITLE) if asking else DEFAULT_TITLE)
    if not phase and asking:
        phase = typer.prompt("Phases, in order", default=" ".join(DEFAULT_PHASES)).split()
    phases = tuple(phase or DEFAULT_PHASES)
    if not folds:
        usual = DEFAULT_FOLDS if phases == DEFAULT_PHASES else (DEFAULT_FOLDS[0],) * len(phases)
        folds = [
            typer.prompt(f"Random splits in {name}", default=number, type=int) if asking else number
            for name, number in zip(phases, usual, strict=True)
        ]
    if dim is None:
        dim = (
            typer.prompt("Numbers in one embedding", default=DEFAULT_DIM, type=int) if asking else DEFAULT_DIM
        )
    new = scaffold.NewChallenge(
        title=title, phases=scaffold.with_folds(phases, folds), dim=dim, beacon=beacon
    )
    written = scaffold.create(directory, new, now=datetime.now(UTC))
    typer.echo(_farewell(directory, written))


def _farewell(directory: Path, written: list[Path]) -> str:
    files = "\n".join(f"  {path}" for path in written)
    return f"""Wrote
{files}

Next:
  1. Put your label files into {directory}/tasks and your public ids into {directory}/ids, in place of the examples.
  2. Enter the leaderboard repository in {directory}/challenge.yaml: the challenge's pages link it.
  3. Edit {directory}/bundle (texts, dates), pack it with `neuco-worker init {directory} --bundle-only`, and upload bundle.zip to EvalAI.
  4. Enter the challenge's number and queue in {directory}/challenge.yaml; EvalAI shows the queue on the challenge's Manage tab as soon
     as the bundle is uploaded.
  5. As a host, press "Sort by latest" on EvalAI's leaderboard of each phase whose selection is `last`: EvalAI drops
     show_leaderboard_by_latest_submission when it imports a bundle, and would show each team's best submission instead.
     `neuco-worker doctor` checks it.
  6. Keep {directory}/challenge.secret safe: it is needed to score again, and anyone who has it knows every split."""
