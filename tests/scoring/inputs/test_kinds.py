"""One reader, one set of words: for submissions, for the standalone benchmark, and for label files."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from scoring.errors import OrganizerError, ParticipantError
from scoring.inputs.faults import Faults
from scoring.inputs.matrix_builder import MatrixBuilder
from scoring.inputs.parquet import read_parquet
from scoring.inputs.tables import read_label_rows, read_submission
from scoring.neuco_bench.reading import read_embeddings
from tests.scoring.inputs.reading_tables import DIM, IDS, as_npz, as_parquet, good, refused, table
from tests.scoring.inputs.test_reading_refusals import REFUSALS

WHOLE_FILE = ("file", "archive", "parquet", "npz")
SCORED = {
    "file.nul",
    "archive.bomb",
    "npz.damaged",
}  # left out: the first few bytes say nothing, or the file is large
KINDS = [
    name
    for name, (_, code, _) in REFUSALS.items()
    if (code.partition(".")[0] in WHOLE_FILE and code not in {"file.invalid", *SCORED})
    or code in {"columns.no_id", "columns.no_header", "columns.two_ids", "columns.type"}
]

LABEL_KINDS = [
    name
    for name in KINDS
    if REFUSALS[name][1].startswith(("file.", "archive."))
    and not name.startswith(("npz", "parquet"))  # nothing in them is read
    and not name.startswith("cut off")
    and name not in {"latin-1", "one huge line"}  # the columns are refused before
]


@pytest.mark.parametrize("name", KINDS)
def test_the_standalone_benchmark_refuses_a_file_in_the_same_words(name: str, tmp_path: Path) -> None:
    """What is no table of embeddings is refused with the code and the sentence that a challenge has for it."""
    data, code, _ = REFUSALS[name]
    expected = refused(data, tmp_path)
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(ParticipantError) as caught:
        read_embeddings(tmp_path / "file", IDS, embedding_dim=DIM)
    assert (caught.value.code, caught.value.message) == (code, f"file: {expected.message}")


@pytest.mark.parametrize("name", LABEL_KINDS)
def test_a_label_file_is_refused_in_the_same_words(name: str, tmp_path: Path) -> None:
    """The error of a label file begins with its path, and names the columns of labels."""
    expected = refused(REFUSALS[name][0], tmp_path)
    (tmp_path / "t__regr.csv").write_bytes(REFUSALS[name][0])
    with pytest.raises(OrganizerError) as caught:
        read_label_rows(tmp_path / "t__regr.csv")
    assert caught.value.code == expected.code
    assert caught.value.sentence == f"{tmp_path / 't__regr.csv'}: {expected.sentence}"
    assert caught.value.hint == expected.hint.replace("id, 0, 1, 2 and so on", "id and label")


def frame() -> pd.DataFrame:
    """Return a valid table."""
    return pd.DataFrame(table(), columns=[str(column) for column in range(DIM)]).assign(id=list(IDS))


def as_index(path: Path) -> None:
    """Write ids as the index, which pandas stores as a column."""
    frame().set_index("id").to_parquet(path)


def as_vectors(path: Path) -> None:
    """Write whole embeddings in one column, with ids and more as TerraTorch names them, and a column that pandas had to name."""
    numbers = [0.5] * len(IDS)
    columns = {"file_id": list(IDS), "embedding": list(table()), "lat": numbers, "0": numbers}
    path.write_bytes(as_parquet(columns, row_group_size=5))


def as_fixed_vectors(path: Path) -> None:
    """Write whole embeddings as vector databases do."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(table().ravel()), DIM)
    path.write_bytes(as_parquet({"id": list(IDS), "vector": vectors}))


def as_tensors(path: Path) -> None:
    """Write Arrow's tensors, as models with an axis for a batch give them, next to a list of something else."""
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(table().reshape(len(IDS), 1, DIM))
    path.write_bytes(as_parquet({"id": list(IDS), "embeddings": tensors}))


def encoded(encoding: str, ids: object = IDS) -> Callable[[Path], None]:
    """Write ids in an encoding of Parquet's second version, as DuckDB and parquet-mr do."""

    def write(path: Path) -> None:
        options = {"use_dictionary": False, "column_encoding": {"id": encoding}, "data_page_version": "2.0"}
        path.write_bytes(as_parquet(frame().assign(id=list(ids)).to_dict("list"), **options))

    return write


def as_views(path: Path) -> None:
    """Write ids as bytes of the type that Polars uses in memory."""
    ids = pa.array([name.encode() for name in IDS], pa.binary_view())
    try:
        path.write_bytes(as_parquet(frame().to_dict("list") | {"id": ids}))
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow cannot write views")


FORMS = {
    "index": as_index,
    "vectors": as_vectors,
    "fixed vectors": as_fixed_vectors,
    "tensors": as_tensors,
    "delta": encoded("DELTA_BYTE_ARRAY"),
    "delta of lengths": encoded("DELTA_LENGTH_BYTE_ARRAY"),
    "bytes": encoded("PLAIN", [name.encode() for name in IDS]),
    "views of bytes": as_views,
}


@pytest.mark.parametrize("form", FORMS)
def test_usual_forms_of_parquet_are_read(form: str, tmp_path: Path) -> None:
    """An index and a column of whole embeddings give the same values as numbered columns, in both readers."""
    FORMS[form](tmp_path / "file")
    (tmp_path / "csv").write_bytes(good())
    strict = read_submission(tmp_path / "file", IDS, DIM)
    assert strict.content_hash == read_submission(tmp_path / "csv", IDS, DIM).content_hash
    lenient = read_embeddings(tmp_path / "file", IDS)
    np.testing.assert_array_equal(lenient.matrix, strict.matrix)
    noted = '2 extra columns were ignored: "lat"; "0"'
    assert strict.notes == ((noted,) if form == "vectors" else ())
    assert lenient.warnings == ((f"{noted}.",) if form == "vectors" else ())


@pytest.mark.parametrize(("name", "other"), [("embeddings", "patches"), ("clip", "bbox")])
def test_a_list_of_embeddings_is_chosen_by_its_name(name: str, other: str, tmp_path: Path) -> None:
    """Other lists are extra columns, and so is one that says where a sample is."""
    columns = {other: list(table(seed=1)), name: list(table()), "id": list(IDS)}
    (tmp_path / "file").write_bytes(as_parquet(columns))
    (tmp_path / "csv").write_bytes(good())
    read = read_submission(tmp_path / "file", IDS, DIM)
    assert read.content_hash == read_submission(tmp_path / "csv", IDS, DIM).content_hash
    assert read.notes == (f'1 extra column was ignored: "{other}"',)


def test_a_sample_without_a_vector_is_left_out_by_the_standalone_benchmark(tmp_path: Path) -> None:
    """The first row may be one; the others keep their values and their numbers in messages."""
    vectors = [None, [], *table()[2:].tolist()]
    vectors[5] = [float("nan"), *vectors[5][1:]]
    (tmp_path / "file").write_bytes(as_parquet({"id": list(IDS), "embedding": vectors}))
    read = read_embeddings(tmp_path / "file", IDS)
    assert read.ids == IDS[2:]
    np.testing.assert_array_equal(read.matrix[4:], table()[6:])
    assert read.warnings[0].startswith('1 cell is NaN: row 6 (id "s005"), column 0.')
    assert read.warnings[1] == '2 rows have no embedding: row 1 (id "s000"); row 2 (id "s001"). Left out.'
    columns = {"id": list(IDS), "embedding": pa.array([None] * len(IDS), pa.list_(pa.float32()))}
    (tmp_path / "file").write_bytes(as_parquet(columns))
    with pytest.raises(ParticipantError, match="12 rows have no embedding"):
        read_embeddings(tmp_path / "file", IDS)


def test_uuids_are_ids(tmp_path: Path) -> None:
    """DuckDB and Arrow store them as 16 bytes; they are written with hyphens."""
    ids = [uuid.UUID(int=number + 2**100) for number in range(len(IDS))]
    stored = pa.array([identifier.bytes for identifier in ids], pa.uuid())
    (tmp_path / "file").write_bytes(as_parquet({"id": stored, "embedding": list(table())}))
    assert len(read_submission(tmp_path / "file", [*map(str, ids)], DIM).ids) == len(IDS)


def test_arrow_opens_a_parquet_file_itself(tmp_path: Path) -> None:
    """Its threads may outlive a refusal, and would end a process by SIGABRT if they held a Python object while it exits."""

    class Watched(io.FileIO):
        """Records how often it is read."""

        reads = 0

        def read(self, size: int | None = -1) -> bytes:
            """Count."""
            self.reads += 1
            return super().read(size)

    encoded("DELTA_BYTE_ARRAY")(tmp_path / "file")
    with Watched(tmp_path / "file") as file:
        read_parquet(file, MatrixBuilder(IDS, DIM, Faults()), max_expanded_bytes=10**6)  # type: ignore[arg-type]
        assert file.reads == 1


@pytest.mark.parametrize("kind", ["i8", "u2"])
def test_whole_numbers_are_ids(kind: str, tmp_path: Path) -> None:
    """Ids that were stored as numbers are read as text, in Parquet and NPZ."""
    ids = tuple(map(str, range(len(IDS))))
    numbers = np.arange(len(IDS)).astype(kind)
    columns = {"id": numbers} | {str(column): table()[:, column] for column in range(DIM)}
    for data in (as_parquet(columns), as_npz(ids=numbers, embeddings=table())):
        (tmp_path / "file").write_bytes(data)
        assert read_submission(tmp_path / "file", ids, DIM).ids == tuple(sorted(ids))
        assert read_embeddings(tmp_path / "file", ids).ids == tuple(sorted(ids))


@pytest.mark.parametrize(
    ("written", "listed", "form"),
    [
        ("{}.0", "{}", "ids were read as numbers with decimals"),
        ("{}", "000{}", "zeros at the beginning differ"),
        ("000{}", "{}", "zeros at the beginning differ"),
        *(
            (written, listed, "ids are written as Python prints objects")
            for written, listed in (
                ("b'x{}'", "x{}"),
                ("\"('x{}',)\"", "x{}"),
                ("['x{}']", "x{}"),
                ("np.str_('x{}')", "x{}"),
                ("np.bytes_(b'x{}')", "x{}"),
                ("\"array(['x{}'], dtype='<U3')\"", "x{}"),
                ("PosixPath('x{}')", "x{}"),
                ("tensor({})", "{}"),
                ("tensor([{}])", "{}"),
                ("\"tensor({}, device='cuda:0')\"", "{}"),
                ("\"tf.Tensor(b'x{}', shape=(), dtype=string)\"", "x{}"),
                ("np.int64({})", "{}"),
                ("{{'x{}'}}", "x{}"),
            )
        ),
        ("images/{}.tif", "{}", "a path or a suffix differs"),
        ("images/{}/", "{}", "a path or a suffix differs"),
        ("PosixPath('images/x{}.tif')", "x{}", "paths, suffixes, case or the like differ"),
        ("images/{}T.TIF", "0{}t", "paths, suffixes, case or the like differ"),
        ("Tile-{}", "tile-{}", "upper and lower case differ"),
        ("\u201c{}\u201d", "{}", "quotation marks, or characters that cannot be seen, differ"),
        ("x\u200b{}\u00a0", "x{}", "quotation marks, or characters that cannot be seen, differ"),
    ],
)
def test_ids_that_differ_only_in_form_are_recognized(
    written: str, listed: str, form: str, tmp_path: Path
) -> None:
    """The message names the form, and does not say that rows are missing."""
    listed_ids = [listed.format(number) for number in range(1, 13)]
    rows = [f"{written.format(number)},{number},2,3,4" for number in range(1, 13)]
    (tmp_path / "file").write_text("\n".join(["id,0,1,2,3", *rows, ""]), encoding="utf-8")
    with pytest.raises(ParticipantError) as caught:
        read_submission(tmp_path / "file", listed_ids, DIM)
    assert caught.value.code == "rows.form"
    assert f"({form})" in caught.value.message
    with pytest.raises(ParticipantError, match=form):
        read_embeddings(tmp_path / "file", listed_ids)


@pytest.mark.parametrize("header", ["id,1,2,3,4", "file_id,1,2,3,4"])
def test_columns_numbered_from_1_are_read_with_a_note(header: str, tmp_path: Path) -> None:
    """TerraTorch writes them; without a column 0, there is only one way to understand them."""
    note = "the columns 1 to 4 were read as 0 to 3"
    text = good().replace(b"id,0,1,2,3", header.encode())
    numbered = {"id": list(IDS)} | {str(column + 1): table()[:, column] for column in range(DIM)}
    for data in (text, as_parquet(numbered)):
        (tmp_path / "file").write_bytes(data)
        (tmp_path / "csv").write_bytes(good())
        strict = read_submission(tmp_path / "file", IDS, DIM)
        assert strict.content_hash == read_submission(tmp_path / "csv", IDS, DIM).content_hash
        assert strict.notes == (note,)
        lenient = read_embeddings(tmp_path / "file", IDS)
        np.testing.assert_array_equal(lenient.matrix, strict.matrix)
        assert lenient.warnings == (f"T{note[1:]}.",)


def test_a_fault_is_placed_by_the_name_of_its_column(tmp_path: Path) -> None:
    """The name is that of the file, not the number of the dimension."""
    lines = good().decode().splitlines()
    lines[1] = "s000,nan,1,2,3"
    (tmp_path / "file").write_text("\n".join(["id,1,2,3,4", *lines[1:], ""]))
    with pytest.raises(ParticipantError, match=r'line 2 \(id "s000"\), column 1\.'):
        read_submission(tmp_path / "file", IDS, DIM)
    (tmp_path / "file").write_text("\n".join(["id,emb_0,emb_1,emb_2,emb_3", *lines[1:], ""]))
    assert 'column "emb_0". Scored as 0' in read_embeddings(tmp_path / "file", IDS).warnings[0]


def test_a_file_that_ends_within_a_number_gets_a_note(tmp_path: Path) -> None:
    """The last number may be a part of one, if an upload was cut off; nothing else can tell."""
    (tmp_path / "file").write_bytes(good()[:-1])
    note = "the file ends within a line, so its last number may be cut off"
    assert read_submission(tmp_path / "file", IDS, DIM).notes == (note,)
    assert read_embeddings(tmp_path / "file", IDS).warnings == (f"T{note[1:]}.",)


def test_an_annex_link_without_content_is_a_pointer(tmp_path: Path) -> None:
    """git-annex leaves a link to nothing for a file that was not fetched."""
    (tmp_path / "file").symlink_to("../.git/annex/objects/SHA256E-s12--4d7a.csv")
    with pytest.raises(ParticipantError, match="git-annex wrote it"):
        read_submission(tmp_path / "file", IDS, DIM)
