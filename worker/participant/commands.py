"""``validate``, the worker's check of a submission, and ``template``, the table that a participant fills in.

Participants who install nothing else run them as ``neuco-check``, which also has ``status``.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scoring.errors import NeucoError, OrganizerError, ParticipantError
from scoring.inputs.formats import listed
from scoring.inputs.limits import MOST_MEGABYTES
from scoring.printable import count_of, printable_lines
from worker.participant.process import end, end_in_order, hear_of_children, no_verdict, report, run

if TYPE_CHECKING:
    from scoring.inputs.embeddings import Embeddings
    from worker.participant.challenge import Asked


IdsOption = Annotated[
    Path | None,
    typer.Option(
        "--ids",  # a name that equals metavar but for its case would become --IDS with Typer 0.27
        help="The phase's public id list, one per line.",
        metavar="IDS",
        show_default=False,
    ),
]
DimOption = Annotated[
    int | None,
    typer.Option(
        help="Number of values in one embedding, such as 1024.",
        min=1,
        max=1_000_000,
        metavar="N",
        show_default=False,
    ),
]
ChallengeOption = Annotated[
    str | None,
    typer.Option(
        help="The challenge's leaderboard repository, which has ids and dimension: a git URL or a folder.",
        metavar="URL",
        show_default=False,
    ),
]
PhaseOption = Annotated[
    str | None,
    typer.Option(
        help="Codename of the phase; needed with --challenge if there are several.",
        metavar="NAME",
        show_default=False,
    ),
]


def template(
    out: Annotated[Path, typer.Argument(help="CSV file to write, such as submission.csv.", metavar="OUT")],
    *,
    challenge: ChallengeOption = None,
    phase: PhaseOption = None,
    ids: IdsOption = None,
    dim: DimOption = None,
) -> None:
    """Write an empty submission to fill in: one row per public id, one column per dimension.

    Next: fill in the file, then run `neuco-worker validate`.

    Example: `neuco-worker template submission.csv --challenge https://github.com/organizer/challenge-leaderboard --phase dev`
    """
    from worker.participant.challenge import asked

    wanted = asked(ids, dim, challenge, phase)
    _write(out, wanted.ids, wanted.embedding_dim)
    typer.echo(
        f"Wrote {out}: {count_of(len(wanted.ids), 'row')} with the columns id and 0 to {wanted.embedding_dim - 1}."
    )
    typer.echo("Fill every cell with a finite number, then check the file with `validate`.")


def _write(path: Path, ids: Sequence[str], columns: int) -> None:
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            try:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(["id", *range(columns)])
                writer.writerows([identifier, *[""] * columns] for identifier in ids)
                file.flush()
            except BaseException:
                path.unlink()  # half a table
                raise
    except FileExistsError:
        raise OrganizerError(
            f"{path} exists already.",
            hint="Choose another file name, or remove the file.",
            code="file.exists",
        ) from None
    except OSError as error:
        raise OrganizerError(
            f"{path} cannot be written: {error.strerror}.",
            hint="Choose another place, or check its permissions.",
            code="file.unwritable",
        ) from error


@no_verdict()
def validate(
    file: Annotated[
        Path,
        typer.Argument(
            help=f"Submission: {listed(details=True)}.",
            exists=True,
            metavar="FILE",
        ),
    ],
    *,
    challenge: ChallengeOption = None,
    phase: PhaseOption = None,
    ids: IdsOption = None,
    dim: DimOption = None,
    max_megabytes: Annotated[
        float, typer.Option(help="Largest file that the challenge accepts, in MB.", min=0.001, max=1_000_000)
    ] = MOST_MEGABYTES,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check a submission file as the challenge would, with the same messages. Nothing is sent.

    Exits with 0 if the file would be scored, 1 if it would be refused, and 2 if it could not be checked.

    Next: submit the file at EvalAI.

    Example: `neuco-worker validate embeddings.csv --challenge https://github.com/organizer/challenge-leaderboard --phase dev`
    """
    from worker.participant.challenge import asked

    try:
        wanted = asked(ids, dim, challenge, phase)
        embeddings = _embeddings(file, wanted, max_megabytes)
    except ModuleNotFoundError as error:
        raise OrganizerError(
            f"Reading this file needs the package {error.name}.",
            hint=f"Install it: pip install {error.name}. Or save the file as CSV.",
            code="validate.package",
        ) from None
    except ParticipantError as error:
        if not json_output:
            raise
        typer.echo(json.dumps({"valid": False, "code": error.code, "message": error.message}))
        raise typer.Exit(1) from None
    if json_output:
        typer.echo(json.dumps(_document(embeddings, wanted)))
    else:
        _show(embeddings, wanted)


def _embeddings(file: Path, wanted: Asked, max_megabytes: float) -> Embeddings:
    from scoring.inputs.limits import largest_expanded, largest_file, too_large
    from scoring.inputs.tables import read_submission

    # The worker would not download it at all.
    if file.is_file() and file.stat().st_size > largest_file(max_megabytes):
        raise too_large(largest_file(max_megabytes))
    most = largest_expanded(max_megabytes)
    return read_submission(file, wanted.ids, wanted.embedding_dim, max_expanded_bytes=most)


def _document(embeddings: Embeddings, wanted: Asked) -> dict[str, object]:
    return {
        "valid": True,
        "ids": len(embeddings.ids),
        "dimension": wanted.embedding_dim,
        "content_hash": embeddings.content_hash,
        "zarr_suffix_removed": embeddings.zarr_suffix_removed,
        "notes": list(embeddings.notes),
        **({"phase": wanted.phase} if wanted.phase else {}),
    }


def _show(embeddings: Embeddings, wanted: Asked) -> None:
    what = f"{count_of(len(embeddings.ids), 'embedding')} with {count_of(wanted.embedding_dim, 'value')} each"
    where = f" for phase {wanted.phase}" if wanted.phase else ""
    typer.echo(f"The file is valid{where}: {what}.")
    for note in embeddings.notes:
        typer.echo(f"Note: {note}.")
    typer.echo(f"Content hash: {embeddings.content_hash}")
    typer.echo("  Files with the same ids and values have the same hash, and get the same score.")


@no_verdict()
def alive(
    challenge: Annotated[
        str,
        typer.Argument(help="The challenge's leaderboard repository: a git URL or a folder.", metavar="URL"),
    ],
) -> None:
    """Say whether a challenge is alive: how old the last line of its public log is, to which it adds one at a fixed interval.

    Exits with 1 if it has been silent for more than three intervals.
    """
    from worker.participant.challenge import last_written, opened

    with opened(challenge) as read:
        sentence, silent = last_written(read, datetime.now(UTC))
    typer.echo(printable_lines(sentence))
    if silent:
        typer.echo("The challenge is silent: write to the organizers.")
        raise typer.Exit(1)


app = typer.Typer(
    name="neuco-check",
    help="Check a submission to an embedding challenge before you send it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
commands: dict[str, Callable[..., None]] = {"validate": validate, "template": template, "status": alive}
for name, command in commands.items():
    app.command(name, help=(command.__doc__ or "").replace("neuco-worker", "neuco-check"))(command)


def main() -> None:
    """Run a command; the process's exit status is 0 (done), 1 (refused or failed), 2 (wrong usage) or 130 (Ctrl-C)."""
    hear_of_children()
    end_in_order()
    try:
        status = run(app, sys.argv[1:])
    except NeucoError as error:
        status = report("neuco-check", error)
    end(status)
