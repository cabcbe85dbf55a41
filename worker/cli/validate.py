"""``neuco-worker validate``: the check that the worker makes, for participants, offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from scoring.errors import ParticipantError
from worker.cli.options import JsonOption


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
    ids: Annotated[Path, typer.Option(help="The phase's public id list, one id per line.", metavar="IDS")],
    dim: Annotated[int, typer.Option(help="Numbers in one embedding.", min=1, max=1_000_000, metavar="N")],
    max_megabytes: Annotated[
        float, typer.Option(help="Largest file that the challenge accepts.", min=0.001)
    ] = 1024.0,
    json_output: JsonOption = False,
) -> None:
    """Check a submission as the worker will: same verdict, same words, nothing sent anywhere.

    Ends with 0 if the file would be scored, 1 if it would be refused, 2 if the check could not be made.

    Example: neuco-worker validate embeddings.csv --ids ids/dev.txt --dim 1024
    """
    from scoring.inputs.identifiers import read_ids
    from scoring.inputs.submission import read_submission
    from worker.runtime.limits import largest_expanded, largest_file, too_large

    public_ids = read_ids(ids)
    try:
        # The worker would not even download it.
        if file.is_file() and file.stat().st_size > largest_file(max_megabytes):
            raise too_large(largest_file(max_megabytes))
        embeddings = read_submission(
            file, public_ids, dim, max_expanded_bytes=largest_expanded(max_megabytes)
        )
    except ParticipantError as error:
        if not json_output:
            raise
        typer.echo(json.dumps({"valid": False, "code": error.code, "message": error.message}))
        raise typer.Exit(1) from None
    if json_output:
        document = {
            "valid": True,
            "ids": len(embeddings.ids),
            "dimension": dim,
            "content_hash": embeddings.content_hash,
            "zarr_suffix_removed": embeddings.zarr_suffix_removed,
            "notes": list(embeddings.notes),
        }
        typer.echo(json.dumps(document))
        return
    typer.echo(f"The file is valid: {len(embeddings.ids):,} embeddings of {dim:,} numbers.")
    for note in embeddings.notes:
        typer.echo(f"Note: {note}.")
    typer.echo(f"Content hash: {embeddings.content_hash}")
    typer.echo("  Files with the same ids and numbers have the same hash, and get the same score.")
