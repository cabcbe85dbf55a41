"""Accepted files, and that every accepted form gives the same embeddings."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scoring.inputs.faults import Faults
from scoring.inputs.formats import FORMATS
from scoring.inputs.matrix_builder import MatrixBuilder
from scoring.inputs.tabular import read_csv
from tests.scoring.inputs.both_readers import check_readers, near_the_middle
from tests.scoring.inputs.reading_tables import (
    DIM,
    IDS,
    as_csv,
    as_npz,
    as_parquet,
    embeddings_of,
    from_lines,
    good,
    gzipped,
    lines_of,
    read,
    table,
    zipped,
)

FINITE32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
NAMES = st.text(
    st.characters(exclude_categories=("C", "Z"), exclude_characters="\ufeff"), min_size=1, max_size=8
).filter(lambda name: not name.endswith((".zarr", ".zip")))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], np.ndarray]:
    """Draw distinct ids and finite values that are not all equal."""
    ids = draw(st.lists(NAMES, min_size=2, max_size=6, unique=True))
    dim = draw(st.integers(1, 5))
    matrix = draw(hnp.arrays(np.float32, (len(ids), dim), elements=FINITE32))
    matrix[0, 0] = 1.5 if matrix[-1, -1] != 1.5 else 2.5
    return ids, matrix


def written(draw: st.DrawFn, ids: list[str], matrix: np.ndarray) -> bytes:
    """Draw one of the accepted forms of a table."""
    rows = draw(st.permutations(range(len(ids))))
    columns = draw(st.permutations(range(matrix.shape[1])))
    suffix = draw(st.sampled_from(["", ".zarr", ".zarr.zip"]))
    names = [ids[row] + suffix for row in rows]
    form = draw(st.sampled_from([each.suffix for each in FORMATS]))
    if form == ".npz":
        kind = draw(st.sampled_from([np.float32, np.float64]))
        order = draw(st.sampled_from(["C", "F"]))
        array = np.array(matrix[rows], dtype=kind, order=order)
        return as_npz(ids=np.array(names, dtype=str), embeddings=array)
    if form == ".parquet":
        import pyarrow as pa

        text = pa.array(names)
        data: dict[str, object] = {"id": text.dictionary_encode() if draw(st.booleans()) else text}
        kind = draw(st.sampled_from([np.float32, np.float64]))
        data |= {str(column): matrix[rows, column].astype(kind) for column in columns}
        return as_parquet(data, row_group_size=draw(st.integers(1, 7)))
    buffer = io.StringIO()
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(buffer, quoting=quoting, lineterminator=ending)
    extra = draw(st.booleans())
    place = draw(st.integers(0, len(columns)))
    header: list[str] = [str(column) for column in columns]
    header.insert(place, "id")
    writer.writerow((["", "note, really"] if extra else []) + header)
    for row, name in zip(rows, names, strict=True):
        cells: list[object] = [float(value) for value in matrix[row, list(columns)]]
        cells.insert(place, name)
        writer.writerow(([row, 'he said "hi, you"'] if extra else []) + cells)
    text_data = buffer.getvalue()
    if draw(st.booleans()):
        text_data = text_data.removesuffix(ending)
    csv_data = ("\ufeff" if draw(st.booleans()) else "").encode() + text_data.encode()
    return {".csv": csv_data, ".gz": gzipped(csv_data), ".zip": zipped(("a/../b.csv", csv_data))}[form]


@given(data=st.data(), drawn=tables())
@settings(max_examples=250, deadline=None)
def test_any_table_in_any_accepted_form_reads_back_exactly(
    data: st.DataObject, drawn: tuple[list[str], np.ndarray], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Row order, column order, quotes, line ends, compression and number type change neither a bit nor the content hash."""
    ids, matrix = drawn
    expected = embeddings_of(ids, matrix)
    form = data.draw(st.composite(written)(ids, matrix))
    got = read(form, tmp_path_factory.getbasetemp(), ids[::-1], matrix.shape[1])
    assert got.ids == expected.ids
    np.testing.assert_array_equal(got.matrix, expected.matrix)
    assert got.content_hash == expected.content_hash


NUMBERS = st.one_of(
    FINITE32.map(repr),
    st.floats(-3e38, 3e38).map(repr),
    st.decimals(-1000, 1000, places=30).map(str),
    st.builds(near_the_middle, FINITE32, st.integers(-30, 30)),
    st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-2]?[0-9])?", fullmatch=True),
    st.sampled_from(
        ["1.", ".5", "-0", "+1e-45", "3.4028235e38", "1e-400", "0e999", "0.1e1", " 7 ", "16777217", "-.0e-0"]
    ),
)


@given(cells=st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=1, max_size=5))
@settings(max_examples=300, deadline=None)
def test_the_fast_reader_reads_any_decimal_as_the_careful_one(cells: list[list[str]]) -> None:
    """Both readers read every decimal as Python's float, rounded to float32."""
    ids = tuple(f"r{row}" for row in range(len(cells)))
    text = "id,0,1,2\n" + "".join(f"{name},{','.join(row)}\n" for name, row in zip(ids, cells, strict=True))
    check_readers(text.encode(), ids, 3)
    builder = MatrixBuilder(ids, 3, Faults())
    read_csv(io.BytesIO(text.encode()), builder, fast=True)
    with np.errstate(over="ignore"):
        exact = np.array([[float(cell) for cell in row] for row in cells]).astype(np.float32)
    assert bool(builder.faults) == bool(np.isinf(exact).any())
    if not builder.faults:
        np.testing.assert_array_equal(builder.matrix, exact)


PIECES = st.sampled_from(
    [
        "1",
        "-2.5",
        "1e5",
        "nan",
        "inf",
        "",
        " ",
        '"',
        '""',
        '"3"',
        ",",
        "\n",
        "\r",
        "\r\n",
        "x",
        "é",
        "r0",
        "r1",
        "r2",
        "\0",
        "\x1b",
        "1e99",
    ]
)


@given(pieces=st.lists(PIECES, max_size=40))
@settings(max_examples=400, deadline=None)
def test_both_readers_find_the_same_faults(pieces: list[str]) -> None:
    """With any text after the header, the fast and the careful reader agree on values, faults and examples."""
    check_readers(("id,0,1\nr0,1,2\n" + "".join(pieces)).encode(), ("r0", "r1", "r2"), 2)


def test_ids_stay_text(tmp_path: Path) -> None:
    """Leading zeros, NA, nan, numbers and dates are ids like any other."""
    ids = ("007", "7", "NA", "nan", "null", "1e5", "2024-01-01", "TRUE", "0x10", "-1", "ü", "日本")
    embeddings = read(as_csv(ids, table(ids)), tmp_path, ids)
    assert embeddings.ids == tuple(sorted(ids, key=str.encode))
    np.testing.assert_array_equal(embeddings.matrix[embeddings.ids.index("007")], table(ids)[0])


def test_extra_rows_and_columns_are_ignored_and_noted(tmp_path: Path) -> None:
    """Other ids, with any values, and named columns are ignored, and the participant is told."""
    lines = lines_of(good())
    lines = [f"{number if number else ''},{line},x,y,z" for number, line in enumerate(lines)]
    lines[0] = ",".join(["", *lines[0].split(",")[1:-3], "comment", "y", "z"])
    lines += ["98,other,1,nan,x,,,,", "99,more.zarr,1,2,3,4,,,"]
    embeddings = read(from_lines(lines), tmp_path)
    assert embeddings.content_hash == embeddings_of(IDS, table()).content_hash
    assert embeddings.notes == (
        ".zarr or .zarr.zip suffixes were removed from ids",
        '2 ids that are not in the public list were ignored: "other"; "more.zarr"',
        '4 extra columns were ignored: column 1, without a name; "comment"; "y"; and so on',
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b",", b", "),
        lambda text: text.replace(b"s003,", "\u00a0s003\u3000,".encode()),
        lambda text: text.replace(b"\n", b"\n\n"),
        lambda text: b"\n" + text,
        lambda text: text + b"\n \n\n",
        lambda text: text.replace(b"id,0,1,2,3", b"id,00,01,2,3"),
        lambda text: text.replace(b"\n", b" \n"),
        lambda text: gzipped(text[:50]) + gzipped(text[50:]),
        lambda text: gzipped(text) + b"\0" * 700,
        lambda text: zipped(("x.csv", text), ("__MACOSX/._x.csv", b"\0\5\x16\7"), (".DS_Store", b"x")),
        lambda text: zipped(("a/._x.csv", b"\0\5\x16\7"), ("a/x.csv", text), ("a/", b"")),
        lambda text: zipped(("folder/", b""), ("folder/x.csv", text), method=0),
    ],
    ids=[
        "spaces",
        "spaces of other kinds",
        "blank lines",
        "blank first",
        "blank last",
        "00",
        "trailing",
        "members",
        "padding",
        "mac",
        "mac, on a disk of another system",
        "folder",
    ],
)
def test_harmless_oddities_score_the_same(change: object, tmp_path: Path) -> None:
    """Additions of spreadsheets, shells and archive programs change nothing."""
    embeddings = read(change(good()), tmp_path)  # type: ignore[operator]
    assert embeddings.content_hash == embeddings_of(IDS, table()).content_hash


@pytest.mark.parametrize("kind", ["int8", "int64", "uint16", "float16"])
def test_numbers_of_other_types_are_numbers(kind: str, tmp_path: Path) -> None:
    """Integers and half floats in Parquet and NPZ are read as their text is; one that no float64 holds is rounded twice."""
    matrix = np.arange(len(IDS) * DIM).reshape(len(IDS), DIM).astype(kind)
    if kind == "int64":
        matrix[0, 0] = 2**60 + 2**36 + 1
    expected = read(as_csv(IDS, matrix), tmp_path).content_hash
    columns: dict[str, object] = {"id": list(IDS)} | {str(column): matrix[:, column] for column in range(DIM)}
    assert read(as_parquet(columns), tmp_path).content_hash == expected
    assert read(as_npz(ids=np.array(IDS, dtype=bytes), embeddings=matrix), tmp_path).content_hash == expected


def test_extra_arrays_and_nested_columns_are_ignored(tmp_path: Path) -> None:
    """Data outside the embedding may have any type."""
    import pyarrow as pa

    matrix = table()
    columns: dict[str, object] = {"note": pa.array([[1, 2]] * len(IDS)), "id": list(IDS)}
    columns |= {str(column): matrix[:, column] for column in range(DIM)}
    assert read(as_parquet(columns), tmp_path).notes == ('1 extra column was ignored: "note"',)
    data = as_npz(ids=np.array(IDS), embeddings=matrix, note=np.array([1]))
    assert read(data, tmp_path).notes == ('1 extra array was ignored: "note"',)
