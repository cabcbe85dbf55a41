"""A faultless CSV file gives the same rows as with pandas; any other file gives None."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.inputs.in_order import read_in_order
from scoring.neuco_bench import reading

ROWS = [["b", "1", "2.5"], ["a", "-3e-5", "4"], ["b", "5", "6"], ["odd", "7", "8"]]


def text_of(rows: list[list[str]], header: list[str] | None = None) -> bytes:
    """Write a table."""
    text = io.StringIO()
    csv.writer(text).writerows([header or ["id", "0", "1"], *rows])
    return text.getvalue().encode()


def read(content: bytes, wanted: str = "ab") -> tuple[list[str], np.ndarray] | None:
    """Read a table from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        path.write_bytes(content)
        return read_in_order(path, lambda identifier: identifier in set(wanted))


def zipped(content: bytes) -> bytes:
    """Put a table into an archive."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("table.csv", content)
    return archive.getvalue()


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"),
            st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
        ),
        min_size=1,
        max_size=30,
    ),
    st.permutations(["id", "0", "1", "2", "comment"]),
    st.sampled_from([bytes, gzip.compress, zipped]),
)
def test_rows_are_read_in_the_order_of_the_file(
    rows: list, header: list[str], packed: Callable[[bytes], bytes]
) -> None:
    """Order and repeated ids stay, other rows are left out, columns are ordered by number, and every value is the written float32."""
    table = [
        [
            str({"id": identifier, "comment": "text"}.get(name, "") or repr(values[int(name)]))
            for name in header
        ]
        for identifier, values in rows
    ]
    found = read(packed(text_of(table, header)), "abc")
    kept = [(identifier, values) for identifier, values in rows if identifier != "d"]
    if not kept:
        assert found is None
        return
    assert found is not None
    assert found[0] == [identifier for identifier, _ in kept]
    np.testing.assert_array_equal(found[1], np.array([values for _, values in kept], np.float32))


def test_a_large_file_is_read_alike_by_the_compiled_reader(tmp_path: Path) -> None:
    """Files of several blocks give the same as with pandas, in order."""
    random = np.random.default_rng(0)
    ids = [f"id {number}" for number in random.integers(0, 4000, 6000)]
    values = random.standard_normal((6000, 64)).astype(np.float32)
    path = tmp_path / "table.csv"
    pd.DataFrame(values).assign(id=ids).to_csv(path, index=False)
    assert path.stat().st_size > 2 * 2**20
    found = read_in_order(path, lambda identifier: not identifier.endswith("7"))
    assert found is not None
    kept = [not identifier.endswith("7") for identifier in ids]
    assert found[0] == [identifier for identifier, one in zip(ids, kept, strict=True) if one]
    np.testing.assert_array_equal(found[1], values[kept])


QUESTIONABLE = {
    "empty cell": text_of([*ROWS, ["a", "", "1"]]),
    "word": text_of([*ROWS, ["a", "word", "1"]]),
    "nan": text_of([*ROWS, ["a", "nan", "1"]]),
    "infinite": text_of([*ROWS, ["a", "inf", "1"]]),
    "past float32": text_of([*ROWS, ["a", "1e39", "1"]]),
    "short row": text_of([*ROWS, ["a", "1"]]),
    "gap in columns": text_of(ROWS, ["id", "0", "2"]),
    "named columns": text_of(ROWS, ["id", "x", "y"]),
    "no id": text_of(ROWS, ["name", "0", "1"]),
    "semicolons": text_of(ROWS).replace(b",", b";"),
    "cut off": gzip.compress(text_of(ROWS))[:-9],
    "nothing": b"",
    "page": b"<html>",
}


# By name, because a gzip header has the time, and every process that collects tests must name them alike.
@pytest.mark.parametrize("fault", QUESTIONABLE)
def test_faulty_files_are_left_to_the_other_reader(fault: str) -> None:
    """If any row is faulty, the result is None."""
    assert read(text_of(ROWS)) is not None
    assert read(QUESTIONABLE[fault]) is None


def test_both_ways_of_reading_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The standalone benchmark reads the same values with the fast and with the lenient reader."""
    path = tmp_path / "table.csv"
    path.write_bytes(
        text_of([["b.zarr", "1", "2.5"], ["a", "-3e-5", "4"], ["b", "5", "6"], ["odd", "x", "8"]])
    )
    quick = reading.read_embeddings(path, ["a", "b", "c"], exclude=["c"])
    monkeypatch.setattr(reading, "read_in_order", lambda *_: None)
    forgiving = reading.read_embeddings(path, ["a", "b", "c"], exclude=["c"])
    assert quick.ids == forgiving.ids == ("b", "a", "b")
    np.testing.assert_array_equal(quick.matrix, forgiving.matrix)
    assert quick.warnings == forgiving.warnings != ()
