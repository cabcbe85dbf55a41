"""A folder of Parquet files is one table of embeddings in parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import scoring
from scoring.errors import ParticipantError
from scoring.neuco_bench.reading import read_embeddings

IDS = [f"a{number:02}" for number in range(30)]
VALUES = np.random.RandomState(0).standard_normal((30, 3)).astype(np.float32)
TABLE = pd.DataFrame(VALUES, columns=["0", "1", "2"]).assign(id=IDS)
SEPARATE = "if the files are embeddings of their own, score them one by one"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of three parts, with what Spark writes next to them."""
    parts = tmp_path / "ours"
    parts.mkdir()
    for number in range(3):
        TABLE[10 * number : 10 * number + 10].to_parquet(parts / f"part-{number}.parquet", index=False)
    (parts / "_SUCCESS").touch()
    (parts / ".part-0.parquet.crc").touch()
    return parts


def test_parts_are_read_like_one_file(folder: Path, tmp_path: Path) -> None:
    """They give the same embeddings and scores; other files in the folder are named in a warning."""
    TABLE.to_parquet(tmp_path / "whole.parquet", index=False)
    read = read_embeddings(folder, IDS)
    assert (read.ids, read.warnings) == (tuple(IDS), ())
    np.testing.assert_array_equal(read.matrix, VALUES)
    labels = pd.Series(VALUES @ [1, 2, 3], index=IDS, name="sum__regr")
    whole, parts = (
        scoring.score(str(path), labels, "ridge", folds=3) for path in (tmp_path / "whole.parquet", folder)
    )
    assert parts.q == whole.q
    without_rows = pa.table(
        {name: pa.nulls(0) for name in TABLE}
    )  # so pandas writes text, and lists, without a row
    for name in ("part-.parquet", "part-3.pq"):
        pq.write_table(without_rows, folder / name)
    np.testing.assert_array_equal(read_embeddings(folder, IDS).matrix, VALUES)
    (folder / "about.json").touch()
    assert read_embeddings(folder, IDS).warnings == ('1 extra file was ignored: "about.json".',)


def test_a_file_may_hold_one_sample(tmp_path: Path) -> None:
    """So some programs write embeddings, with a column file_id and one of vectors."""
    for identifier, vector in zip(IDS, VALUES, strict=True):
        row = pd.DataFrame({"file_id": [identifier], "embedding": [vector]})
        row.to_parquet(tmp_path / f"{identifier}.parquet")
    np.testing.assert_array_equal(read_embeddings(tmp_path, IDS).matrix, VALUES)


LAST = TABLE[20:]
FAULTY: dict[str, tuple[Callable[[Path], object], str]] = {
    "no column": (
        lambda part: LAST.drop(columns="1").to_parquet(part, index=False),
        'ours/part-3.parquet: It has no column "1", but part-0.parquet has one.',
    ),
    "a column more": (
        lambda part: LAST.assign(more=1).to_parquet(part, index=False),
        'ours/part-3.parquet: It has a column "more", but part-0.parquet has none.',
    ),
    "another order": (
        lambda part: LAST[["id", "0", "1", "2"]].to_parquet(part, index=False),
        "ours/part-3.parquet: Its columns are in another order than those of part-0.parquet.",
    ),
    "the same ids": (
        lambda part: LAST[1:2].to_parquet(part, index=False),
        f'ours: 1 id occurs more than once: "a21" on row 2 of part-2.parquet and row 1 of part-3.parquet ({SEPARATE}).',
    ),
    "infinite": (
        lambda part: (
            LAST.replace({"1": {LAST["1"].iloc[4]: np.inf}})
            .assign(id=[*"bcdefghijk"])
            .to_parquet(part, index=False)
        ),
        'ours: 1 cell is infinite: row 5 of part-3.parquet (id "f"), column 1.',
    ),
    "CSV": (
        lambda part: LAST.to_csv(part, index=False),
        "ours/part-3.parquet: The part is not Parquet.",
    ),
    "a pointer": (
        lambda part: part.write_text("version https://git-lfs.github.com/spec/v1\n"),
        "ours/part-3.parquet: The file is a pointer to the table, not the table: Git LFS wrote it.",
    ),
    "damaged": (
        lambda part: part.write_bytes(b"PAR1" + bytes(40)),
        "ours/part-3.parquet: The Parquet file is cut off or damaged",
    ),
}


@pytest.mark.parametrize(("write", "sentence"), FAULTY.values(), ids=FAULTY)
def test_a_wrong_part_is_named(write: Callable[[Path], object], sentence: str, folder: Path) -> None:
    """So are the column that differs, the row, and both parts that have an id."""
    write(folder / "part-3.parquet")
    with pytest.raises(ParticipantError) as caught:
        read_embeddings(folder, [*IDS, *"bcdefghijk"])
    assert sentence in caught.value.message


def test_vectors_of_another_length_and_folders_of_another_kind_are_refused(
    folder: Path, tmp_path: Path
) -> None:
    """The files of a Delta table are not all valid, and parts of another kind are not read."""
    for identifier, vector in ("a00", [1.0, 2.0]), ("a01", [1.0, 2.0, 3.0]):
        row = pd.DataFrame({"id": [identifier], "embedding": [vector]})
        row.to_parquet(tmp_path / f"{identifier}.parquet")
    with pytest.raises(ParticipantError, match=r"a01.parquet: It has 3 dimensions, but a00.parquet has 2"):
        read_embeddings(tmp_path, IDS)
    (folder / "_delta_log").mkdir()
    with pytest.raises(ParticipantError, match="it is a Delta table"):
        read_embeddings(folder, IDS)
