"""``neuco-worker init``: from nothing to a challenge that can be rehearsed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from scoring.errors import OrganizerError

DEFAULT_PHASES = ("dev", "eval")
DEFAULT_FOLDS = (40, 200)
DEFAULT_DIM = 1024
DEFAULT_TITLE = "My hidden-task challenge"
LATER = "later"
Answer = TypeVar("Answer")


def init(
    directory: Annotated[Path, typer.Argument(help="Folder of the new challenge.", metavar="DIR")],
    *,
    title: Annotated[
        str | None, typer.Option(help="Title on EvalAI and on the board.", metavar="TEXT")
    ] = None,
    phase: Annotated[
        list[str] | None,
        typer.Option(help="Codename of a phase, in order; give it once for each phase.", metavar="NAME"),
    ] = None,
    folds: Annotated[
        list[str] | None,
        typer.Option(help="Random splits; once for all phases, or once for each.", metavar="N"),
    ] = None,
    dim: Annotated[str | None, typer.Option(help="Numbers in one embedding.", metavar="N")] = None,
    repository: Annotated[
        str | None,
        typer.Option(
            help="Git repository of the leaderboard, whose page the challenge links.", metavar="URL"
        ),
    ] = None,
    beacon: Annotated[
        str,
        typer.Option(
            help="The public value that decides the splits with the secret, so that nobody can choose them: drand, SOURCE@TIME for a"
            " machine without a network, or none.",
            metavar="SOURCE",
        ),
    ] = "drand",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take the defaults.")] = False,
    bundle_only: Annotated[bool, typer.Option("--bundle-only", hidden=True)] = False,
) -> None:
    """Set up a new challenge: configuration, secret, example tasks and the bundle that creates it on EvalAI.

    Asks for what is not given and has no good default. Nothing that exists is overwritten.

    Example: neuco-worker init my-challenge --title "Embed2Scale 2027" --phase dev --phase eval --folds 40 --folds 200 --dim 1024 --yes
    """
    from worker.organizer import scaffold

    if bundle_only:
        from worker.cli.bundle import bundle

        typer.echo(
            "`init --bundle-only` is called `bundle` now; the old name goes with the next version.", err=True
        )
        bundle(directory)
        return
    asking = not yes and sys.stdin.isatty()
    scaffold.check_free(directory)
    numbers = [] if folds is None else [_number(text, "--folds") for text in folds]
    if title is None:
        title = _asked("Title", DEFAULT_TITLE, _text, asking=asking)
    size = (
        _asked("Numbers in one embedding", str(DEFAULT_DIM), _size, asking=asking)
        if dim is None
        else _number(dim, "--dim")
    )
    phases = tuple(phase or ())
    if not phases:
        phases = _asked("Phases, in order", " ".join(DEFAULT_PHASES), _codenames, asking=asking)
    if repository is None:
        repository = _asked("Git repository of the leaderboard", LATER, _text, asking=asking)
    usual = DEFAULT_FOLDS if phases == DEFAULT_PHASES else DEFAULT_FOLDS[:1]
    new = scaffold.NewChallenge(
        title=title,
        phases=scaffold.with_folds(phases, numbers or usual),
        dim=size,
        repository=None if repository == LATER else repository,
        beacon=beacon,
    )
    written = scaffold.create(directory, new, now=datetime.now(UTC))
    typer.echo(_farewell(directory, written, repository=repository))


def _asked(question: str, default: str, read: Callable[[str], Answer], *, asking: bool) -> Answer:
    """Return a person's answer, asked again until it can be read; the default where nobody is asked."""
    while asking:
        try:
            return read(typer.prompt(question, default=default))
        except OrganizerError as error:
            typer.echo(f"  {error.sentence} {error.cure or ''}".rstrip(), err=True)
    return read(default)


def _text(answer: str) -> str:
    return answer.strip()


def _size(answer: str) -> int:
    return _number(answer, "The size of an embedding")


def _codenames(answer: str) -> tuple[str, ...]:
    from worker.organizer.scaffold import with_folds

    names = tuple(answer.replace(",", " ").split())
    with_folds(names, DEFAULT_FOLDS[:1])
    return names


def _number(text: str, what: str) -> int:
    """Read a whole number of at least 1.

    Raises:
        OrganizerError: If it is not one.
    """
    if text.strip().isdecimal() and int(text) > 0:
        return int(text)
    raise OrganizerError(
        f"{what} is a whole number of at least 1, not {text!r}.",
        cure=f"Write it in digits, such as {DEFAULT_DIM if 'fold' not in what else DEFAULT_FOLDS[0]}.",
        code="init.number",
    )


def _farewell(directory: Path, written: list[Path], *, repository: str) -> str:
    files = "\n".join(f"  {path}" for path in written)
    config = directory / "challenge.yaml"
    missing = "2. Enter the leaderboard repository in" if repository == LATER else "2. Look through"
    return f"""Wrote
{files}

Next:
  neuco-worker rehearse --config {config}   # the example tasks and your settings, against an EvalAI of our own
  neuco-worker doctor --config {config}     # what is still to do before the launch

Then:
  1. Delete the examples in {directory}/tasks and {directory}/ids. Put one file per task into {directory}/tasks/PHASE,
     called NAME__regr.csv or NAME__cls.csv (columns id,label), and the public ids into {directory}/ids/PHASE.txt, one per line.
  {missing} {config}; the challenge's pages link the leaderboard.
  3. Edit {directory}/bundle (texts, dates), pack it with `neuco-worker bundle {directory}`, and upload bundle.zip to EvalAI.
  4. Enter the challenge's number and queue in {config}; EvalAI shows the queue on the challenge's Manage tab as soon
     as the bundle is uploaded.
  5. As a host, press "Sort by latest" on EvalAI's leaderboard of each phase whose selection is `last`: EvalAI drops
     show_leaderboard_by_latest_submission when it imports a bundle, and would show each team's best submission instead.
     `neuco-worker doctor` checks it.
  6. Keep {directory}/challenge.secret safe: it is needed to score again, and anyone who has it knows every split."""
