"""Read Parquet: the shape is checked in the metadata before any value is read, and values are read in groups of columns."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import fspath
from typing import Any, BinaryIO
from uuid import UUID

import numpy as np
import pyarrow.compute
import pyarrow.parquet
from numpy.typing import NDArray
from pyarrow import types

from scoring.errors import InfrastructureError
from scoring.inputs.columns import EXTRA_COLUMNS, NUMBER_NAME, chosen_vectors, find_id
from scoring.inputs.faults import SHOWN, Faults, Unreadable, shown
from scoring.inputs.matrix_builder import MatrixBuilder

GROUP_BYTES = 32 << 20  # values that are decoded at a time
FOOTER_BYTES = 32 << 20  # 1,025 columns take about 100 KB per row group
MOST_ID_BYTES = 64 << 20  # distinct ids in a batch's dictionary
ID_ROWS = 128  # that are decoded at a time without a dictionary; a few bytes can make many long ids
LISTS = (
    types.is_list,
    types.is_large_list,
    types.is_fixed_size_list,
    types.is_list_view,
    types.is_large_list_view,
)
IDS = (
    types.is_string,
    types.is_large_string,
    types.is_string_view,
    types.is_binary,
    types.is_large_binary,
    types.is_fixed_size_binary,
    types.is_binary_view,
    types.is_integer,
)
MAGIC = b"PAR1"
UNSUPPORTED = re.compile(
    "not (yet )?(implemented|supported|built)|unsupported|unknown encoding|decrypt", re.IGNORECASE
)
"""What Arrow says of valid files that it cannot read."""
ALLOCATION = re.compile(r"alloc of size (\d+) failed")
"""How Arrow names the memory that is missing; a damaged file may claim any size."""
THREAD = "Failed to launch worker thread"


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
    # Arrow's threads may outlive an error. They must not need the interpreter, which may be ending, so Arrow opens the file itself.
    with _arrow_errors(faults, max_expanded_bytes), pyarrow.OSFile(fspath(file.name)) as native:
        open_table = partial(
            pyarrow.parquet.ParquetFile,
            native,
            pre_buffer=False,
            thrift_string_size_limit=FOOTER_BYTES,
            thrift_container_size_limit=max(100_000, 2 * (builder.dim + builder.most_columns)),
        )
        metadata = open_table().metadata
        # Not metadata.row_group(…).column(…): on encrypted columns, it ends the process.
        table = open_table(metadata=metadata)
        _judge_size(table, builder, max_expanded_bytes)
        if not metadata.num_rows:
            return  # its types mean nothing: pandas knows none for text or lists without rows
        vector = _vector_column(table.schema_arrow, faults)
        if vector is None:
            _read_columns(table, partial(open_table, metadata=metadata), builder)
        else:
            _read_vectors(table, vector, builder)


def _check_frame(file: BinaryIO, faults: Faults) -> None:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 8))
    tail = file.read(8)
    file.seek(0)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > size - 12:
        raise faults.fatal("parquet.damaged", "its end is missing or wrong")
    if length > FOOTER_BYTES:
        raise faults.fatal("parquet.footer", f"their list takes {length / 1e6:,.0f} MB")


@contextmanager
def _arrow_errors(faults: Faults, max_expanded_bytes: int) -> Iterator[None]:
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
        # an error of the disk has a number, Arrow's own errors have none
        if getattr(error, "errno", None) is not None:
            raise
        claimed = ALLOCATION.search(str(error))
        if isinstance(error, MemoryError) and not (claimed and int(claimed[1]) > max_expanded_bytes):
            raise
        if THREAD in str(error):
            raise InfrastructureError(
                "This machine starts no further thread.",
                hint="End other programs, or raise the limit (ulimit -u, or systemd's TasksMax).",
                code="threads",
            ) from error
        if "size limit" in str(error):
            raise faults.fatal("parquet.footer") from None
        is_unsupported = isinstance(error, NotImplementedError) or UNSUPPORTED.search(str(error))
        raise faults.fatal("parquet.unsupported" if is_unsupported else "parquet.damaged") from None


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


def _vector_column(schema: Any, faults: Faults) -> int | None:
    """Return the position of the column that holds whole embeddings, as vector databases write them; None if there is none.

    Raises:
        Unreadable: If it could be one of several, or if no column holds numbers.
    """
    numbered = [
        field for field in schema if NUMBER_NAME.match(field.name.strip()) and not _is_vector(field.type)
    ]
    if len(numbered) > 1:  # one alone is no embedding, but what pandas calls a column without a name
        return None
    kinds = {
        position: field.type
        for position, field in enumerate(schema)
        if field.name.strip() not in faults.id_names and not _is_number(field.type)
    }
    lists = [position for position, kind in kinds.items() if _is_vector(kind)]
    vectors = [lists[place] for place in chosen_vectors([schema.names[position] for position in lists])]
    if len(vectors) > 1:
        raise faults.fatal(
            "columns.vectors", ", ".join(shown(schema.names[position]) for position in vectors)
        )
    others = [name for name in schema.names if name.strip() not in faults.id_names]
    if kinds and not vectors and len(kinds) == len(others):
        for position, kind in kinds.items():
            faults.add("columns.type", f"column {shown(schema.names[position])} holds {_described(kind)}")
        raise Unreadable
    return vectors[0] if vectors else None


def _is_number(kind: Any) -> bool:
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _is_vector(kind: Any) -> bool:
    """Return whether a type is a list of numbers, or a tensor of one axis."""
    if isinstance(kind, pyarrow.FixedShapeTensorType):
        return sum(length > 1 for length in kind.shape) == 1 and _is_number(kind.value_type)
    return any(is_list(kind) for is_list in LISTS) and _is_number(kind.value_type)


def _described(kind: Any) -> str:
    if isinstance(kind, pyarrow.FixedShapeTensorType):
        return f"tensors of {' x '.join(map(str, kind.shape))}"
    return shown(str(kind))


def _check_id_type(kind: Any, faults: Faults) -> None:
    values = kind.value_type if types.is_dictionary(kind) else kind
    if not (any(is_id(values) for is_id in IDS) or isinstance(values, pyarrow.UuidType)):
        raise faults.fatal("columns.type", f"column id holds {shown(str(values))}")


def _read_columns(table: Any, open_table: Callable[..., Any], builder: MatrixBuilder) -> None:
    """Read each row group: first its ids, then some columns at a time.

    Many writers put a whole table into one row group, which would have to be in memory to read it in batches of rows.

    Args:
        table: The table.
        open_table: Opens it with other options.
        builder: Where rows and faults go.
    """
    schema = table.schema_arrow
    names = schema.names
    columns = builder.resolve(names)
    id_name = names[columns.id_column]
    _check_id_type(schema.field(columns.id_column).type, builder.faults)
    # A long id that is repeated a million times is kept once.
    with_dictionary = open_table(read_dictionary=[id_name])
    wanted = list(zip(columns.dimensions, columns.positions, strict=True))
    for place, position in enumerate(columns.positions):
        kind = schema.field(position).type
        if not _is_number(kind):
            builder.faults.add("columns.type", f"column {columns.label(place)} holds {_described(kind)}")
    if "columns.type" in builder.faults.counts:
        raise Unreadable  # values of such a type cannot be checked
    for group in range(table.metadata.num_row_groups):
        chunks: Iterable[Any]
        try:
            chunks = with_dictionary.read_row_group(group, columns=[id_name]).column(0).chunks
        except (OSError, pyarrow.ArrowException):  # not implemented for encodings of Parquet's second version
            batches = table.iter_batches(ID_ROWS, row_groups=[group], columns=[id_name])
            chunks = (batch.column(0) for batch in batches)
        identifiers = [name for chunk in chunks for name in _identifiers(chunk, builder.faults)]
        rows = len(identifiers)
        numbers = range(builder.rows_read + 1, builder.rows_read + 1 + rows)
        targets = builder.claim(identifiers, numbers)
        step = max(1, GROUP_BYTES // (8 * max(1, rows)))
        for start in range(0, len(wanted), step):
            chosen = wanted[start : start + step]
            part = table.read_row_group(group, columns=[names[position] for _, position in chosen])
            # the first position of each name, because names may occur twice
            places = {name: place for place, name in reversed([*enumerate(part.schema.names)])}
            for dimension, position in chosen:
                column = part.column(places[names[position]]).combine_chunks()
                _judge(column, builder, identifiers, targets, numbers, first_column=dimension)
        builder.rows_read += rows


def _read_vectors(table: Any, position: int, builder: MatrixBuilder) -> None:
    """Read a column of whole embeddings, some rows at a time."""
    schema, faults = table.schema_arrow, builder.faults
    builder.judge_names(schema.names)
    names = [name.strip() for name in schema.names]
    id_column = find_id(names, faults)
    _check_id_type(schema.field(id_column).type, faults)
    others = [name for column, name in enumerate(names) if column not in (id_column, position)]
    builder.extra["column"] = len(others), tuple(shown(name) for name in others[:SHOWN])
    wanted = [schema.names[id_column], schema.names[position]]
    width, batch_rows = 0, max(1, GROUP_BYTES // (8 * max(builder.dim, EXTRA_COLUMNS)))
    for batch in table.iter_batches(batch_size=batch_rows, columns=wanted):
        first_row = builder.rows_read + 1
        identifiers = _identifiers(batch.column(wanted[0]), faults)
        vectors = batch.column(wanted[1])
        vectors = vectors.storage if isinstance(vectors, pyarrow.ExtensionArray) else vectors
        lengths = pyarrow.compute.list_value_length(vectors).to_pylist()
        rows = [row for row, length in enumerate(lengths) if length]
        if rows and not width:
            width = lengths[rows[0]]
            builder.expect(width)
        for row in rows:
            if lengths[row] != width:
                raise faults.fatal(
                    "columns.dimension",
                    f"{builder.row(first_row + row)} (id {shown(identifiers[row])}) has {lengths[row]:,}, expected {width:,}",
                )
        without = [row for row, length in enumerate(lengths) if not length]
        builder.miss([identifiers[row] for row in without], [first_row + row for row in without])
        filled, numbers = [identifiers[row] for row in rows], [first_row + row for row in rows]
        targets = builder.claim(filled, numbers)
        _judge(vectors.flatten(), builder, filled, targets, numbers, width=width)
        builder.rows_read += len(identifiers)


def _judge(
    values: Any,
    builder: MatrixBuilder,
    identifiers: Sequence[str],
    targets: NDArray[np.intp],
    numbers: Sequence[int],
    *,
    first_column: int = 0,
    width: int = 1,
) -> None:
    """Check values of so many columns, row by row, and write them into the matrix."""
    shape = len(identifiers), width
    if len(values) != len(identifiers) * width:
        raise builder.faults.fatal("parquet.damaged")
    exact = values.to_numpy(zero_copy_only=False).reshape(shape)  # null becomes NaN
    empty = values.is_null().to_numpy(zero_copy_only=False).reshape(shape) if values.null_count else None
    cells = builder.judge(exact, identifiers, numbers, first_column=first_column, empty=empty)
    builder.assign(targets, first_column, cells)


def _identifiers(column: Any, faults: Faults) -> list[str]:
    """Return ids as text; null becomes ""."""
    encoded = column.storage if isinstance(column, pyarrow.ExtensionArray) else column
    encoded = encoded if types.is_dictionary(encoded.type) else encoded.dictionary_encode()
    if encoded.dictionary.nbytes > MOST_ID_BYTES:
        raise faults.fatal("file.too_large", "the ids are too long")
    is_uuid = isinstance(column.type, pyarrow.UuidType)
    words = ["" if word is None else _text(word, is_uuid, faults) for word in encoded.dictionary.to_pylist()]
    return ["" if index is None else words[index] for index in encoded.indices.to_pylist()]


def _text(word: str | int | bytes, is_uuid: bool, faults: Faults) -> str:
    if not isinstance(word, bytes):
        return str(word)
    try:
        return str(UUID(bytes=word)) if is_uuid else word.decode()
    except UnicodeDecodeError:
        raise faults.fatal("columns.type", "column id holds bytes that are not UTF-8") from None
