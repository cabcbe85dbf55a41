"""The fast reader: lines of plain numbers, from text to float32, by compiled code.

It knows the plain form of a table only. If a line has anything else, its block is left to the careful reader (:mod:`scoring.inputs.lines`),
so this module needs no error handling, and never decides what is wrong.

A decimal w * 10^e becomes w times a tabulated power of ten, in float64. That product is within two units in the last place of the true
value; where that does not decide the float32 (about one value in 10^8), the block is left to the careful reader, too. Hence both readers
give the same bits: the float64 nearest to the text, rounded to float32.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.columns import Columns
from scoring.jit import compiled

QUOTE, PLUS, COMMA, MINUS, DOT, SPACE = 34, 43, 44, 45, 46, 32
LINE_FEED, RETURN = 10, 13
LOWER_E, UPPER_E = 101, 69
ZERO, TEN = np.uint8(48), np.uint64(10)
MOST_DIGITS = 19  # which always fit into 64 bits
ID, TEXT = -2, -1  # columns that are no dimensions

# Exponents of the table; the smallest is well above the subnormal numbers, which lose digits.
SMALLEST, LARGEST = -290, 308
POWERS = np.array([float(f"1e{exponent}") for exponent in range(SMALLEST, LARGEST + 1)])
DOUBT = 1e-15  # relative; more than two units in the last place of float64


@compiled
def _read_lines(  # noqa: PLR0912, PLR0915 - one loop nest, because calls in it would not be inlined
    text: NDArray[np.uint8],
    targets: NDArray[np.int32],
    powers: NDArray[np.float64],
    rows: NDArray[np.float32],
    places: NDArray[np.int64],
) -> bool:
    """Fill in the values of each line and the place of its id, and return whether all lines are plain.

    Every loop ends at a line feed, and the text ends with one.
    """
    position = 0
    for row in range(rows.shape[0]):
        for column in range(targets.size):
            target = targets[column]
            quoted = text[position] == QUOTE
            position += quoted
            begin = position
            if target < 0:
                while text[position] not in (QUOTE, LINE_FEED, RETURN) and (
                    quoted or text[position] != COMMA
                ):
                    position += 1
                if target == ID:
                    places[row, 0] = begin
                    places[row, 1] = position
            else:
                while text[position] == SPACE:
                    position += 1
                negative = text[position] == MINUS
                position += negative or text[position] == PLUS
                begin = position
                mantissa = np.uint64(0)
                digits = 0
                point = -1
                while True:
                    digit = np.uint8(text[position] - ZERO)
                    if digit <= 9:
                        mantissa = mantissa * TEN + np.uint64(digit)
                        digits += mantissa != 0
                    elif text[position] == DOT and point < 0:
                        point = position
                    else:
                        break
                    position += 1
                exponent = 0 if point < 0 else point + 1 - position
                if digits > MOST_DIGITS or position - begin == (point >= 0):
                    return False
                if text[position] in (LOWER_E, UPPER_E):
                    position += 1
                    down = text[position] == MINUS
                    position += down or text[position] == PLUS
                    begin = position
                    power = 0
                    while np.uint8(text[position] - ZERO) <= 9 and position - begin < 5:
                        power = power * 10 + int(text[position] - ZERO)
                        position += 1
                    if not 0 < position - begin < 5:
                        return False
                    exponent += -power if down else power
                while text[position] == SPACE:
                    position += 1
                rows[row, target] = 0.0
                if mantissa != 0:
                    if exponent < SMALLEST or exponent > LARGEST:
                        return False
                    value = np.float64(mantissa) * powers[exponent - SMALLEST]
                    low = np.float32(value * (1.0 - DOUBT))
                    if low != np.float32(value * (1.0 + DOUBT)) or np.isinf(low):
                        return False
                    rows[row, target] = -low if negative else low
            if quoted:
                if text[position] != QUOTE:
                    return False
                position += 1
            if column < targets.size - 1:
                if text[position] != COMMA:
                    return False
            else:
                position += text[position] == RETURN
                if text[position] != LINE_FEED:
                    return False
            position += 1
    return True


class PlainReader:
    """Reads whole lines, in any thread; other threads run meanwhile.

    Args:
        columns: Meaning of the columns.
        dim: Number of dimensions; each must have a column.
    """

    def __init__(self, columns: Columns, dim: int) -> None:
        self._dim = dim
        self._targets = np.full(len(columns.names), TEXT, dtype=np.int32)
        self._targets[list(columns.positions)] = columns.dimensions
        self._targets[columns.id_column] = ID

    def read(self, text: bytes, lines: int) -> tuple[list[str], NDArray[np.float32]] | None:
        """Return the ids as written and the values of all lines, or None if a line is not plain.

        Args:
            text: The lines, each ended by a line feed.
            lines: Their number.
        """
        if len(text) < 2 * lines * len(self._targets) or b"\0" in text:
            return None
        rows, places = np.empty((lines, self._dim), dtype=np.float32), np.empty((lines, 2), dtype=np.int64)
        with suppress(UnicodeDecodeError):
            if not text.isascii():
                text.decode()
            if _read_lines(np.frombuffer(text, dtype=np.uint8), self._targets, POWERS, rows, places):
                # Spaces after a comma are a common style of CSV, and no part of a field.
                return [text[begin:end].decode().lstrip(" ") for begin, end in places.tolist()], rows
        return None
