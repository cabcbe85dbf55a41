"""``template``: write the table that a participant fills in."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from scoring.errors import OrganizerError
from scoring.printable import count_of
from worker.participant.options import ChallengeOption, DimOption, IdsOption, PhaseOption


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
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["id", *range(columns)])
            writer.writerows([identifier, *[""] * columns] for identifier in ids)
    except FileExistsError:
        raise OrganizerError(
            f"{path} exists already.",
            cure="Choose another file name, or remove the file.",
            code="file.exists",
        ) from None
    except OSError as error:
        raise OrganizerError(
            f"{path} cannot be written: {error.strerror}.",
            cure="Choose another place, or check its permissions.",
            code="file.unwritable",
        ) from error
