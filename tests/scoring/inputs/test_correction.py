"""A file whose meaning is certain becomes a valid file with the same content; any other file is refused."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from scoring.errors import OrganizerError, ParticipantError
from scoring.inputs.correction import better_names, corrected
from scoring.inputs.submission import read_submission
from scoring.inputs.written import write_embeddings, write_template
from tests.scoring.inputs.reading_tables import CEILING, DIM, IDS, as_csv, from_lines, good, lines_of, table


def header(names: str) -> bytes:
    """Return the good file with other names of columns."""
    return from_lines([names, *lines_of(good())[1:]])


def with_more(*lines: str) -> bytes:
    """Return the good file with its columns numbered from 1 and more lines."""
    return from_lines(["id,1,2,3,4", *lines_of(good())[1:], *lines])


SAFE: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "numbered from one": (header("id,1,2,3,4"), ('Renamed 4 columns: "1" to "4" are now 0 to 3.',)),
    "a word before the number": (
        header("id,emb_0,emb_1,emb_2,emb_3"),
        ('Renamed 4 columns: "emb_0" to "emb_3" are now 0 to 3.',),
    ),
    "a word, and from one": (header("id,x1,x2,x3,x4"), ('Renamed 4 columns: "x1" to "x4" are now 0 to 3.',)),
    "ID in capitals": (header("ID,0,1,2,3"), ('Renamed the column "ID" to id.',)),
    "rows that are there twice": (
        from_lines([*lines_of(good()), lines_of(good())[3], lines_of(good())[3]]),
        ("Left out 2 rows that repeat another.",),
    ),
    "all of it, compressed": (
        gzip.compress(with_more(lines_of(good())[1], "", "stranger,1,2,3,4")),
        (
            'Renamed 4 columns: "1" to "4" are now 0 to 3.',
            "Left out 1 row that repeats another.",
            "1 id that is not in the public list was ignored.",
        ),
    ),
    "valid already": (good(), ()),
    "valid, in another order": (from_lines([lines_of(good())[0], *lines_of(good())[:0:-1]]), ()),
}


@pytest.mark.parametrize("name", SAFE)
def test_unambiguous_faults_are_corrected(name: str, tmp_path: Path) -> None:
    """The values are those of the file, and the corrected file is valid and the same submission."""
    data, changes = SAFE[name]
    (tmp_path / "given").write_bytes(data)
    (tmp_path / "good.csv").write_bytes(good())
    found = corrected(tmp_path / "given", IDS, DIM, max_expanded_bytes=CEILING)
    assert found.changes == changes
    expected = read_submission(tmp_path / "good.csv", IDS, DIM, max_expanded_bytes=CEILING)
    write_embeddings(tmp_path / "fixed.csv", found.embeddings)
    again = read_submission(tmp_path / "fixed.csv", IDS, DIM, max_expanded_bytes=CEILING)
    assert again.content_hash == found.embeddings.content_hash == expected.content_hash
    assert again.notes == ()
    assert [line.partition(",")[0] for line in lines_of((tmp_path / "fixed.csv").read_bytes())] == [
        "id",
        *IDS,
    ]


UNSAFE: dict[str, tuple[bytes, str]] = {
    "a missing id": (with_more().replace(b"s000,", b"t000,"), "rows.missing"),
    "a value that is not a number": (with_more().replace(b"\ns000,", b"\ns000,nan"), "cells.text"),
    "two rows that say different things": (with_more("s000,1,2,3,4"), "rows.duplicate"),
    "two sets of columns": (
        from_lines(["id,a0,a1,a2,a3,b0,b1,b2,b3", *(f"{line},1,2,3,4" for line in lines_of(good())[1:])]),
        "columns.names",
    ),
    "a column too few": (header("id,1,2,3,5"), "file.invalid"),
    "not a table": (b"<html></html>", "file.html"),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_faults_that_only_the_author_can_correct_are_refused(name: str, tmp_path: Path) -> None:
    """The error names what is left to fix, with line numbers of the given file."""
    data, code = UNSAFE[name]
    (tmp_path / "given").write_bytes(data)
    with pytest.raises(ParticipantError) as error:
        corrected(tmp_path / "given", IDS, DIM, max_expanded_bytes=CEILING)
    assert error.value.code == code
    assert error.value.sentence.startswith("No file was written, because only you can correct this:\n")


def test_a_fault_is_named_by_its_line_in_the_given_file(tmp_path: Path) -> None:
    """Rows that are left out do not change the numbers of later lines."""
    first, *rows = lines_of(good())
    data = from_lines(
        ["", first.upper(), rows[0], rows[0], rows[1].replace(",", ",nan,", 1).rpartition(",")[0], *rows[2:]]
    )
    (tmp_path / "given").write_bytes(data)
    with pytest.raises(ParticipantError, match=r"line 5 \(id \"s001\"\), column 0"):
        corrected(tmp_path / "given", IDS, DIM, max_expanded_bytes=CEILING)


@pytest.mark.parametrize(
    "names", ["id,0,1,2,3", "id,1,2,3,0", "id,1,2,3", "id,2,3,4,5", "id,a1,a1,a2,a3", "ID,Id,0,1,2"]
)
def test_correct_or_ambiguous_names_stay(names: str) -> None:
    """The meaning of a column is never guessed."""
    assert better_names(names.split(","), DIM) == (names.split(","), ())


@pytest.mark.parametrize(
    "write",
    [
        lambda path, found: write_embeddings(path, found),
        lambda path, found: write_template(path, found.ids, DIM),
    ],
)
def test_no_file_is_overwritten(write: Callable[..., None], tmp_path: Path) -> None:
    """Correction and template refuse a target that exists, or whose folder does not."""
    (tmp_path / "good.csv").write_bytes(as_csv(IDS, table()))
    found = read_submission(tmp_path / "good.csv", IDS, DIM, max_expanded_bytes=CEILING)
    for name, code in (("good.csv", "file.exists"), ("none/good.csv", "file.unwritable")):
        with pytest.raises(OrganizerError) as error:
            write(tmp_path / name, found)
        assert error.value.code == code
    assert (tmp_path / "good.csv").read_bytes() == as_csv(IDS, table())
