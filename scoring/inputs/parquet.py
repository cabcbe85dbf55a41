"""Read Parquet: the shape is checked in the metadata before any value is read, and values are read in groups of columns."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from scoring.inputs.columns import EXTRA_COLUMNS, Columns, resolve_columns
from scoring.inputs.faults import Faults, Unreadable, shown
from scoring.inputs.grid import Cells, judge_cells, narrow
from scoring.inputs.matrix_builder import SubmissionMatrixBuilder, most_rows

GROUP_BYTES = 32 << 20  # values that are decoded at a time
FOOTER_BYTES = 32 << 20  # 1,025 columns take about 100 KB per row group
MOST_ID_BYTES = 64 << 20  # distinct ids in a batch's dictionary
MAGIC = b"PAR1"


def read_parquet(
    file: BinaryIO,
    builder: SubmissionMatrixBuilder,
    *,
    max_expanded_bytes: int,
) -> None:
    """Read a Parquet table into the builder.

    Raises:
        Unreadable: If reading cannot go on.
        OSError: If the disk fails.
    """
    import pyarrow.parquet

    faults = builder.faults
    _check_frame(file, faults)
    with _arrow_errors(faults):
        table = pyarrow.parquet.ParquetFile(
            file,
            read_dictionary=["id"],  # a long id that is repeated a million times is kept once
            pre_buffer=False,
            thrift_string_size_limit=FOOTER_BYTES,
            thrift_container_size_limit=max(100_000, 2 * (builder.dim + EXTRA_COLUMNS)),
        )
        columns = _judge_schema(table, builder, max_expanded_bytes)
        if "columns.type" in faults.counts:
            raise Unreadable  # values of such a type cannot be checked
        _read_groups(table, columns, builder)


def _check_frame(file: BinaryIO, faults: Faults) -> None:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 8))
    tail = file.read(8)
    file.seek(0)
    if size < 12 or tail[4:] not in (MAGIC, b"PARE"):
        raise faults.fatal("parquet.damaged", "its end is missing")
    if tail[4:] == b"PARE":
        raise faults.fatal("parquet.encrypted")
    footer = int.from_bytes(tail[:4], "little")
    if footer > min(FOOTER_BYTES, size - 12):
        raise faults.fatal("parquet.damaged", "its metadata is longer than it can be")


@contextmanager
def _arrow_errors(faults: Faults) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except OSError as error:
        if error.errno is not None:  # an error of the disk; Arrow's own errors have no number
            raise
        raise faults.fatal("parquet.damaged") from None
    except (pyarrow.ArrowException, ValueError, TypeError, LookupError, OverflowError, MemoryError):
        raise faults.fatal("parquet.damaged") from None


def _judge_schema(table: Any, builder: SubmissionMatrixBuilder, max_expanded_bytes: int) -> Columns:
    faults, metadata = builder.faults, table.metadata
    if metadata.num_columns > builder.dim + EXTRA_COLUMNS:
        raise faults.fatal(
            "columns.too_many", f"found {metadata.num_columns:,}, expected id and {builder.dim:,} numbers"
        )
    schema = table.schema_arrow
    columns = resolve_columns([str(name) for name in schema.names], builder.dim, faults)
    builder.extra_columns, builder.extra_names = len(columns.extra), columns.extra_names
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    if any(group.num_rows < 0 for group in groups) or sum(g.num_rows for g in groups) != metadata.num_rows:
        # Arrow reserves the memory that they claim.
        raise faults.fatal("parquet.damaged", "its row groups do not add up")
    claimed = max(
        metadata.num_rows * builder.dim * 4,  # runs of equal values take almost no space in the file
        sum(max(0, group.total_byte_size) for group in groups),
    )
    if metadata.num_rows > most_rows(len(builder.ids)):
        raise faults.fatal("rows.too_many", f"found {metadata.num_rows:,}")
    if claimed > max_expanded_bytes:
        raise faults.fatal(
            "file.too_large", f"it has {metadata.num_rows:,} rows and takes {claimed / 1e6:,.0f} MB"
        )
    for name, target, field in zip(columns.names, columns.targets.tolist(), schema, strict=True):
        if target >= 0 and not _is_number(field.type):
            faults.add("columns.type", f"column {target} holds {shown(str(field.type))}")
        elif name == "id" and not _is_text(field.type):
            faults.add("columns.type", f"column id holds {shown(str(field.type))}")
    return columns


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    checks = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(check(kind) for check in checks) or str(kind) in ("string_view", "binary_view")


def _read_groups(table: Any, columns: Columns, builder: SubmissionMatrixBuilder) -> None:
    """Read each row group: first its ids, then some columns at a time.

    Many writers put a whole table into one row group, which would have to be in memory to read it in batches of rows.
    """
    names = table.schema_arrow.names
    wanted = [
        (int(target), names[position]) for position, target in enumerate(columns.targets) if target >= 0
    ]
    id_name = names[columns.id_column]
    first_row = 1
    for group in range(table.metadata.num_row_groups):
        rows = table.metadata.row_group(group).num_rows
        identifiers = _identifiers(
            table.read_row_group(group, columns=[id_name]).column(id_name), builder.faults
        )
        if len(identifiers) != rows:
            raise builder.faults.fatal("parquet.damaged")
        targets = builder.claim(identifiers, range(first_row, first_row + rows))
        step = max(1, GROUP_BYTES // (8 * max(1, rows)))
        for start in range(0, len(wanted), step):
            part = table.read_row_group(group, columns=[name for _, name in wanted[start : start + step]])
            for target, name in wanted[start : start + step]:
                cells = _cells(part.column(name), identifiers, first_row, target)
                judge_cells(builder, cells)
                builder.assign(targets, slice(target, target + 1), cells.values)
        first_row += rows


def _cells(column: Any, identifiers: list[str], first_row: int, target: int) -> Cells:
    column = column.combine_chunks()
    if hasattr(column, "dictionary"):
        column = column.dictionary_decode()
    exact = column.to_numpy(zero_copy_only=False)  # null becomes NaN
    values = narrow(exact)
    empty = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    too_large = np.isinf(values) & np.isfinite(exact) if exact.dtype == np.float64 else None
    return Cells(
        identifiers=identifiers,
        values=values[:, np.newaxis],
        first_row=first_row,
        first_column=target,
        empty=None if empty is None else empty[:, np.newaxis],
        too_large=None if too_large is None else too_large[:, np.newaxis],
    )


def _identifiers(column: Any, faults: Faults) -> list[str]:
    """Return the ids of a row group as text; null becomes ""."""
    identifiers: list[str] = []
    for chunk in column.chunks:
        encoded = chunk if hasattr(chunk, "dictionary") else chunk.dictionary_encode()
        if encoded.dictionary.nbytes > MOST_ID_BYTES:
            raise faults.fatal("file.too_large", "the ids are too long")
        words = [_word(value, faults) for value in encoded.dictionary]
        identifiers.extend("" if index is None else words[index] for index in encoded.indices.to_pylist())
    return identifiers


def _word(value: Any, faults: Faults) -> str:
    try:
        written = value.as_py()
        text = written.decode() if isinstance(written, bytes) else str(written or "")
    except UnicodeDecodeError:
        raise faults.fatal("file.encoding", "an id is not UTF-8") from None
    return text
