"""``validate``: the worker's check of a submission, for participants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from scoring.errors import InfrastructureError, OrganizerError, ParticipantError
from scoring.printable import count_of
from worker.participant.options import ChallengeOption, DimOption, IdsOption, PhaseOption

if TYPE_CHECKING:
    from scoring.inputs.correction import Corrected
    from scoring.inputs.embeddings import Embeddings
    from worker.participant.challenge import Asked


class _Unchecked(InfrastructureError):
    """The challenge or the file cannot be read, so nothing is known of the submission."""

    exit_code: ClassVar[int] = 2  # 1 says that the file would be refused


def validate(
    file: Annotated[
        Path,
        typer.Argument(
            help="Submission: CSV (also .gz or .zip), Parquet or NPZ.",
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
        float, typer.Option(help="Size of the largest file that the challenge accepts, in MB.", min=0.001)
    ] = 1024.0,
    fix: Annotated[
        Path | None,
        typer.Option(
            help="Write a corrected copy as CSV, such as fixed.csv, unless a problem remains that only you can correct.",
            metavar="OUT",
            show_default=False,
        ),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check a submission file against the organizers' rules. The messages are those that a submission would get. Nothing is sent.

    Exits with 0 if the file would be scored, 1 if it would be refused, and 2 if it could not be checked. With --fix, the command
    writes a corrected copy of a CSV file. It corrects column names, such as ID, emb_0 or numbers that begin at 1, and leaves out
    extra columns and extra or repeated rows. It changes values only by rounding them to float32.

    Example: neuco-worker validate embeddings.csv --challenge https://github.com/organizer/challenge-leaderboard --phase dev
    """
    from worker.participant.challenge import asked

    try:
        wanted = asked(ids, dim, challenge, phase)
        found = _read(file, wanted, max_megabytes, correct=fix is not None)
    except InfrastructureError as error:
        raise _Unchecked(error.sentence, cure=error.cure, code=error.code) from error
    except ModuleNotFoundError as error:
        raise OrganizerError(
            f"Reading this file needs the package {error.name}.",
            cure=f"Install it: pip install {error.name}. Or save the file as CSV.",
            code="validate.package",
        ) from None
    except ParticipantError as error:
        if not json_output:
            raise
        typer.echo(json.dumps({"valid": False, "code": error.code, "message": error.message}))
        raise typer.Exit(1) from None
    if fix is not None:
        _write(fix, found.embeddings, wanted)
    if json_output:
        typer.echo(json.dumps(_document(found, wanted, fix)))
    elif fix is None:
        _show(found.embeddings, wanted)
    else:
        _show_correction(found, wanted, fix)


def _read(file: Path, wanted: Asked, max_megabytes: float, *, correct: bool) -> Corrected:
    from scoring.inputs.correction import Corrected, corrected
    from scoring.inputs.limits import largest_expanded, largest_file, too_large
    from scoring.inputs.submission import read_submission

    # The worker would not download it at all.
    if file.is_file() and file.stat().st_size > largest_file(max_megabytes):
        raise too_large(largest_file(max_megabytes))
    most = largest_expanded(max_megabytes)
    if correct:
        return corrected(file, wanted.ids, wanted.embedding_dim, max_expanded_bytes=most)
    found = read_submission(file, wanted.ids, wanted.embedding_dim, max_expanded_bytes=most)
    return Corrected(embeddings=found, changes=())


def _write(out: Path, embeddings: Embeddings, wanted: Asked) -> None:
    """Write the corrected file, and read it again: it must be the same submission."""
    from scoring.inputs.submission import read_submission
    from scoring.inputs.written import write_embeddings

    write_embeddings(out, embeddings)
    again = read_submission(out, wanted.ids, wanted.embedding_dim, max_expanded_bytes=out.stat().st_size + 1)
    if again.content_hash != embeddings.content_hash:
        raise InfrastructureError(
            f"{out} was written, but it does not contain the same submission.",
            cure="Do not use it. Use the file that was checked, and report this as a bug in neuco-worker.",
            code="validate.written",
        )


def _document(found: Corrected, wanted: Asked, fix: Path | None) -> dict[str, object]:
    embeddings = found.embeddings
    document: dict[str, object] = {
        "valid": True,
        "ids": len(embeddings.ids),
        "dimension": wanted.embedding_dim,
        "content_hash": embeddings.content_hash,
        "zarr_suffix_removed": embeddings.zarr_suffix_removed,
        "notes": list(embeddings.notes),
    }
    if wanted.phase:
        document["phase"] = wanted.phase
    if fix is not None:
        document |= {"written": str(fix), "changes": list(found.changes)}
    return document


def _show(embeddings: Embeddings, wanted: Asked) -> None:
    what = f"{count_of(len(embeddings.ids), 'embedding')} with {count_of(wanted.embedding_dim, 'value')} each"
    where = f" for phase {wanted.phase}" if wanted.phase else ""
    typer.echo(f"The file is valid{where}: {what}.")
    for note in embeddings.notes:
        typer.echo(f"Note: {note}.")
    typer.echo(f"Content hash: {embeddings.content_hash}")
    typer.echo("  Files with the same ids and values have the same hash, and get the same score.")


def _show_correction(found: Corrected, wanted: Asked, out: Path) -> None:
    columns = f"the columns id and 0 to {wanted.embedding_dim - 1}"
    typer.echo(
        f"Wrote {out}: {count_of(len(found.embeddings.ids), 'row')} in the order of their ids, with {columns}."
    )
    for change in found.changes:
        typer.echo(f"  {change}")
    if not found.changes:
        typer.echo("  The file was already valid; nothing had to be corrected.")
    typer.echo(f"Content hash: {found.embeddings.content_hash}")
