"""The fast reader accepts nothing that the careful reader refuses or reads in another way."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.inputs.columns import resolve_columns
from scoring.inputs.fast_lines import FastReader
from scoring.inputs.faults import Faults
from scoring.inputs.lines import LONGEST_LINE
from tests.scoring.inputs.both_readers import check_readers, generate

FILES = 500  # in each test


def reader(*names: str) -> FastReader:
    """Return a reader of the columns."""
    return FastReader(resolve_columns(names, len(set(names) - {"id", "note"}), Faults()))


@pytest.mark.parametrize("first", range(0, 4 * FILES, FILES))
def test_generated_files_are_read_alike(first: int) -> None:
    """With and without the fast reader, files with and without one small fault have the same bits, faults and verdicts."""
    fast = 0
    for number in range(first, first + FILES):
        made = generate(number)
        check_readers(made.data, made.ids, made.dim, piece=made.piece)
        lines = FastReader(resolve_columns(made.header, made.dim, Faults()))
        fast += lines.read(made.lines, made.lines.count(b"\n")) is not None
    assert fast > FILES / 2  # or the test would compare the careful reader with itself


@pytest.mark.parametrize(
    "text",
    ["a,1,2\nb,-0.0,+1e5\n", "a,1,2\r\nb, 0 ,100000\n", '"a",1,2\n"b",.0,1E5\r\n', " a,1.,2\t\nb,-0,1e+5\n"],
    ids=["plain", "line ends", "quoted ids", "spaces"],
)
def test_common_forms_are_read_fast(text: str) -> None:
    """Plain lines are accepted with either line end and with quoted ids, and zeros are positive."""
    read = reader("id", "0", "1").read(text.encode(), 2)
    assert read is not None
    assert [name.strip() for name in read[0]] == ["a", "b"]
    assert read[1].tobytes() == np.array([[1, 2], [0, 1e5]], dtype=np.float32).tobytes()


def test_columns_may_have_any_order_and_others_are_ignored() -> None:
    """Each value goes to its dimension, whatever the columns around it hold."""
    read = reader("1", "note", "id", "0", "note").read("2,é x,日本,1,\n4,,b,3,nan\n".encode(), 2)
    assert read is not None
    assert read[0] == ["日本", "b"]
    np.testing.assert_array_equal(read[1], [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    "line",
    [
        *(
            b"a,nan",
            b"a,inf",
            b"a,1e39",
            b"a,1e400",
            b"a,",
            b"a,1_0",
            b"a,0x1p3",
            b"a,1f",
            b'a,"1"',
            b"a,1,",
            b"a",
        ),
        *(b"", b" ", b"a,1\rb,2\n", b"a,1\r\r", b"\0,1", b"\xff,1", b"\xed\xa0\x80,1"),
        *(b'"a,1', b'a",1', b'"a"b,1', b'"a""b",1', b' "a",1', b'"a" ,1', b'"a\nb",1', b'"a,1"'),
        pytest.param(b"a," + b"0" * LONGEST_LINE + b"1", id="long"),
    ],
)
def test_anything_else_is_left_to_the_careful_reader(line: bytes) -> None:
    """What pyarrow refuses, accepts too easily or reads in another way is not read fast, first or last in a block."""
    for text in (line + b"\n", line + b"\nz,1\n", b"z,1\n" + line + b"\n"):
        assert reader("id", "0").read(text, text.count(b"\n")) is None


def test_a_byte_order_mark_is_part_of_an_id() -> None:
    """Pyarrow would skip one at the start of a block, although only the file's first is none of its text."""
    assert reader("id", "0").read(b"\xef\xbb\xbfa,1\n", 1) is None


def test_a_note_must_be_text_too() -> None:
    """A byte that is not UTF-8, NUL or a quotation mark in an ignored column is not read fast."""
    for note in (b"\xff", b"\0", b'"', b'"x"'):
        assert reader("id", "0", "note").read(b"a,1," + note + b"\n", 1) is None
