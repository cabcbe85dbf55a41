"""The careful reader: read one record of a CSV file and say what is wrong with it."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.columns import IGNORED, NUMBER_NAME, Columns
from scoring.inputs.faults import Faults, shown

NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,6})?[ \t]*\Z")
LONGEST_FIELD = 131_072  # the csv module's limit
FIELD_ENDS = re.compile(r'[",\r\n]')
LONGEST_NUMBER = 400  # characters; float64 needs 25, an exact decimal of float32 about 160
NOT_A_NUMBER = frozenset({"nan", "na", "n/a", "<na>", "null", "none", "-nan", "+nan", "nil", "#n/a"})
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\Z")
LIST_BEGINS = re.compile(r"(?:(?:np\.)?array|tensor)?[\[(]+\s*(?:[+-]?[0-9.]|nan\b)", re.IGNORECASE)
INFINITE = re.compile(r"[+-]?(inf|infinity)\Z", re.IGNORECASE)
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


@dataclass(frozen=True, kw_only=True)
class CarefulReader:
    """Reads records one by one with Python's csv module.

    Args:
        columns: Meaning of the columns.
        knows: Returns whether an id is a public one; values of other rows are not checked.
    """

    columns: Columns
    knows: Callable[[str], bool]

    def read(self, record: bytes, line: int, values: NDArray[np.float32], faults: Faults) -> str | None:
        """Fill in the values of a record and return its id as written; None if the line is blank or its id cannot be determined.

        Faults go to ``faults``, which must be empty at first; what ``values`` then holds does not matter, because the file is refused. A
        faulty line still counts for its id, so that the id is not reported as missing, too.
        """
        if self._is_comment(record, line):
            faults.add("rows.comment", f"line {line} begins with #")
            return None
        fields = fields_of(record, line, faults)
        position = self.columns.id_column
        if faults:
            fields = _split_anyhow(record)
        elif not fields:
            return None
        elif len(fields) != len(self.columns.names):
            faults.add(
                "rows.ragged", f"line {line} has {len(fields):,}, expected {len(self.columns.names):,}"
            )
            if self._looks_split(fields):
                faults.hints["rows.ragged"] = (
                    "a decimal comma splits a number into two fields; use a decimal point"
                )
        else:
            identifier = fields[position].strip(" \t")
            if self.knows(identifier):
                self._read_values(fields, values, f"line {line} (id {shown(identifier)})", faults)
            return _as_written(fields[position], record, position)
        identifier = fields[position].strip(' \t\r\n"') if position < len(fields) else ""
        return identifier if self.knows(identifier) else None

    def _is_comment(self, record: bytes, line: int) -> bool:
        """Return whether a line that begins with # is a comment: its number of fields differs from a row's, and it has no public id."""
        if not record.lstrip(b" \t").startswith(b"#"):
            return False
        if len(fields_of(record, line, Faults())) == len(self.columns.names):
            return False
        fields, position = _split_anyhow(record), self.columns.id_column
        return position >= len(fields) or not self.knows(fields[position].strip(" \t\r\n"))

    def _looks_split(self, fields: list[str]) -> bool:
        """Return whether decimal commas may be the reason for too many fields."""
        position = self.columns.id_column
        values = fields[:position] + fields[position + 1 :]
        return len(fields) * 2 > len(self.columns.names) * 3 and not any("." in value for value in values)

    def _read_values(
        self, fields: list[str], values: NDArray[np.float32], place: str, faults: Faults
    ) -> None:
        exact = np.zeros(len(values))
        odd: list[tuple[str, int, str]] = []
        for text, target in zip(fields, self.columns.targets.tolist(), strict=True):
            if target <= IGNORED:
                continue
            if len(text) <= LONGEST_NUMBER and NUMBER.match(text):
                exact[target] = float(text)
                if not -LARGEST_FLOAT32 < exact[target] < LARGEST_FLOAT32:
                    odd.append(("cells.range", target, text))
            else:
                odd.append((_kind_of(text), target, text))
        with np.errstate(over="ignore", under="ignore"):
            values[:] = exact
        for code, target, text in odd:
            if code == "cells.range" and np.isfinite(values[target]):
                continue  # it is the largest float32, or rounds to it
            if not faults.wants(code):
                faults.add(code)
            elif code in ("cells.text", "cells.comma", "cells.range"):
                faults.add(code, f"{place}, column {target}: {shown(text)}")
            elif code == "cells.long":
                faults.add(code, f"{place}, column {target}: {len(text):,} characters")
            else:
                faults.add(code, f"{place}, column {target}")


def _as_written(identifier: str, record: bytes, position: int) -> str:
    """Return an id with the spaces around it, except for those after a comma, which are a common style of CSV."""
    if position:
        return identifier.lstrip(" ")
    return f" {identifier}" if record.startswith(b" ") else identifier


def judge_lists(names: Sequence[str], record: bytes, line: int, embedding_dim: int, faults: Faults) -> None:
    """Refuse a table with whole embeddings in single cells, so that the author is not told of missing columns or too many fields instead.

    Args:
        names: Names of the columns.
        record: The first row.
        line: Number of the line on which the record begins.
        embedding_dim: Number of dimensions; a table with this many numbered columns is not refused here.
        faults: Receives the fault.

    Raises:
        Unreadable: If a numbered column holds a list; or, if no column is numbered, any column but the id.
    """
    stripped = [name.strip() for name in names]
    numbered = [position for position, name in enumerate(stripped) if NUMBER_NAME.match(name)]
    if len(numbered) >= embedding_dim:
        return
    fields = fields_of(record, line, Faults()) or _split_anyhow(record)
    for position in numbered or range(len(stripped)):
        if position >= len(fields) or stripped[position] == "id":
            continue
        if LIST_BEGINS.match(fields[position].strip(' \t"')):
            faults.hints["cells.list"] = f"columns must be called 0 to {embedding_dim - 1}"
            raise faults.fatal("cells.list", f"line {line}, column {shown(stripped[position])}")


def _split_anyhow(record: bytes) -> list[str]:
    """Split a record at its commas, although it may be faulty."""
    return record[:LONGEST_FIELD].decode("utf-8", "replace").replace("\0", "").split(",")


def fields_of(record: bytes, line: int, faults: Faults) -> list[str]:
    """Return the fields of a record; none if it is blank or faulty."""
    if b"\0" in record:
        faults.add("file.nul", f"line {line}")
        return []
    try:
        text = record.decode("utf-8")
    except UnicodeDecodeError:
        faults.add("file.encoding", f"line {line}")
        return []
    if not text.strip(" \t\r\n"):
        return []
    try:
        return next(csv.reader([text], strict=True, skipinitialspace=True), [])
    except csv.Error:
        if max(map(len, FIELD_ENDS.split(text))) > LONGEST_FIELD:
            faults.add("rows.long_field", f"line {line} has one of more than {LONGEST_FIELD:,} characters")
        else:
            faults.add("rows.quotes", f"line {line}")
        return []


def _kind_of(text: str) -> str:
    bare = text.strip().casefold()
    if not bare:
        return "cells.empty"
    if bare in NOT_A_NUMBER:
        return "cells.nan"
    if INFINITE.match(bare):
        return "cells.infinite"
    if LIST_BEGINS.match(bare) and bare.endswith(("]", ")")):
        return "cells.list"
    if len(text) > LONGEST_NUMBER:
        return "cells.long"
    return "cells.comma" if DECIMAL_COMMA.match(bare) else "cells.text"
