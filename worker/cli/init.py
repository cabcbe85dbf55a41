"""``neuco-worker init`` and ``bundle``: create a challenge that can be rehearsed, and the zip that creates it at EvalAI."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from scoring.errors import OrganizerError
from worker.cli.terminal import configuration_file

if TYPE_CHECKING:
    from worker.challenge.sections import Beacon
    from worker.organizer.scaffold import NewChallenge


DEFAULT_PHASES = ("dev", "eval")
DEFAULT_FOLDS = (40, 200)
DEFAULT_DIM = 1024
DEFAULT_TITLE = "My hidden-task challenge"
LATER = "later"
Answer = TypeVar("Answer")


def init(
    directory: Annotated[Path, typer.Argument(help="Folder to create the challenge in.", metavar="DIR")],
    *,
    title: Annotated[str | None, typer.Option(help="Title of the challenge.", metavar="TEXT")] = None,
    phase: Annotated[
        list[str] | None,
        typer.Option(help="Codename of a phase; may be repeated, in order.", metavar="NAME"),
    ] = None,
    folds: Annotated[
        list[int] | None,
        typer.Option(
            help="Random splits per task; once for all phases, or once for each.", min=1, metavar="N"
        ),
    ] = None,
    dim: Annotated[
        int | None, typer.Option(help="Number of values in one embedding.", min=1, metavar="N")
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option(
            help="Git repository that the leaderboard is pushed to.",
            metavar="URL",
        ),
    ] = None,
    beacon: Annotated[
        Literal["drand", "none"],
        typer.Option(help="Public random value, so that you cannot choose the splits."),
    ] = "drand",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; use the defaults.")] = False,
) -> None:
    """Set up a challenge: configuration, secret, signing key, example tasks, and the bundle that creates it on EvalAI.

    Asks for settings that are not given as options. Existing files are never overwritten.

    Next: `neuco-worker rehearse` with the new configuration.

    Example: `neuco-worker init my-challenge --title "Embed2Scale 2027" --phase dev --phase eval --folds 40 --folds 200 --dim 1024 --yes`
    """
    from worker.organizer import scaffold

    scaffold.check_free(directory)
    new = _decided(
        title=title,
        dim=dim,
        phases=tuple(phase or ()),
        folds=folds or [],
        repository=repository,
        beacon=beacon,
        asking=not yes and sys.stdin.isatty(),
    )
    written = scaffold.create(directory, new, now=datetime.now(UTC))
    typer.echo(_next_steps(directory, written, has_repository=new.repository is not None))


def _decided(
    *,
    title: str | None,
    dim: int | None,
    phases: tuple[str, ...],
    folds: Sequence[int],
    repository: str | None,
    beacon: Beacon,
    asking: bool,
) -> NewChallenge:
    """Return the organizer's decisions: the options, and answers to questions about the others."""
    from worker.organizer.scaffold import NewChallenge, with_folds

    title = title or _asked("Title", DEFAULT_TITLE, str.strip, asking=asking)
    dim = dim or _asked("Number of values in one embedding", str(DEFAULT_DIM), _number, asking=asking)
    if not phases:
        phases = _asked("Phases, in order", " ".join(DEFAULT_PHASES), _codenames, asking=asking)
    repository = (
        _asked("Git repository of the leaderboard", LATER, _repository, asking=asking)
        if repository is None
        else _repository(repository)
    )
    usual = DEFAULT_FOLDS if phases == DEFAULT_PHASES else DEFAULT_FOLDS[:1]
    return NewChallenge(
        title=title,
        phases=with_folds(phases, folds or usual),
        dim=dim,
        repository=None if repository == LATER else repository,
        beacon=beacon,
    )


def _asked(question: str, default: str, read: Callable[[str], Answer], *, asking: bool) -> Answer:
    """Return a person's answer, asking again until it is valid; without a terminal, the default."""
    while asking:
        try:
            return read(typer.prompt(question, default=default))
        except OrganizerError as error:
            typer.echo(f"  {error.sentence} {error.hint or ''}".rstrip(), err=True)
    return read(default)


def _repository(answer: str) -> str:
    """Check the address of a git repository by its form.

    Raises:
        OrganizerError: If it is neither a URL nor a path.
    """
    address = answer.strip()
    if address == LATER or "/" in address or re.match(r"[^/]+@[^/]+:", address) or Path(address).is_dir():
        return address
    raise OrganizerError(
        f"{address!r} is not the address of a git repository.",
        hint="Give a URL such as https://github.com/organizer/challenge-leaderboard, or the path of a local bare repository such as"
        f" ./board.git; or answer “{LATER}”, and enter the address in challenge.yaml afterwards.",
        code="init.repository",
    )


def _codenames(answer: str) -> tuple[str, ...]:
    from worker.organizer.scaffold import with_folds

    names = tuple(answer.replace(",", " ").split())
    with_folds(names, DEFAULT_FOLDS[:1])
    return names


def _number(answer: str) -> int:
    """Read a whole number of at least 1.

    Raises:
        OrganizerError: If it is not one.
    """
    if re.fullmatch("0*[1-9][0-9]{0,8}", answer.strip()):
        return int(answer)
    raise OrganizerError(
        f"The size of an embedding must be a whole number of at least 1, not {answer!r}.",
        hint=f"Write the number in digits, such as {DEFAULT_DIM}.",
        code="init.number",
    )


def _next_steps(directory: Path, written: list[Path], *, has_repository: bool) -> str:
    from worker.challenge.configuration import load
    from worker.organizer.bundle import verification

    files = "\n".join(f"  {path}" for path in written)
    config = directory / "challenge.yaml"
    quoted, folder = shlex.quote(str(config)), shlex.quote(str(directory))
    missing = (
        "2. Check the leaderboard repository in"
        if has_repository
        else "2. Enter the leaderboard repository in"
    )
    return f"""Wrote
{files}

Try it now, with the example tasks and without EvalAI:
  neuco-worker rehearse --config {quoted}

Before launch:
  1. Replace the examples in {directory}/tasks and {directory}/ids: put one label file per task into {directory}/tasks/PHASE, called
     NAME__regr.csv or NAME__cls.csv (columns id,label), and the public ids into {directory}/ids/PHASE.txt, one per line.
  {missing} {config}. The challenge's pages on EvalAI link to it.
     Check when each phase opens for participants (`opens`).
  3. Edit the texts and dates in {directory}/bundle, run `neuco-worker bundle {folder}` to pack them, and upload bundle.zip to EvalAI.
  4. Enter the challenge's number and queue in {config}. After the upload, the number is in the address of the
     challenge's page, and the queue is in its Manage tab.
  5. Keep {directory}/challenge.secret and signing.key safe: without them you cannot score again or publish, and anyone who has them knows
     every split and can sign as the challenge. Anyone checks it with: {verification(load(config))}
  6. See what is still to do: neuco-worker doctor --config {quoted}"""


def bundle(
    directory: Annotated[
        Path,
        typer.Argument(
            help="Folder of the challenge.",
            metavar="DIR",
            envvar="NEUCO_CHALLENGE",
            show_envvar=False,
        ),
    ] = Path(),
) -> None:
    """Pack DIR/bundle into bundle.zip, which creates the challenge on EvalAI, and check it against challenge.yaml.

    Run it after each change of texts, dates or challenge.yaml. It renews the marked parts of the pages, which follow from dates and
    challenge.yaml, and adds phases that come last there. It creates DIR/bundle if there is none.

    Next: upload bundle.zip to EvalAI.

    Example: `neuco-worker bundle my-challenge`
    """
    from worker.challenge.configuration import load
    from worker.organizer import scaffold
    from worker.organizer.bundle import read_sources
    from worker.organizer.bundle_check import own_parts

    config = configuration_file(directory)
    configuration, directory = load(config), config.parent
    renewed = scaffold.pack_bundle(directory, configuration, now=datetime.now(UTC))
    if renewed:
        print(f"Renewed in {directory / 'bundle'}: {', '.join(renewed)}.")
    if own := own_parts(read_sources(directory / "bundle"), configuration):
        print(f"Check yourself what is no longer marked: {', '.join(own)}.")
    print(f"Wrote {directory / 'bundle.zip'}.")
    if configuration.board_address is None:
        typer.echo(
            f"Its pages do not link to the leaderboard, because a browser cannot open leaderboard.repository"
            f" ({configuration.leaderboard.repository}). Set leaderboard.repository or leaderboard.page in"
            f" {config}, and run this command again.",
            err=True,
        )
