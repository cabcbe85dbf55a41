"""The argument ``groups``: no split parts a group, in whatever form groups come, and what could be meant in two ways is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import scoring

ROWS = 120
RANDOM = np.random.RandomState(0)
MATRIX = RANDOM.standard_normal((ROWS, 4))
TILES = np.array([f"tile {number}" for number in RANDOM.randint(0, 30, ROWS)])
LABELS = MATRIX[:, 0] + RANDOM.standard_normal(30)[RANDOM.randint(0, 30, ROWS)]
IDS = pd.Index([f"p_{number:03}" for number in range(ROWS)], name="id")
TABLE = pd.DataFrame(MATRIX, index=IDS)
SERIES = pd.Series(LABELS, index=IDS, name="height")
NUMBERED = pd.DataFrame(MATRIX)
NUMBERED_LABELS = pd.Series(LABELS, name="height")
MIXED = RANDOM.permutation(ROWS)


def ridge(embeddings: Any, labels: Any, groups: Any = None) -> Any:
    """Score with few folds."""
    return scoring.score(embeddings, labels, "ridge", folds=6, groups=groups, progress=False)


EXPECTED = ridge(MATRIX, LABELS, TILES)
FORMS: dict[str, Callable[[], Any]] = {
    "array": lambda: ridge(MATRIX, LABELS, TILES),
    "list": lambda: ridge(MATRIX, LABELS, TILES.tolist()),
    "column": lambda: ridge(MATRIX, LABELS, TILES[:, None]),
    "series next to an array": lambda: ridge(MATRIX, LABELS, pd.Series(TILES, index=MIXED)),
    "series in another order": lambda: ridge(TABLE, SERIES, pd.Series(TILES, index=IDS).iloc[MIXED]),
    "dictionary": lambda: ridge(TABLE, SERIES, dict(zip(IDS[::-1], TILES[::-1], strict=True))),
    "array next to tables": lambda: ridge(TABLE, SERIES, TILES),
    "column of mixed labels": lambda: ridge(TABLE, SERIES.to_frame().assign(tile=TILES).iloc[MIXED], "tile"),
    "column of embeddings, mixed labels": lambda: ridge(TABLE.assign(tile=TILES), SERIES.iloc[MIXED], "tile"),
    "column of a dictionary of mixed labels": lambda: ridge(
        TABLE, {"id": [*IDS[MIXED]], "height": LABELS[MIXED], "tile": TILES[MIXED]}, "tile"
    ),
    "column of mixed labels, other entries": lambda: ridge(
        {"id": IDS, "embedding": MATRIX, "model": "ours"},
        SERIES.to_frame().assign(tile=TILES).iloc[MIXED],
        "tile",
    ),
    "column next to ids": lambda: ridge(TABLE.assign(tile=TILES).reset_index(), SERIES, "tile"),
    "series next to mixed labels and an array": lambda: ridge(
        MATRIX[MIXED], NUMBERED_LABELS.iloc[MIXED], pd.Series(TILES)[MIXED]
    ),
    "mixed series next to mixed labels and an array": lambda: ridge(
        MATRIX[MIXED], NUMBERED_LABELS.iloc[MIXED], pd.Series(TILES)[MIXED[::-1]]
    ),
    "dictionaries next to a mixed array": lambda: ridge(
        MATRIX[MIXED], SERIES.iloc[MIXED].to_dict(), dict(zip(IDS, TILES, strict=True))
    ),
    "column of mixed labels next to an array": lambda: ridge(
        MATRIX[MIXED], NUMBERED_LABELS.to_frame().assign(tile=TILES).iloc[MIXED], "tile"
    ),
    "with spaces": lambda: ridge(MATRIX, LABELS, [f" {tile} " for tile in TILES]),
}


@pytest.mark.filterwarnings("ignore:1 extra column was ignored")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_groups_gives_the_same_test_parts(form: str) -> None:
    """By position next to arrays, by id between tables; a column of groups is neither a task nor a dimension."""
    result = FORMS[form]()
    [task] = result.report.tasks
    assert task.data.rows.shape == (ROWS, 4)
    tiles = TILES[MIXED] if "mixed" in form else TILES  # rows are in the order of the labels
    tested = [set(tiles[fold.test]) for fold in task.folds]
    assert tested == [set(TILES[fold.test]) for fold in EXPECTED.report.tasks[0].folds]
    for fold in task.folds:
        assert set(tiles[fold.train]).isdisjoint(tiles[fold.test])
    assert f"each of {len({*TILES})} groups is in one part of a split, whole" in " ".join(result.notes)


def test_groups_that_are_paired_by_position_although_one_side_has_ids_are_noted() -> None:
    """As labels are; an array next to arrays needs no note."""
    assert not any(note.startswith("groups: ") for note in EXPECTED.notes)
    assert "only the samples have ids, not the groups." in FORMS["array next to tables"]().notes[0]
    assert "only the groups have ids, not the samples." in FORMS["series next to an array"]().notes[0]


def test_numbers_of_groups_are_the_same_in_every_type() -> None:
    """Integers, floats and text of the same numbers are the same groups."""
    numbers = np.arange(ROWS) % 25
    forms = numbers, numbers.astype(float), numbers.astype(str)
    assert len({ridge(MATRIX, LABELS, form).q for form in forms}) == 1


def test_label_files_have_groups_in_a_column(tmp_path: Any) -> None:
    """The scores are those of the same data in memory."""
    lines = [
        f"{name},{label!r},{tile}" for name, label, tile in zip(IDS, LABELS.tolist(), TILES, strict=True)
    ]
    (tmp_path / "height__regr.csv").write_text("\n".join(["id,label,group", *lines]))
    assert ridge(TABLE, tmp_path).q == pytest.approx(ridge(TABLE, SERIES, TILES).q, abs=1e-4)


def test_few_groups_are_told_and_equal_folds_count_once() -> None:
    """The warning says how many test parts there are; without 5 of them there is no interval."""
    with pytest.warns(UserWarning, match="only 5 groups, so 30 folds have 5 different test parts"):
        result = scoring.score(MATRIX, LABELS, "ridge", folds=30, groups=np.arange(ROWS) % 5, progress=False)
    frame = result.to_frame()
    distinct = {fold.test.tobytes(): fold.score for fold in result.report.tasks[0].folds}
    values = np.array([*distinct.values()])
    assert len(values) == 5
    half = 2.776445 * values.std(ddof=1) / 5**0.5  # Student's t with 4 degrees of freedom
    assert frame.loc["label", "high"] == pytest.approx(values.mean() + half, rel=5e-3)
    parts = result.to_dict()["tasks"]["label"]["test_parts"]
    assert (
        len({*zip(parts, (fold.test.tobytes() for fold in result.report.tasks[0].folds), strict=True)}) == 5
    )
    assert "test_parts" not in EXPECTED.to_dict()["tasks"]["label"]  # of many groups


def test_groups_that_are_too_large_to_be_tested_on_are_told() -> None:
    """Scores are then those of the small groups; if all of these are always tested together, they hardly differ, and Q is high."""
    tiles = [*np.repeat(range(4), (ROWS - 20) // 4), *range(4, 24)]
    with pytest.warns(
        UserWarning, match=r"83% of the samples are never tested on, because their groups \(4\)"
    ):
        ridge(MATRIX, LABELS, tiles)


GROUPED = {"id": [*IDS], "height": LABELS, "group": TILES}


@pytest.mark.parametrize(
    "labels",
    [
        GROUPED,
        pa.table(GROUPED),
        pd.DataFrame(GROUPED).to_dict("records"),
        {"height": LABELS, "group": TILES},
    ],
    ids=["ids", "arrow", "records", "tasks"],
)
def test_a_column_of_groups_is_no_task_in_any_table(labels: Any) -> None:
    """What the hint says can be done: groups of a table have the name of its column, those of a dictionary are taken out of it."""
    with pytest.raises(
        ValueError, match=r"have a column 'group'.*Pass groups='group', .*labels\.pop\('group'\)"
    ):
        ridge(TABLE, labels)
    is_table = not isinstance(labels, dict) or "id" in labels
    groups = "group" if is_table else labels.pop("group")
    assert f"{len({*TILES})} groups" in " ".join(ridge(TABLE, labels, groups).notes)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ridge(MATRIX, LABELS, TILES[:-1]), ValueError, "119 groups without ids, but other numbers of rows: 120"),
        (lambda: ridge(MATRIX, LABELS, "tile"), ValueError, "no table with a column 'tile'"),
        (lambda: ridge(MATRIX, LABELS, 3), TypeError, "The groups are"),
        (lambda: ridge(MATRIX, LABELS, np.zeros((ROWS, 2))), TypeError, "not one value for each sample"),
        (lambda: ridge(MATRIX, LABELS, np.arange(ROWS) % 4), ValueError, "4 groups, but at least 5"),
        (lambda: ridge(MATRIX, LABELS, [None, *TILES[1:]]), ValueError, "1 sample has no group: 0"),
        (lambda: ridge(TABLE, SERIES, pd.Series(TILES, index=IDS)[1:]), ValueError, "1 sample has no group: p_000"),
        (lambda: ridge(TABLE, SERIES.iloc[MIXED], TILES), ValueError, "rows in different orders"),
        (lambda: ridge(TABLE.assign(t=TILES), SERIES.to_frame().assign(t=TILES), "t"), ValueError, "Both tables have"),
        (lambda: ridge(TABLE, SERIES.to_frame().assign(Group=TILES)), ValueError, "Pass groups='Group'"),
        (lambda: ridge(TABLE, SERIES, pd.Series(TILES, index=[IDS[0], *IDS[:-1]])), ValueError, "an id more than once"),
        (lambda: ridge(NUMBERED.iloc[MIXED], LABELS, pd.Series(TILES)), ValueError, "The groups have the index 0 to 119"),
        (lambda: ridge(NUMBERED, LABELS, pd.Series(TILES).iloc[MIXED]), ValueError, "The samples have the index 0 to 119"),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_refused(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    """Nothing is guessed, and the message says what helps."""
    with pytest.raises(error) as raised:
        call()
    assert words in str(raised.value)
