"""The careful reader: read one line of a CSV file and say what is wrong with it."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.columns import NUMBER_NAME, Columns
from scoring.inputs.faults import ID_NAMES, Faults, shown

LONGEST_LINE = 16 << 20  # bytes; more than a million columns
FLOAT32_MAX = float(np.finfo(np.float32).max)
MARK = b"\xef\xbb\xbf"  # the UTF-8 byte order mark
NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*\Z")
PLAIN_NUMBERS = re.compile(r"[0-9+\-.eE, \t]*\Z")
MISSING = frozenset({"", "nan", "na", "n/a", "<na>", "null", "none", "-nan", "+nan", "nil", "#n/a"})
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\Z")
LIST_BEGINS = re.compile(r"(?:(?:np\.)?array|tensor)?[\[(]+\s*(?:[+-]?[0-9.]|nan\b)", re.IGNORECASE)
BOOLEANS = frozenset({"True", "TRUE", "true", "False", "FALSE", "false"})  # those of pandas
QUOTED = ("cells.text", "cells.comma", "cells.characters", "cells.boolean", "cells.range")
ONE_NUMBER = re.compile(
    r"[a-z0-9_.]*[\[(]+[^\s,;]*,?\s*([a-z_]+=.*)?[\])]+\Z"
)  # such as [0.5] and tensor(0.5)
INFINITE = re.compile(r"[+-]?(inf|infinity)\Z", re.IGNORECASE)

csv.field_size_limit(LONGEST_LINE)  # a line's length is limited already


def narrow(values: NDArray[np.generic]) -> NDArray[np.float32]:
    """Convert numbers of any type to float32, by way of float64 as text is; numbers that are too large become infinite."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return values.astype(np.result_type(values, np.float32), copy=False).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class CarefulReader:
    """Reads lines one by one with Python's csv module.

    Args:
        columns: Meaning of the columns.
        dim: Number of dimensions.
        knows: Returns whether an id is a public one; values of other rows are not checked.
    """

    columns: Columns
    dim: int
    knows: Callable[[str], bool]

    def read(
        self, record: bytes, line: int, faults: Faults, *, is_end: bool = False
    ) -> tuple[str | None, NDArray[np.float32] | None]:
        """Return a line's id as written and its values, 0 for each that is not a finite number.

        Without an id, the line is blank, or its id cannot be determined. Without values, the line is not a row; it still counts for its
        id, so that the id is not reported as missing, too. ``is_end`` says that the file ends here, without a line feed.
        """
        if is_end and (place := self._cut(record, line)):
            faults.add("file.cut", place)
            return None, None
        fields = fields_of(record, line, faults)
        position, expected = self.columns.id_column, len(self.columns.names)
        if fields is not None and len(fields) == expected:
            identifier, values = fields[position].strip(), None
            if self.knows(identifier):
                values = self._values(fields, f"line {line} (id {shown(identifier)})", faults)
            return fields[position], values
        if fields == []:
            return None, None
        if fields is None:
            fields = _split_anyhow(record)
        elif pairs := _with_decimal_commas(fields, expected):
            faults.add("rows.commas", f"line {line} (id {shown(fields[0])}): {shown(pairs[0])}")
        else:
            faults.add("rows.ragged", f"line {line} has {len(fields):,}, expected {expected:,}")
        identifier = fields[position].strip(' \t\r\n"') if position < len(fields) else ""
        return (identifier if self.knows(identifier) else None), None

    def _cut(self, record: bytes, line: int) -> str:
        """Return where the last line is cut off; "" if it is not."""
        if record.startswith(b"#"):
            return ""
        if record.count(b'"') % 2:
            return f"line {line} has an open quotation mark"
        try:
            record.rstrip(b"\n").decode()
        except UnicodeDecodeError as error:
            return f"line {line} ends within a letter" if error.reason == "unexpected end of data" else ""
        count, expected = len(fields_of(record, line, Faults()) or ()), len(self.columns.names)
        return f"line {line} has {count:,} of {expected:,} fields" if 0 < count < expected else ""

    def _values(self, fields: list[str], place: str, faults: Faults) -> NDArray[np.float32]:
        texts = [fields[position] for position in self.columns.positions]
        values = narrow(_numbers(texts)) + np.float32(0.0)  # no negative zeros
        for index in np.flatnonzero(~np.isfinite(values)).tolist():
            text, label = texts[index], self.columns.label(index)
            code = "cells.range" if NUMBER.match(text) else _kind_of(text)
            values[index] = code == "cells.boolean" and text.casefold() == "true"
            quoted = f": {shown(text)}" if code in QUOTED else ""
            faults.add(code, f"{place}, column {label}{quoted}")
        # A file that lacks columns is refused, whatever its values are.
        return values if len(values) == self.dim else np.zeros(self.dim, dtype=np.float32)


def _numbers(texts: list[str]) -> NDArray[np.float64]:
    """Return the float64 nearest to each text; NaN for what is not a number."""
    if PLAIN_NUMBERS.match(",".join(texts)):  # so Python's float takes nothing more than NUMBER
        with suppress(ValueError):
            return np.array([float(text) for text in texts])
    return np.array([float(text) if NUMBER.match(text) else np.nan for text in texts])


def judge_lists(names: Sequence[str], record: bytes, line: int, embedding_dim: int, faults: Faults) -> None:
    """Refuse a table with whole embeddings in single cells, so that the author is not told of missing columns or too many fields instead.

    Args:
        names: Names of the columns.
        record: The first row.
        line: Its number.
        embedding_dim: Number of dimensions, 0 for any; a table with this many numbered columns is not refused here.
        faults: Receives the fault.

    Raises:
        Unreadable: If a numbered column holds a list; or, if no column is numbered, any column but the id.
    """
    stripped = [name.strip() for name in names]
    numbered = [position for position, name in enumerate(stripped) if NUMBER_NAME.match(name)]
    if numbered and len(numbered) >= embedding_dim:
        return
    fields = fields_of(record, line, Faults()) or _split_anyhow(record)
    for position in numbered or range(len(stripped)):
        if position >= len(fields) or stripped[position] in ID_NAMES:
            continue
        if LIST_BEGINS.match(fields[position].strip(' \t"')):
            if embedding_dim:
                faults.details["cells.list"] = f"columns must be called 0 to {embedding_dim - 1}"
            raise faults.fatal("cells.list", f"line {line}, column {shown(stripped[position])}")


def _split_anyhow(record: bytes) -> list[str]:
    """Split a line at its commas, although it may be faulty."""
    return record.decode("utf-8", "replace").replace("\0", "").split(",")


def fields_of(record: bytes, line: int, faults: Faults) -> list[str] | None:
    """Return the fields of a line; none if it is blank; None, and a fault, if it cannot be split."""
    if b"\0" in record:
        faults.add("file.nul", f"line {line}")
        return None
    try:
        text = record.decode("utf-8")
    except UnicodeDecodeError:
        faults.add("file.encoding", f"line {line}")
        return None
    if not text.strip(" \t\r\n"):
        return []
    try:
        return next(csv.reader([text], strict=True, skipinitialspace=True), [])
    except csv.Error:
        faults.add("rows.quotes", f"line {line}")
        return None


def _kind_of(text: str) -> str:
    bare = text.strip().casefold()
    if not bare:
        return "cells.empty"
    if bare in MISSING:
        return "cells.nan"
    if text in BOOLEANS:
        return "cells.boolean"
    if INFINITE.match(bare):
        return "cells.infinite"
    if LIST_BEGINS.match(bare) and bare.endswith(("]", ")")) and not ONE_NUMBER.match(bare):
        return "cells.list"
    if NUMBER.match(unicodedata.normalize("NFKC", bare).replace("\N{MINUS SIGN}", "-")):
        return "cells.characters"
    return "cells.comma" if DECIMAL_COMMA.match(bare) else "cells.text"


def _with_decimal_commas(fields: list[str], expected: int) -> list[str]:
    """Return the numbers of a line whose every number is split at its decimal comma; none if it is not such a line."""
    pairs = [",".join(pair) for pair in zip(fields[1::2], fields[2::2], strict=False)]
    is_split = len(fields) == 2 * expected - 1 and all(map(DECIMAL_COMMA.match, pairs))
    return pairs if is_split else []
