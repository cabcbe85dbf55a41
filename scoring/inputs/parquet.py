"""Read Parquet: the shape is checked in the metadata before any value is read, and values are read in groups of columns."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO

import numpy as np
import pyarrow.compute
import pyarrow.parquet
from numpy.typing import NDArray
from pyarrow.types import is_fixed_size_list, is_floating, is_integer, is_large_list, is_list

from scoring.inputs.columns import EXTRA_COLUMNS, ID_NAMES, NUMBER_NAME, find_id
from scoring.inputs.faults import SHOWN, Faults, Unreadable, shown
from scoring.inputs.matrix_builder import MatrixBuilder

GROUP_BYTES = 32 << 20  # values that are decoded at a time
FOOTER_BYTES = 32 << 20  # 1,025 columns take about 100 KB per row group
MOST_ID_BYTES = 64 << 20  # distinct ids in a batch's dictionary
MAGIC = b"PAR1"


def read_parquet(
    file: BinaryIO,
    builder: MatrixBuilder,
    *,
    max_expanded_bytes: int,
) -> None:
    """Read a Parquet table into the builder.

    Raises:
        Unreadable: If reading cannot go on.
        OSError: If the disk fails.
    """
    faults = builder.faults
    _check_frame(file, faults)
    with _arrow_errors(faults):
        open_table = partial(
            pyarrow.parquet.ParquetFile,
            file,
            pre_buffer=False,
            thrift_string_size_limit=FOOTER_BYTES,
            thrift_container_size_limit=max(100_000, 2 * (builder.dim + builder.most_columns)),
        )
        metadata = open_table().metadata
        names = metadata.schema.to_arrow_schema().names
        # A long id that is repeated a million times is kept once.
        table = open_table(metadata=metadata, read_dictionary=[name for name in ID_NAMES if name in names])
        _judge_size(table, builder, max_expanded_bytes)
        vector = _vector_column(table.schema_arrow)
        if vector is None:
            _read_columns(table, builder)
        else:
            _read_vectors(table, vector, builder)


def _check_frame(file: BinaryIO, faults: Faults) -> None:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 8))
    tail = file.read(8)
    file.seek(0)
    if tail[4:] != MAGIC or int.from_bytes(tail[:4], "little") > min(FOOTER_BYTES, size - 12):
        raise faults.fatal("parquet.damaged", "its end is missing or wrong")


@contextmanager
def _arrow_errors(faults: Faults) -> Iterator[None]:
    try:
        yield
    except (
        OSError,
        pyarrow.ArrowException,
        ValueError,
        TypeError,
        LookupError,
        OverflowError,
        MemoryError,
    ) as error:
        if (
            getattr(error, "errno", None) is not None
        ):  # an error of the disk; Arrow's own errors have no number
            raise
        raise faults.fatal("parquet.damaged") from None


def _judge_size(table: Any, builder: MatrixBuilder, max_expanded_bytes: int) -> None:
    faults, metadata = builder.faults, table.metadata
    if metadata.num_columns > builder.dim + builder.most_columns:
        raise faults.fatal("columns.too_many", f"found {metadata.num_columns:,}")
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    if any(group.num_rows < 0 for group in groups) or sum(g.num_rows for g in groups) != metadata.num_rows:
        # Arrow reserves the memory that they claim.
        raise faults.fatal("parquet.damaged", "its row groups do not add up")
    claimed = max(
        metadata.num_rows * builder.dim * 4,  # runs of equal values take almost no space in the file
        sum(max(0, group.total_byte_size) for group in groups),
    )
    if metadata.num_rows > builder.most_rows:
        raise faults.fatal("rows.too_many", f"found {metadata.num_rows:,}")
    if claimed > max_expanded_bytes:
        raise faults.fatal(
            "file.too_large", f"it has {metadata.num_rows:,} rows and takes {claimed / 1e6:,.0f} MB"
        )


def _vector_column(schema: Any) -> int | None:
    """Return the position of the column that holds whole embeddings, as vector databases write them; None if there is none."""
    if any(NUMBER_NAME.match(name.strip()) for name in schema.names):
        return None
    vectors = [
        position
        for position, field in enumerate(schema)
        if (is_list(field.type) or is_large_list(field.type) or is_fixed_size_list(field.type))
        and _is_number(field.type.value_type)
    ]
    named = [position for position in vectors if schema.names[position] == "embedding"] or vectors
    return named[0] if len(named) == 1 else None


def _is_number(kind: Any) -> bool:
    return bool(is_floating(kind) or is_integer(kind))


def _check_id_type(kind: Any, faults: Faults) -> None:
    name = str(getattr(kind, "value_type", kind))  # that of a dictionary's values
    if "string" not in name and "int" not in name:
        raise faults.fatal("columns.type", f"column id holds {shown(name)}")


def _read_columns(table: Any, builder: MatrixBuilder) -> None:
    """Read each row group: first its ids, then some columns at a time.

    Many writers put a whole table into one row group, which would have to be in memory to read it in batches of rows.
    """
    schema = table.schema_arrow
    names = schema.names
    columns = builder.resolve(names)
    _check_id_type(schema.field(columns.id_column).type, builder.faults)
    wanted = list(zip(columns.dimensions, columns.positions, strict=True))
    for dimension, position in wanted:
        if not _is_number(schema.field(position).type):
            kind = shown(str(schema.field(position).type))
            builder.faults.add("columns.type", f"column {dimension} holds {kind}")
    if "columns.type" in builder.faults.counts:
        raise Unreadable  # values of such a type cannot be checked
    first_row = 1
    for group in range(table.metadata.num_row_groups):
        ids = table.read_row_group(group, columns=[names[columns.id_column]]).column(0)
        identifiers = _identifiers(ids.chunks, builder.faults)
        rows = len(identifiers)
        targets = builder.claim(identifiers, range(first_row, first_row + rows))
        step = max(1, GROUP_BYTES // (8 * max(1, rows)))
        for start in range(0, len(wanted), step):
            chosen = wanted[start : start + step]
            part = table.read_row_group(group, columns=[names[position] for _, position in chosen])
            for dimension, position in chosen:
                column = part.column(names[position]).combine_chunks()
                _judge(column, builder, identifiers, targets, first_row=first_row, first_column=dimension)
        first_row += rows


def _read_vectors(table: Any, position: int, builder: MatrixBuilder) -> None:
    """Read a column of whole embeddings, some rows at a time."""
    schema, faults = table.schema_arrow, builder.faults
    names = [name.strip() for name in schema.names]
    id_column = find_id(names, faults)
    _check_id_type(schema.field(id_column).type, faults)
    others = [name for column, name in enumerate(names) if column not in (id_column, position)]
    builder.extra["column"] = len(others), tuple(shown(name) for name in others[:SHOWN])
    wanted = [schema.names[id_column], schema.names[position]]
    first_row, batch_rows = 1, max(1, GROUP_BYTES // (8 * max(builder.dim, EXTRA_COLUMNS)))
    for batch in table.iter_batches(batch_size=batch_rows, columns=wanted):
        identifiers = _identifiers([batch.column(wanted[0])], faults)
        vectors = batch.column(wanted[1])
        lengths = pyarrow.compute.list_value_length(vectors).to_pylist()
        if first_row == 1:
            builder.expect(lengths[0] or 0)
        for row, length in enumerate(lengths):
            if length != builder.dim:
                raise faults.fatal(
                    "columns.dimension",
                    f"row {first_row + row} (id {shown(identifiers[row])}) has {length or 0:,},"
                    f" expected {builder.dim:,}",
                )
        targets = builder.claim(identifiers, range(first_row, first_row + len(identifiers)))
        _judge(vectors.flatten(), builder, identifiers, targets, first_row=first_row, width=builder.dim)
        first_row += len(identifiers)


def _judge(
    values: Any,
    builder: MatrixBuilder,
    identifiers: Sequence[str],
    targets: NDArray[np.intp],
    *,
    first_row: int,
    first_column: int = 0,
    width: int = 1,
) -> None:
    """Check values of so many columns, row by row, and write them into the matrix."""
    shape = len(identifiers), width
    if len(values) != len(identifiers) * width:
        raise builder.faults.fatal("parquet.damaged")
    exact = values.to_numpy(zero_copy_only=False).reshape(shape)  # null becomes NaN
    empty = values.is_null().to_numpy(zero_copy_only=False).reshape(shape) if values.null_count else None
    cells = builder.judge(exact, identifiers, first_row=first_row, first_column=first_column, empty=empty)
    builder.assign(targets, first_column, cells)


def _identifiers(chunks: Sequence[Any], faults: Faults) -> list[str]:
    """Return ids as text; null becomes ""."""
    identifiers: list[str] = []
    for chunk in chunks:
        encoded = chunk if hasattr(chunk, "dictionary") else chunk.dictionary_encode()
        if encoded.dictionary.nbytes > MOST_ID_BYTES:
            raise faults.fatal("file.too_large", "the ids are too long")
        words = ["" if word is None else str(word) for word in encoded.dictionary.to_pylist()]
        identifiers.extend("" if index is None else words[index] for index in encoded.indices.to_pylist())
    return identifiers
