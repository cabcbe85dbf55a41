"""CSV, in blocks of whole lines, so that memory does not grow with the file."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.archives import Readable
from scoring.inputs.columns import EXTRA_COLUMNS, Columns, resolve_columns
from scoring.inputs.faults import Faults, Unreadable
from scoring.inputs.lines import CarefulReader, fields_of, judge_lists
from scoring.inputs.matrix_builder import MOST_ROWS, SubmissionMatrixBuilder, most_rows

BLOCK_BYTES = 1 << 20  # a block, its rows and the matrix rows they go to then stay in the second-level cache
LONGEST_LINE = 16 << 20  # bytes; more than a million columns
SMALL_FILE = 256 << 10  # bytes; below, loading the compiled reader takes longer than doing without
ROWS_AT_ONCE = 16_384
MOST_FAULTY_LINES = 20_000  # more need not be counted; it bounds the time that a hopeless file takes
THREADS = 2
HEAD_BYTES = 64 << 10  # of the rows, to see how numbers are written
DECIMAL_COMMA = re.compile(rb"[;\t|][ ]*[+-]?[0-9]+,[0-9]")
LINE_FEED = ord("\n")
BLANK_LINES = re.compile(rb"(?:[ \t]*\r?\n)+")
MARK = b"\xef\xbb\xbf"  # the UTF-8 byte order mark


@dataclass(frozen=True, kw_only=True)
class Block:
    """Whole records with the number of the line that they begin on."""

    text: bytes
    line: int


@dataclass(kw_only=True)
class Parsed:
    """The content of one block: ids, line numbers, and arrays of values with as many rows in total."""

    identifiers: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    rows: list[NDArray[np.float32]] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    faulty_lines: int = 0

    def portions(self) -> Iterator[tuple[list[str], list[int], NDArray[np.float32]]]:
        """Yield each array of values with the ids and line numbers of its rows."""
        first = 0
        for rows in self.rows:
            last = first + len(rows)
            yield self.identifiers[first:last], self.numbers[first:last], rows
            first = last


def read_csv(source: Readable, builder: SubmissionMatrixBuilder, *, compiled: bool | None = None) -> None:
    """Read a CSV table into the builder.

    Args:
        source: The text.
        builder: Where rows and faults go.
        compiled: Whether to use the compiled reader; None decides by size. Both give the same.

    Raises:
        Unreadable: If reading cannot go on.
    """
    faults = builder.faults
    stream = blocks(source, faults, most_lines=most_rows(len(builder.ids)))
    first = next(stream, None)
    if first is None:
        raise faults.fatal("file.empty")
    names, rest = read_header(first, faults, most_columns=builder.dim + EXTRA_COLUMNS)
    record, line = _first_record(rest)
    judge_lists(names, record, line, builder.dim, faults)
    columns = resolve_columns(names, builder.dim, faults)
    builder.extra_columns, builder.extra_names = len(columns.extra), columns.extra_names
    if compiled is None:
        compiled = len(first.text) >= SMALL_FILE
    reader = BlockReader(columns, builder.dim, builder.knows, compiled=compiled)

    def hopeful() -> Iterator[Block]:  # a hopeless file is not read to its end
        for block in chain([rest], stream):
            yield block
            if builder.faulty_lines > MOST_FAULTY_LINES:
                return

    for parsed in reader.read_all(hopeful()):
        builder.faults.merge(parsed.faults)
        for identifiers, numbers, rows in parsed.portions():
            builder.place(identifiers, rows, numbers)
        builder.faulty_lines += parsed.faulty_lines
    if builder.faulty_lines > MOST_FAULTY_LINES:
        raise faults.fatal("rows.stopped")


def blocks(source: Readable, faults: Faults, *, most_lines: int = MOST_ROWS) -> Iterator[Block]:
    """Cut a stream into blocks of whole records; a line feed between quotation marks does not end one.

    Raises:
        Unreadable: If a record is longer than ``LONGEST_LINE`` or there are more than ``most_lines``.
    """
    left = b""
    line = 1
    while chunk := source.read(BLOCK_BYTES):
        text = left + chunk
        end = _last_record_end(text)
        if end == 0:
            if len(text) > LONGEST_LINE:
                raise _too_long(text, line, faults)
            left = text
            continue
        left = text[end:]
        block = text[:end]
        yield Block(text=block, line=line)
        # Faster than bytes.count, and other threads run meanwhile.
        line += int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == LINE_FEED))
        if line > most_lines:
            raise faults.fatal("rows.too_many", f"more than {most_lines:,} lines")
    if left:
        yield Block(text=left if left.endswith(b"\n") else left + b"\n", line=line)


def _last_record_end(text: bytes) -> int:
    end = text.rfind(b"\n") + 1
    if text.find(b'"') < 0:
        return end
    quotes = text.count(b'"', 0, end)
    # Inside quotation marks: go back to a line feed before the opening mark.
    while quotes % 2 and end:
        earlier = text.rfind(b"\n", 0, text.rfind(b'"', 0, end)) + 1
        quotes -= text.count(b'"', earlier, end)
        end = earlier
    return end


def _too_long(text: bytes, line: int, faults: Faults) -> Exception:
    if b"\n" in text:
        return faults.fatal("rows.quotes", f"the quotation marks that open on line {line} never close")
    if b"\r" in text:
        return faults.fatal("file.line_ends")
    return faults.fatal("file.line_too_long", f"line {line} has more than {LONGEST_LINE:,} bytes")


def record_end(text: bytes, start: int) -> int:
    """Return where the record that begins at ``start`` ends."""
    end = text.find(b"\n", start) + 1
    quotes = text.count(b'"', start, end)
    while quotes % 2:
        closing = text.find(b'"', end)
        later = text.find(b"\n", closing) + 1
        if closing < 0 or later == 0:
            return len(text)
        quotes += text.count(b'"', end, later)
        end = later
    return end


def read_header(block: Block, faults: Faults, *, most_columns: int) -> tuple[list[str], Block]:
    """Return the names in the first record of a file, and the rest of its first block.

    Args:
        block: The first block.
        faults: Where faults go.
        most_columns: Most columns besides the first; if there are more, their names are not even read.

    Raises:
        Unreadable: If there are no names, or too many.
    """
    text = block.text.removeprefix(MARK)
    start = 0
    line = block.line
    while start < len(text):
        end = record_end(text, start)
        record = text[start:end]
        start, here, line = end, line, line + record.count(b"\n")
        if not record.strip():
            continue
        if b"\r" in record.rstrip(b"\r\n") and start == len(text) and b'"' not in record:
            raise faults.fatal("file.line_ends")
        if record.count(b",") > most_columns:
            found = record.count(b",") + 1
            raise faults.fatal(
                "columns.too_many",
                f"found {found:,}, expected id and {most_columns - EXTRA_COLUMNS:,} numbers",
            )
        names = fields_of(record, here, faults)
        if not names:
            raise Unreadable  # the reason was added
        if names[0].startswith("#") and "id" not in [name.strip() for name in names]:
            raise faults.fatal("file.comment", f"line {here} begins with #")
        _check_delimiter(names, text[start:], faults)
        return names, Block(text=text[start:], line=line)
    raise faults.fatal("file.empty")


def _first_record(block: Block) -> tuple[bytes, int]:
    """Return the first record of a block that is not blank, and its line; empty if there is none."""
    blank = BLANK_LINES.match(block.text)
    start = blank.end() if blank else 0
    return block.text[start : record_end(block.text, start)], block.line + block.text.count(b"\n", 0, start)


def _check_delimiter(names: list[str], rows: bytes, faults: Faults) -> None:
    if len(names) > 1:
        return
    for sign, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")):
        if sign in names[0]:
            if DECIMAL_COMMA.search(rows, 0, HEAD_BYTES):
                faults.hints["file.delimiter"] = "the numbers have decimal commas; use decimal points"
            raise faults.fatal("file.delimiter", f"the first line has {word} instead")
    if " " in names[0].strip():
        raise faults.fatal("file.delimiter", "the first line has spaces instead")


class BlockReader:
    """Turns blocks into rows, in any thread; the compiled reader takes plain lines, the careful one all others."""

    def __init__(self, columns: Columns, dim: int, knows: Callable[[str], bool], *, compiled: bool) -> None:
        self._targets = columns.targets
        self._id_first = columns.id_column == 0
        self._dim = dim
        self._careful = CarefulReader(columns=columns, knows=knows)
        self._kernel = _load_kernel() if compiled else None

    def read_all(self, stream: Iterable[Block]) -> Iterator[Parsed]:
        """Read blocks in threads and return what they held, in order.

        Raises:
            Unreadable: If ``stream`` raises it; what was read before is yielded first, because it may have faults too.
        """
        pending: deque[Future[Parsed]] = deque()
        stopped: Unreadable | None = None
        with ThreadPoolExecutor(THREADS) as pool:
            try:
                for block in stream:
                    pending.append(pool.submit(self.read, block))
                    if len(pending) > THREADS:
                        yield pending.popleft().result()
            except Unreadable as error:
                stopped = error
            while pending:
                yield pending.popleft().result()
        if stopped is not None:
            raise stopped

    def read(self, block: Block) -> Parsed:
        """Read all records of a block."""
        parsed = Parsed()
        text = block.text
        plain = self._kernel is not None and _is_plain_text(text)
        position, line = 0, block.line
        while position < len(text):
            capacity = min(ROWS_AT_ONCE, (len(text) - position) // max(2, 2 * len(self._targets)) + 1)
            rows = np.zeros((capacity, self._dim), dtype=np.float32)
            before, filled = len(parsed.identifiers), 0
            while position < len(text) and filled < capacity:
                if plain:
                    count, position = self._read_plain(text, position, line, rows[filled:], parsed)
                    filled, line = filled + count, line + count
                    if position == len(text) or filled == capacity:
                        break
                if blank := BLANK_LINES.match(text, position):
                    position, line = blank.end(), line + blank.group().count(b"\n")
                    continue
                record = self._read_careful(text, position, line, rows[filled], parsed)
                filled = len(parsed.identifiers) - before
                position, line = position + len(record), line + record.count(b"\n")
                if parsed.faulty_lines > MOST_FAULTY_LINES:
                    return parsed
            parsed.rows.append(rows[:filled])
        return parsed

    def _read_plain(
        self, text: bytes, position: int, line: int, rows: NDArray[np.float32], parsed: Parsed
    ) -> tuple[int, int]:
        if self._kernel is None:
            return 0, position
        places = np.empty((len(rows), 2), dtype=np.int64)
        count, position = self._kernel(text, position, self._targets, rows, places)
        written = [text[begin:end].decode() for begin, end in places[:count].tolist()]
        parsed.identifiers.extend(written if self._id_first else (name.lstrip(" ") for name in written))
        parsed.numbers.extend(range(line, line + count))
        return count, position

    def _read_careful(
        self, text: bytes, position: int, line: int, row: NDArray[np.float32], parsed: Parsed
    ) -> bytes:
        """Read one record and return it; a quotation mark that is never closed spoils only its own line."""
        record = text[position : record_end(text, position)]
        found = Faults()
        identifier = self._careful.read(record, line, row, found)
        if found.counts.keys() & {"rows.quotes", "rows.long_field", "rows.comment"}:
            record = record[: record.index(b"\n") + 1]
        if found:
            parsed.faulty_lines += 1
            parsed.faults.merge(found)
        if identifier is not None:
            parsed.identifiers.append(identifier)
            parsed.numbers.append(line)
        return record


def _is_plain_text(text: bytes) -> bool:
    if b"\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _load_kernel() -> (
    Callable[[bytes, int, NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]], tuple[int, int]] | None
):
    try:
        from scoring.inputs.csv_kernel import read_plain_rows
    # Installations that only check submissions have no numba; the slower reader gives the same result.
    except ModuleNotFoundError:
        return None
    return read_plain_rows
