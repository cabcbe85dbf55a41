"""The compiled reader of well-formed lines, from text to float32.

It knows the plain form of a table only. At the first line that is anything else it stops and says where; the careful reader
(:mod:`scoring.inputs.lines`) then judges that one line. So this module needs no error handling, and never decides what is wrong.

A decimal w * 10^e becomes w times a tabulated power of ten, in float64. That product is within two units in the last place of the true
value; where that does not decide the float32 (about one value in 10^8), the line is left to the careful reader too. Hence both readers
give the same bits: the float64 nearest to the text, rounded to float32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.digits import digit_bits, load_word, value_of_digits
from scoring.jit import compiled

QUOTE, PLUS, COMMA, MINUS, DOT, SPACE, TAB = 34, 43, 44, 45, 46, 32, 9
LINE_FEED, RETURN = 10, 13
LOWER_E, UPPER_E = 101, 69
ZERO = np.uint8(48)

TEN = np.uint64(10)
TENS = np.array([10**digits for digits in range(9)], dtype=np.uint64)
THREE, WORD_BITS = np.uint64(3), np.uint64(64)
# Exponents of the table; the smallest is well above the subnormal numbers, which lose digits.
SMALLEST, LARGEST = -290, 308
POWERS = np.array([float(f"1e{exponent}") for exponent in range(SMALLEST, LARGEST + 1)])
DOUBT = 1e-15  # relative; more than two units in the last place of float64


def _read_rows(  # noqa: PLR0912, PLR0915, PLR0917 - one loop nest, because calls in it would not be inlined
    text: NDArray[np.uint8],
    start: int,
    targets: NDArray[np.int32],
    powers: NDArray[np.float64],
    rows: NDArray[np.float32],
    places: NDArray[np.int64],
) -> tuple[int, int]:
    """Do the work of :func:`read_plain_rows`. Every loop ends at a line feed, and the text ends with one."""
    position = start
    end = text.size
    columns = targets.size
    count = 0
    while position < end and count < rows.shape[0]:
        line = position
        for column in range(columns):
            target = targets[column]
            quoted = text[position] == QUOTE
            if quoted:
                position += 1
            if target < 0:
                begin = position
                if quoted:
                    while text[position] != QUOTE and text[position] != LINE_FEED:
                        position += 1
                else:
                    while text[position] not in (COMMA, LINE_FEED, RETURN, QUOTE):
                        position += 1
                if target == -2:
                    places[count, 0] = begin
                    places[count, 1] = position
            else:
                while text[position] == SPACE:
                    position += 1
                negative = text[position] == MINUS
                position += negative
                if text[position] == PLUS and not negative:
                    position += 1
                begin = position
                mantissa = np.uint64(0)
                while True:
                    digit = np.uint8(text[position] - ZERO)
                    if digit > 9:
                        break
                    mantissa = mantissa * TEN + np.uint64(digit)
                    position += 1
                digits = position - begin
                exponent = 0
                if text[position] == DOT:
                    position += 1
                    point = position
                    while position + 8 <= end:
                        word = load_word(text, position)
                        bits = digit_bits(word)
                        # Eight digits are a case of their own, so that the processor goes on before it has counted them.
                        if bits == WORD_BITS:
                            mantissa = mantissa * TENS[8] + value_of_digits(word, WORD_BITS)
                            position += 8
                        else:
                            mantissa = mantissa * TENS[bits >> THREE] + value_of_digits(word, bits)
                            position += np.intp(bits >> THREE)
                            break
                    while True:
                        digit = np.uint8(text[position] - ZERO)
                        if digit > 9:
                            break
                        mantissa = mantissa * TEN + np.uint64(digit)
                        position += 1
                    digits += position - point
                    exponent = point - position
                if digits == 0:
                    return count, line
                if digits > 19:  # 19 digits always fit into 64 bits, whatever zeros are before them
                    while text[begin] == ZERO or text[begin] == DOT:
                        digits -= text[begin] == ZERO
                        begin += 1
                    if digits > 19:
                        return count, line
                if text[position] == LOWER_E or text[position] == UPPER_E:
                    position += 1
                    down = text[position] == MINUS
                    if down or text[position] == PLUS:
                        position += 1
                    begin = position
                    power = 0
                    while True:
                        digit = np.uint8(text[position] - ZERO)
                        if digit > 9 or position - begin > 4:
                            break
                        power = power * 10 + int(digit)
                        position += 1
                    if position == begin or position - begin > 4:
                        return count, line
                    exponent += -power if down else power
                while text[position] == SPACE:
                    position += 1
                if mantissa == 0:
                    rows[count, target] = np.float32(0.0)
                else:
                    if exponent < SMALLEST or exponent > LARGEST:
                        return count, line
                    value = np.float64(mantissa) * powers[exponent - SMALLEST]
                    low = np.float32(value * (1.0 - DOUBT))
                    if low != np.float32(value * (1.0 + DOUBT)) or np.isinf(low):
                        return count, line
                    rows[count, target] = -low if negative else low
            if quoted:
                if text[position] != QUOTE:
                    return count, line
                position += 1
            if column < columns - 1:
                if text[position] != COMMA:
                    return count, line
            else:
                if text[position] == RETURN:
                    position += 1
                if text[position] != LINE_FEED:
                    return count, line
            position += 1
        count += 1
    return count, position


_compiled = compiled(_read_rows)


def read_plain_rows(
    text: bytes,
    start: int,
    targets: NDArray[np.int32],
    rows: NDArray[np.float32],
    places: NDArray[np.int64],
) -> tuple[int, int]:
    """Read plain lines until the text ends, the output is full, or a line is not plain; other threads run meanwhile.

    Args:
        text: UTF-8 without NUL, whole records, the last one ended by a line feed.
        start: Where a record begins.
        targets: Meaning of each column: dimension, -1 to ignore, -2 for the id.
        rows: Output, float32, capacity x N.
        places: Output, int64, capacity x 2: where each row's id begins and ends in the text.

    Returns:
        Number of rows read and the position of the first record that was not read.

    Raises:
        ValueError: If the text has no line feed at its end, on which the compiled loops rely.
    """
    if text[-1:] != b"\n":
        raise ValueError("the last line has no end")
    return _compiled(np.frombuffer(text, dtype=np.uint8), start, targets, POWERS, rows, places)


def warm() -> None:
    """Compile now and fill the cache, so that no submission waits for it."""
    targets = np.array([-2, 0], dtype=np.int32)
    rows, places = np.empty((1, 1), dtype=np.float32), np.empty((1, 2), dtype=np.int64)
    read_plain_rows(b"a,1\n", 0, targets, rows, places)
