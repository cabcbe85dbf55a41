"""CSV, in blocks of whole lines, so that memory does not grow with the file."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.archives import Readable
from scoring.inputs.columns import Columns
from scoring.inputs.faults import ID_NAMES, Faults, Unreadable, shown
from scoring.inputs.lines import LONGEST_LINE, MARK, CarefulReader, fields_of, judge_lists
from scoring.inputs.matrix_builder import MOST_ROWS, MatrixBuilder

if TYPE_CHECKING:
    from scoring.inputs.fast_lines import FastReader

BLOCK_BYTES = 1 << 20
FAST_BLOCKS = 4  # which the fast reader reads at once; one at a time takes 1.3 times as long
SMALL_FILE = 512 << 10  # bytes; below, loading the fast reader takes longer than doing without
CAREFUL_LINES = 4096  # which the careful reader holds at once: a row can be a thousand times its line
THREADS = 2
MOST_TITLE_LINES, TITLE_BYTES = 100, 1000  # in which the column names are looked for
BLANK_LINES = re.compile(rb"(?:[ \t]*\r?\n)+")
SEPARATOR_LINE = re.compile(rb"\"?sep=.?\"?\s*\Z")


@dataclass(frozen=True, kw_only=True)
class Block:
    """Whole lines.

    Attributes:
        text: The lines; the last one ends with a line feed, too.
        line: Number of the first.
        unended: Whether the file has no line feed at its end, which is here.
    """

    text: bytes
    line: int
    unended: bool = False

    @cached_property
    def lines(self) -> int:
        """How many lines there are; counted faster than by bytes.count, and other threads run meanwhile."""
        return int(np.count_nonzero(np.frombuffer(self.text, dtype=np.uint8) == ord("\n")))


def read_csv(source: Readable, builder: MatrixBuilder, *, fast: bool | None = None) -> None:
    """Read a CSV table into the builder.

    Args:
        source: The text.
        builder: Where rows and faults go.
        fast: Whether to use the fast reader; None decides by size. Both give the same.

    Raises:
        Unreadable: If reading cannot go on.
    """
    faults = builder.faults
    builder.row_name = "line"
    stream = blocks(source, faults, most_lines=builder.most_rows)
    names, first = read_header(stream, faults, most_columns=builder.dim + builder.most_columns)
    record, line, _ = _first_line(first.text, first.line)
    judge_lists(names, record, line, builder.dim, faults)
    columns = builder.resolve(names)
    reader = _BlockReader(columns, builder, fast=len(first.text) >= SMALL_FILE if fast is None else fast)
    for block in reader.read_all(chain([first], stream)):
        builder.ends_in_number |= block.unended and block.text[-2:-1].isdigit()
        if "file.cut" in faults.counts:
            raise Unreadable
        if sum(faults.counts.values()) > builder.most_faults:
            raise faults.fatal("rows.stopped")


def blocks(source: Readable, faults: Faults, *, most_lines: int = MOST_ROWS) -> Iterator[Block]:
    """Cut a stream into blocks of whole lines.

    Raises:
        Unreadable: If a line is longer than ``LONGEST_LINE`` or there are more than ``most_lines``.
    """
    left = b""
    line = 1
    while chunk := source.read(BLOCK_BYTES):
        end = chunk.rfind(b"\n") + 1
        if end:
            block = Block(text=b"".join((left, memoryview(chunk)[:end])), line=line)
            left = chunk[end:]
            yield block
            line += block.lines
            if line > most_lines:
                raise faults.fatal("rows.too_many", f"more than {most_lines:,} lines")
            continue
        left += chunk
        if len(left) > LONGEST_LINE:
            if b"\r" in left:
                raise faults.fatal("file.line_ends")
            raise faults.fatal("file.line_too_long", f"line {line} has more than {LONGEST_LINE:,} bytes")
    if left:
        yield Block(text=left + b"\n", line=line, unended=True)


def read_header(stream: Iterator[Block], faults: Faults, *, most_columns: int) -> tuple[list[str], Block]:
    """Return the names in the first line of a file, and the rest of its first block.

    Args:
        stream: The file; its first block is taken.
        faults: Where faults go.
        most_columns: Most columns besides the first; if there are more, their names are not even read.

    Raises:
        Unreadable: If there are no names, or too many.
    """
    block = next(stream, Block(text=b"", line=1))
    text = block.text.removeprefix(MARK)
    record, line, end = _first_line(text, block.line)
    if not record:
        raise faults.fatal("file.empty")
    if b"\r" in record.rstrip(b"\r\n") and end == len(text):
        raise faults.fatal("file.line_ends")
    if SEPARATOR_LINE.match(record):
        raise faults.fatal("file.separator_line")
    if record.count(b",") > most_columns:
        raise faults.fatal("columns.too_many", f"found {record.count(b',') + 1:,}")
    names = fields_of(record, line, faults if b"," in record else Faults())
    if names is None and b"," not in record:  # csv refuses quotation marks before another delimiter
        names = [record.decode("utf-8", "replace")]
    if not names:
        raise Unreadable  # the reason was added
    _check_beginning(names, text[end:], line + 1, faults)
    _check_delimiter(names, faults)
    return names, Block(text=text[end:], line=line + 1, unended=block.unended)


def _first_line(text: bytes, number: int) -> tuple[bytes, int, int]:
    """Return the first line that is not blank, its number if the text begins at ``number``, and where it ends in the text."""
    blank = BLANK_LINES.match(text)
    start = blank.end() if blank else 0
    end = text.find(b"\n", start) + 1
    return text[start:end], number + text.count(b"\n", 0, start), end


def _check_beginning(names: list[str], rest: bytes, line: int, faults: Faults) -> None:
    """Refuse a text with something above the column names: a comment, a title, or another header."""
    if any(name.strip() in ID_NAMES for name in names):
        return
    for number, record in enumerate(islice(io.BytesIO(rest), MOST_TITLE_LINES), start=line):
        fields = record[:TITLE_BYTES].decode("utf-8", "replace").split(",")
        if len(fields) > 1 and any(field.strip(' \t\r\n"') in ID_NAMES for field in fields):
            raise faults.fatal("file.beginning", f"they are on line {number}")
    if names[0].startswith("#") and names[0].lstrip("# ") not in ID_NAMES:
        raise faults.fatal("file.beginning", f"it begins with {shown(names[0])}")


def _check_delimiter(names: list[str], faults: Faults) -> None:
    for sign, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars"), (" ", "spaces")):
        if len(names) == 1 and sign in names[0].strip(" "):
            raise faults.fatal("file.delimiter", f"the first line has {word} instead")


class _BlockReader:
    """Reads blocks into a builder; the fast reader takes plain blocks, the careful one all others."""

    def __init__(self, columns: Columns, builder: MatrixBuilder, *, fast: bool) -> None:
        self._builder = builder
        self._careful = CarefulReader(columns=columns, dim=builder.dim, knows=builder.knows)
        self._fast: FastReader | None = None
        if fast and len(columns.dimensions) == builder.dim:
            with suppress(ModuleNotFoundError):  # installations that only check submissions may lack pyarrow
                from scoring.inputs.fast_lines import FastReader

                self._fast = FastReader(columns)

    def read_all(self, stream: Iterator[Block]) -> Iterator[Block]:
        """Read blocks, the plain ones in threads, and return each, in order, when its rows are in the builder."""
        groups = iter(lambda: list(islice(stream, FAST_BLOCKS)), [])
        with ThreadPoolExecutor(THREADS) as pool:
            while batch := list(islice(groups, THREADS)):
                for group, rows in zip(batch, pool.map(self._read_fast, batch), strict=True):
                    for block in group:
                        if rows is None:
                            self._read_carefully(block)
                        else:
                            self._take(block, block.line - group[0].line, *rows)
                        yield block

    def _read_fast(self, group: Sequence[Block]) -> tuple[list[str], NDArray[np.float32]] | None:
        """Return the ids and values of consecutive blocks, or None if one of them must be read carefully."""
        if self._fast is None:
            return None
        return self._fast.read(b"".join(block.text for block in group), sum(block.lines for block in group))

    def _take(self, block: Block, first: int, identifiers: list[str], values: NDArray[np.float32]) -> None:
        """Put the rows of a block, which begin with the row ``first`` of its group, into the builder."""
        part = slice(first, first + block.lines)
        targets = self._builder.claim(identifiers[part], range(block.line, block.line + block.lines))
        self._builder.assign(targets, 0, values[part])

    def _read_carefully(self, block: Block) -> None:
        """Put the rows of a block into the builder; values that cannot be used are 0."""
        builder, last = self._builder, block.line + block.lines - 1
        records = enumerate(io.BytesIO(block.text), start=block.line)
        nothing = np.zeros(builder.dim, dtype=np.float32)
        while some := list(islice(records, CAREFUL_LINES)):
            lines = [
                (
                    line,
                    *self._careful.read(record, line, builder.faults, is_end=block.unended and line == last),
                )
                for line, record in some
            ]
            parsed = [(line, name, row) for line, name, row in lines if name is not None]
            targets = builder.claim([name for _, name, _ in parsed], [line for line, _, _ in parsed])
            values = [nothing if row is None else row for _, _, row in parsed]
            builder.assign(targets, 0, np.array(values, dtype=np.float32).reshape(-1, builder.dim))
