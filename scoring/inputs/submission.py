"""Read a submitted file of any accepted kind into embeddings, or refuse it with one message that says what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from scoring.errors import InfrastructureError
from scoring.inputs.archives import Capped, Readable, open_gzip, open_zip
from scoring.inputs.embeddings import Embeddings
from scoring.inputs.faults import Faults, Unreadable
from scoring.inputs.matrix_builder import SubmissionMatrixBuilder
from scoring.inputs.sniffing import FileKind, kind_of_folder, sniff, sniff_text
from scoring.inputs.tabular import read_csv

__all__ = ["read_submission"]
HEAD_BYTES = 4096


def read_submission(
    path: Path,
    public_ids: Sequence[str],
    embedding_dim: int,
    *,
    max_expanded_bytes: int = 4_096_000_000,
) -> Embeddings:
    """Read and check a submission.

    The kind of the file is detected from its content, because EvalAI does not keep its name. Memory is limited to the public matrix (n x N
    float32) and a few blocks, whatever the file holds.

    Args:
        path: The file.
        public_ids: Ids that must be embedded, in any order.
        embedding_dim: Number N of values per id.
        max_expanded_bytes: Most bytes that are read from the file, after decompression; usually four times the download limit.

    Raises:
        ParticipantError: If the file is wrong; its message lists all faults.
        InfrastructureError: If the file cannot be opened or the disk fails.
    """
    faults = Faults()
    try:
        if path.is_dir():
            raise faults.fatal("file.kind", f"it is {kind_of_folder(path)}")
        with path.open("rb") as file:
            kind = sniff(file, faults)
            builder = SubmissionMatrixBuilder(
                public_ids, embedding_dim, faults, row_name="line" if kind.is_csv else "row"
            )
            _read(file, kind, builder, max_expanded_bytes=max_expanded_bytes)
        return builder.finish()
    except Unreadable:
        raise faults.verdict() from None
    except OSError as error:
        raise InfrastructureError(
            f"The submitted file cannot be read: {error.strerror or 'input/output error'}.",
            cure="Check the disk, and try again.",
            code="submission.unreadable",
        ) from error


def _read(
    file: BinaryIO,
    kind: FileKind,
    builder: SubmissionMatrixBuilder,
    *,
    max_expanded_bytes: int,
) -> None:
    faults = builder.faults
    if kind is FileKind.PARQUET:
        from scoring.inputs.parquet import read_parquet

        read_parquet(file, builder, max_expanded_bytes=max_expanded_bytes)
    elif kind is FileKind.NPZ:
        from scoring.inputs.npz import read_npz

        read_npz(file, builder, max_expanded_bytes=max_expanded_bytes)
    else:
        content = open_text(file, kind, faults)
        source = Capped(content, file, faults, max_expanded_bytes=max_expanded_bytes)
        sniff_text(source.peek(HEAD_BYTES), faults, nested=kind is not FileKind.TEXT)
        read_csv(source, builder)


def open_text(file: BinaryIO, kind: FileKind, faults: Faults) -> Readable:
    """Open the text of a CSV file, compressed or not.

    Raises:
        Unreadable: If an archive is broken, or holds more than one file.
    """
    if kind is FileKind.GZIP:
        return open_gzip(file, faults)
    return open_zip(file, faults) if kind is FileKind.ZIP else file
