"""One reader, one set of words: for submissions, for the standalone benchmark, and for label files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scoring.errors import OrganizerError, ParticipantError
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
    and not name.startswith("npz")  # nothing in it is read
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
    assert caught.value.cure == expected.cure.replace("id, 0, 1, 2 and so on", "id and label")


def frame() -> pd.DataFrame:
    """Return a valid table."""
    return pd.DataFrame(table(), columns=[str(column) for column in range(DIM)]).assign(id=list(IDS))


def as_index(path: Path) -> None:
    """Write ids as the index, which pandas stores as a column."""
    frame().set_index("id").to_parquet(path)


def as_vectors(path: Path) -> None:
    """Write whole embeddings in one column, with ids and more as TerraTorch names them."""
    columns = {"file_id": list(IDS), "embedding": list(table()), "lat": [0.5] * len(IDS)}
    path.write_bytes(as_parquet(columns, row_group_size=5))


def as_fixed_vectors(path: Path) -> None:
    """Write whole embeddings as vector databases do."""
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(table().ravel()), DIM)
    path.write_bytes(as_parquet({"id": list(IDS), "vector": vectors}))


FORMS = {"index": as_index, "vectors": as_vectors, "fixed vectors": as_fixed_vectors}


@pytest.mark.parametrize("form", FORMS)
def test_usual_forms_of_parquet_are_read(form: str, tmp_path: Path) -> None:
    """An index and a column of whole embeddings give the same values as numbered columns, in both readers."""
    FORMS[form](tmp_path / "file")
    (tmp_path / "csv").write_bytes(good())
    strict = read_submission(tmp_path / "file", IDS, DIM)
    assert strict.content_hash == read_submission(tmp_path / "csv", IDS, DIM).content_hash
    lenient = read_embeddings(tmp_path / "file", IDS)
    np.testing.assert_array_equal(lenient.matrix, strict.matrix)
    noted = '1 extra column was ignored: "lat"'
    assert strict.notes == ((noted,) if form == "vectors" else ())
    assert lenient.warnings == ((f"{noted}.",) if form == "vectors" else ())


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
        ("{}", "000{}", "zeros at the beginning are lost"),
        ("images/{}.tif", "{}", "a path or a suffix differs"),
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
