"""The compiled reader takes plain numbers itself, to the last digit of a text, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.inputs.csv_kernel import read_plain_rows

TARGETS = np.array([-2, 0], dtype=np.int32)


def read_number(written: bytes) -> np.float32 | None:
    """Read one line with an id and a number; None if the compiled reader leaves it to the careful one."""
    rows, places = np.zeros((1, 1), dtype=np.float32), np.empty((1, 2), dtype=np.int64)
    count, _ = read_plain_rows(b"a," + written + b"\n", 0, TARGETS, rows, places)
    return rows[0, 0] if count else None


@pytest.mark.parametrize("whole", ["", "0", "7", "-0", "+30"])
@pytest.mark.parametrize("ending", ["", "e-3", "E+00", " " * 9, "\r"])
def test_fractions_of_every_length(whole: str, ending: str) -> None:
    """Fractions are read eight digits at a time; none of their lengths, and no zeros before or after, make a difference."""
    for digits in ("1234567891234567", "9" * 16, "0" * 7 + "123456789", "1" + "0" * 15, "0" * 16):
        for length in range(1, len(digits) + 1):
            written = f"{whole}.{digits[:length]}{ending}"
            assert read_number(written.encode()) == np.float32(float(written)), written


def test_zeros_before_the_first_other_digit_do_not_count() -> None:
    """Nineteen digits fit into 64 bits, however many zeros are in front of them; twenty are left to the careful reader."""
    for zeros in range(30):
        written = f"000.{'0' * zeros}1234567890123456789"
        assert read_number(written.encode()) == np.float32(float(written)), written
        assert read_number(f"{written}1".encode()) is None
        assert read_number(f"{written[:-1]}0".encode()) is not None


@pytest.mark.parametrize("place", range(9))
def test_every_other_byte_ends_the_digits(place: int) -> None:
    """Each byte that is no digit is seen at every place of the eight that are examined at once."""
    for byte in sorted(set(range(256)) - set(b"0123456789\n")):
        assert read_number(b"0." + b"9" * place + bytes([byte]) + b"9" * 9) is None, byte
    for digit in b"0123456789":
        written = b"0." + b"9" * place + bytes([digit]) + b"9" * 9
        assert read_number(written) == np.float32(float(written))
