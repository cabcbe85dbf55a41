"""The fast reader: whole lines of numbers, from text to float32, by pyarrow.

It only ever accepts. What pyarrow refuses is left to the careful reader (:mod:`scoring.inputs.lines`), which decides what is wrong; so is
what pyarrow accepts too easily, or reads in another way. Hence both readers accept the same lines, and give the same bits: the float64
nearest to the text, rounded to float32. (Rounding the text to float32 at once would differ in rare cases.)
"""

from __future__ import annotations

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

from scoring.inputs.columns import Columns
from scoring.inputs.lines import LONGEST_LINE, MARK, narrow


class FastReader:
    """Reads whole lines, in any thread; other threads run meanwhile.

    Args:
        columns: Meaning of the columns; each dimension must have one.
    """

    def __init__(self, columns: Columns) -> None:
        names = [str(position) for position in range(len(columns.names))]  # those of the file may be equal
        identifier, *dimensions = (names[position] for position in (columns.id_column, *columns.positions))
        # one block, so that pyarrow begins only once; lines are longest if there are many columns
        self._read = ReadOptions(use_threads=False, block_size=2 * LONGEST_LINE, column_names=names)
        self._parse = ParseOptions(quote_char=False)
        self._convert = ConvertOptions(
            include_columns=[identifier, *dimensions],
            column_types={identifier: pyarrow.string()} | dict.fromkeys(dimensions, pyarrow.float64()),
            null_values=[],
        )

    def read(self, text: bytes, lines: int) -> tuple[list[str], NDArray[np.float32]] | None:
        """Return the ids as written and the values of all lines, or None if the careful reader must read them.

        Args:
            text: The lines, each ended by a line feed.
            lines: Their number.
        """
        if not _is_plain(text):
            return None
        try:
            table = read_csv(
                pyarrow.py_buffer(text),
                read_options=self._read,
                parse_options=self._parse,
                convert_options=self._convert,
            )
        except pyarrow.ArrowInvalid:
            return None
        if table.num_rows != lines:  # some are blank
            return None
        [batch] = table.to_batches()
        identifiers = _unquoted(batch.column(0).to_pylist(), text)
        values = narrow(batch.select(range(1, batch.num_columns)).to_tensor().to_numpy())
        if identifiers is None or not np.isfinite(values).all():
            return None
        return identifiers, values + np.float32(0.0)  # no negative zeros


def _is_plain(text: bytes) -> bool:
    """Return whether pyarrow finds the same lines and fields in a text as the careful reader.

    pyarrow also ends lines at a carriage return alone, skips a byte order mark at the start, keeps NUL, does not look at the encoding of
    columns that it ignores, and has no limit to the length of a field.
    """
    if b"\0" in text or text.startswith(MARK) or len(text) > LONGEST_LINE:
        return False
    if text.count(b"\r") != text.count(b"\r\n"):
        return False
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False


def _unquoted(identifiers: list[str], text: bytes) -> list[str] | None:
    """Return the ids without quotation marks if these are around all ids and nowhere else; None if they are elsewhere."""
    marks = text.count(b'"')
    if not marks:
        return identifiers
    around = all(len(name) > 1 and name[0] == name[-1] == '"' for name in identifiers)
    return [name[1:-1] for name in identifiers] if around and marks == 2 * len(identifiers) else None
