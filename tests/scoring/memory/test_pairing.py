"""Which label belongs to which embedding: every way to hold the same data is paired rightly or refused, never wrongly."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import scoring
from scoring.memory.pairing import Rows, pair, rows_of_index, texts

ROWS = 60
SHUFFLED = np.random.RandomState(3).permutation(ROWS)
ORDERS = {
    "all": np.arange(ROWS),
    "shuffled": SHUFFLED,
    "selected": SHUFFLED[:40],
    "first": np.arange(40),
    "nothing": np.arange(0),
}
IDS = np.array([f"p_{number:02}" for number in range(ROWS)])
INDEXES: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "none": lambda _: None,
    "default": lambda rows: pd.RangeIndex(len(rows)),
    "numbers": lambda rows: pd.Index(rows),
    "others": lambda rows: pd.Index(rows * 7 + 1000),
    "texts": lambda rows: pd.Index(IDS[rows]),
    "pairs": lambda rows: pd.MultiIndex.from_arrays([rows // 10, rows % 10]),
}
"""What stands next to rows that were chosen from a table: nothing (an array), or an index of pandas."""


def rows_of(index: str, order: str) -> Rows:
    """Return the rows of a side."""
    rows = ORDERS[order]
    made = INDEXES[index](rows)
    return Rows(count=len(rows)) if made is None else rows_of_index(made, "embeddings")


def test_no_form_of_the_same_data_is_paired_wrongly() -> None:
    """Rows are joined by ids on both sides; else by position, which is right if the caller has put them into one order."""
    for own, others in product(product(INDEXES, ORDERS), repeat=2):
        case = own, others
        embeddings, labels = ORDERS[own[1]], ORDERS[others[1]]
        kinds = [
            "default" if index == "numbers" and order in {"all", "first"} else index for index, order in case
        ]
        both_named = {"none", "default"}.isdisjoint(kinds)
        same_order = np.array_equal(embeddings, labels)
        try:
            found, _ = pair(rows_of(*own), rows_of(*others), "height")
        except ValueError:
            differ = (both_named and kinds[0] != kinds[1]) or set(kinds) == {"default", "numbers"}
            assert differ or not same_order, case
            continue
        if same_order or (both_named and kinds[0] == kinds[1]):
            chosen = found >= 0
            assert np.array_equal(embeddings[found[chosen]], labels[chosen]), case
            assert chosen.sum() == len(np.intersect1d(embeddings, labels)), case
        else:
            # Both were put into an order that only the caller knows, and no index says otherwise.
            assert (len(embeddings), both_named) == (len(labels), False), case
            assert np.array_equal(found, np.arange(len(labels))), case


def test_labels_that_lack_some_rows_of_a_table_are_joined_by_its_index() -> None:
    """So it is after ``dropna``; a selection in another order is refused, because the table might have it, too."""
    rest = rows_of_index(pd.Index([1, 3, 10]), "labels")
    assert pair(rows_of("default", "all"), rest, "height")[0].tolist() == [1, 3, 10]
    with pytest.raises(ValueError, match="There are 60 embeddings and 40 labels of height"):
        pair(rows_of("default", "all"), rows_of("numbers", "selected"), "height")


def test_an_index_of_the_same_numbers_in_another_order_is_refused() -> None:
    """A table with the index 0 to n - 1 could be in its own order, or in that of a shuffled series."""
    with pytest.raises(ValueError, match="paired by index or by position"):
        pair(rows_of("default", "all"), rows_of("numbers", "shuffled"), "height")
    with pytest.raises(ValueError, match="The labels of height have the index 0 to 59"):
        pair(rows_of("numbers", "shuffled"), rows_of("default", "all"), "height")
    with pytest.raises(ValueError, match="There are 60 embeddings and 40 labels of height"):
        pair(rows_of("default", "all"), rows_of("default", "first"), "height")


def test_levels_of_an_index_in_another_order_are_refused() -> None:
    """The id (2, 7) of scene and tile is not the id (2, 7) of tile and scene."""
    names = ["scene", "tile"]
    pairs = pd.MultiIndex.from_product([range(6), range(10)], names=names)
    swapped = pairs.reorder_levels(names[::-1])
    with pytest.raises(ValueError, match=r"labels\.reorder_levels\(\['scene', 'tile'\]\)"):
        pair(rows_of_index(pairs, "embeddings"), rows_of_index(swapped, "labels"), "height")
    for fitting in (pairs, pairs.set_names([None, None]), pairs.set_names(["y", "x"])):
        found, _ = pair(rows_of_index(pairs, "embeddings"), rows_of_index(fitting[::-1], "labels"), "height")
        assert found.tolist() == [*range(ROWS)][::-1]


def test_rows_that_are_paired_by_position_although_one_side_has_ids_are_noted() -> None:
    """Numbers of selected rows next to an array are no ids; texts could be, and numbers of all rows in another order."""
    assert pair(rows_of("none", "selected"), rows_of("numbers", "selected"), "height")[1] == ""
    _, note = pair(rows_of("none", "shuffled"), rows_of("texts", "shuffled"), "height")
    assert (
        note
        == "height: rows are paired by position, because only the labels of height have ids, not the embeddings."
    )
    assert pair(rows_of("none", "shuffled"), rows_of("numbers", "shuffled"), "height")[1] == note
    assert pair(rows_of("default", "selected"), rows_of("numbers", "selected"), "height")[1] == note


def test_numbers_that_are_named_as_ids_are_noted() -> None:
    """Unlike an index of numbers next to an array, nothing but an id is meant: the order may be another one."""
    matrix, numbers = np.random.RandomState(0).standard_normal((ROWS, 3)), np.arange(ROWS) * 7 + 1000
    labels = pd.Series(np.arange(ROWS) * 1.5, index=numbers, name="height")
    for given in (
        labels.to_dict(),
        labels.rename_axis("id").reset_index(),
        {"ids": numbers, "label": labels.to_numpy()},
    ):
        [note] = scoring.score(matrix, given, "ridge", folds=2).notes
        assert "rows are paired by position, because only the labels" in note
    assert scoring.score(matrix, labels, "ridge", folds=2).notes == ()
    groups = dict(zip(numbers, numbers // 21, strict=True))
    [note, _] = scoring.score(matrix, labels.to_numpy(), "ridge", folds=2, groups=groups).notes
    assert note.startswith("groups: rows are paired by position")


def test_ids_are_compared_as_text() -> None:
    """Numbers are whole, bytes are text, suffixes of files are left out; a missing or repeated id is refused."""
    assert texts([7, 7.0, np.float32(7), b"a", "a.zarr.zip", " a", "a\u00a0"], "embeddings") == (
        "7",
        "7",
        "7",
        "a",
        "a",
        "a",
        "a",
    )
    for rounded in (2.0**53, -1e300, np.float32(2**24)):
        with pytest.raises(ValueError, match="decimal numbers too large to be exact"):
            texts([1, rounded], "labels")
    with pytest.raises(ValueError, match="1 row without an id, first at position 1"):
        texts(["a", None], "embeddings")
    repeated = Rows(count=3, ids=("a", "b", "a"))
    with pytest.raises(ValueError, match="1 id more than once: a"):
        pair(repeated, Rows(count=2, ids=("a", "b")), "height")
    with pytest.raises(ValueError, match="1 id more than once: a"):
        pair(repeated, repeated, "height")
    with pytest.raises(ValueError, match="upper and lower case differ"):
        pair(Rows(count=2, ids=("a", "b")), Rows(count=2, ids=("A", "B")), "height")
    tensor = pytest.importorskip("torch").tensor(7)
    assert texts([tensor], "embeddings") == ("7",)
    records = [{"id": tensor + row, "vector": [row * 1.5, row**2]} for row in range(ROWS)]
    labels = pd.Series(np.arange(ROWS), np.arange(ROWS) + 7)
    left_out = scoring.score(records, labels[::-1], "ridge", folds=2, exclude=[tensor, tensor + 1, 9])
    assert left_out.to_frame()["samples"].tolist() == [ROWS - 3]


def test_a_cell_array_of_matlab_has_ids() -> None:
    """SciPy reads it as a row of arrays with one text each."""
    cells = np.empty((1, ROWS), dtype=object)
    cells[0] = [np.array([name]) for name in IDS]
    matrix = np.arange(2 * ROWS).reshape(ROWS, 2) ** 2
    labels = pd.Series(np.arange(ROWS), IDS)
    for given, truth in (
        ({"ids": cells, "embeddings": matrix}, labels[::-1]),
        (matrix, {"id": cells, "height": labels.to_numpy()}),
    ):
        assert scoring.score(given, truth, "ridge", folds=2).to_frame()["samples"].tolist() == [ROWS]


def test_ids_in_a_column_that_nobody_named_are_found() -> None:
    """As ``reset_index`` leaves them: rows would be paired by position, though both sides have ids."""
    matrix, labels = np.random.RandomState(0).standard_normal((ROWS, 3)), np.arange(ROWS) * 1.5
    table, series = pd.DataFrame(matrix, IDS).reset_index(), pd.Series(labels, IDS)
    for given, options in ((series[::-1], {}), (labels, {"groups": series // 9})):
        with pytest.raises(ValueError, match=r"are in their column 'index'.*Pass id_column='index'"):
            scoring.score(table, given, "ridge", folds=2, **options)
    vectors = pd.DataFrame({"file": IDS[::-1], "embedding": [*matrix[::-1]]})
    with pytest.raises(ValueError, match=r"are in their column 'file'.*Pass id_column='file'"):
        scoring.score(vectors, series, "ridge", folds=2)
    with pytest.raises(ValueError, match=r"have no column id, but 'image_id'.*id_column='image_id'"):
        scoring.score({"image_id": IDS, "embeddings": matrix}, series, "ridge", folds=2)
    with pytest.warns(UserWarning, match="1 extra column was ignored"):
        assert scoring.score(table, labels, "ridge", folds=2).report.notes == ()
    with pytest.warns(UserWarning, match='1 extra column was ignored: "id"'):
        scoring.score(table.assign(id=1), series[::-1], "ridge", folds=2, id_column="index")
    named = scoring.score(table, series[::-1], "ridge", folds=2, id_column="index")
    assert named.q == scoring.score(table.set_index("index"), series[::-1], "ridge", folds=2).q


def test_numbers_may_be_ids_in_a_column_that_nobody_named() -> None:
    """Of the embeddings or the labels, if all are there; a few may be values that are equal by chance."""
    matrix, numbers = np.random.RandomState(0).standard_normal((ROWS, 3)), np.arange(ROWS) + 7
    labels = pd.DataFrame({"tile": SHUFFLED + 7, "height": SHUFFLED * 1.5})
    for own in (pd.DataFrame(matrix, numbers), pd.DataFrame({"id": numbers, "vector": [*matrix]})):
        for given in (labels, labels.to_dict("list")):
            with pytest.raises(ValueError, match="ids of the embeddings are in their column 'tile'"):
                scoring.score(own, given, "ridge", folds=2)
        few = scoring.score(own, labels.assign(tile=labels["tile"] // 2), "ridge", folds=2)
        assert [*few.to_frame().index] == ["height", "tile"]
    own = pd.DataFrame({"tile": numbers, "vector": [*matrix]})
    counted = [table.assign(id=range(100, 100 + ROWS)) for table in (own, labels)]
    for pair_of_tables in ([own, labels], counted):
        with pytest.raises(ValueError, match="same values in their columns 'tile', but not in the rows"):
            scoring.score(*pair_of_tables, "ridge", folds=2)
        joined = scoring.score(own, pair_of_tables[1], "ridge", folds=2, id_column="tile")
        assert [*joined.to_frame().index] == ["height"]
    named = [table.set_index(table["tile"].to_numpy() + 100) for table in (own, labels)]
    with pytest.warns(UserWarning, match="1 extra column was ignored"):
        assert len(scoring.score(*named, "ridge", folds=2).to_frame()) == 2


def test_an_index_that_contradicts_the_column_id_is_refused() -> None:
    """Of numbers, it is what is left of another order."""
    table = pd.DataFrame(np.random.RandomState(0).standard_normal((ROWS, 3)), IDS)
    with pytest.raises(ValueError, match="index of the embeddings has the same ids as the column id"):
        scoring.score(table.assign(id=IDS[::-1]), pd.Series(np.arange(ROWS), IDS), "ridge", folds=2)
    with pytest.raises(ValueError, match=r"drop\(columns='tile'\)"):
        scoring.score(table.assign(tile=IDS[::-1]), np.arange(ROWS), "ridge", folds=2, id_column="tile")
    labels = pd.Series(np.arange(ROWS), IDS)
    for given, truth in (
        ({"ids": IDS[::-1], "embeddings": table}, labels),
        ({"id": IDS[::-1], **table}, labels),
        (table, {"id": IDS[::-1], "height": labels}),
        (table, {"ids": IDS[::-1], "label": labels.to_dict()}),
    ):
        with pytest.raises(ValueError, match=r"has the same ids as the column ids?, in another order"):
            scoring.score(given, truth, "ridge", folds=2)
    numbers = table.set_axis(SHUFFLED, axis=0).assign(id=np.arange(ROWS))
    assert scoring.score(numbers, pd.Series(np.arange(ROWS) * 1.5), "ridge", folds=2).report.tasks


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray[Any, Any], pd.Series[float]]:
    """Return embeddings and labels that depend on them linearly."""
    random = np.random.RandomState(0)
    matrix = random.standard_normal((ROWS, 6))
    return matrix, pd.Series(matrix @ random.standard_normal(6), name="height")


FORMS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "arrays": lambda x, y: (x, y.to_numpy()),
    "array and shuffled series": lambda x, y: (x[SHUFFLED], y.iloc[SHUFFLED]),
    "array and selected series": lambda x, y: (x[SHUFFLED[:40]], y.iloc[SHUFFLED[:40]]),
    "array and selected table": lambda x, y: (x[SHUFFLED[:40]], y.iloc[SHUFFLED[:40]].to_frame()),
    "new table and selected series": lambda x, y: (pd.DataFrame(x[SHUFFLED[:40]]), y.iloc[SHUFFLED[:40]]),
    "table and labels without some": lambda x, y: (pd.DataFrame(x), y.drop(index=SHUFFLED[:10])),
    "shuffled table and array": lambda x, y: (pd.DataFrame(x).iloc[SHUFFLED], y.to_numpy()[SHUFFLED]),
    "index": lambda x, y: (pd.DataFrame(x, IDS), y.set_axis(IDS).iloc[SHUFFLED]),
    "column": lambda x, y: (pd.DataFrame(x).assign(id=IDS), y.set_axis(IDS).iloc[SHUFFLED]),
    "another column": lambda x, y: (pd.DataFrame(x).assign(image=IDS), y.set_axis(IDS).iloc[SHUFFLED]),
    "dictionaries": lambda x, y: (
        dict(zip(IDS, x, strict=True)),
        {"height": y.set_axis(IDS).iloc[SHUFFLED].to_dict()},
    ),
    "ids and labels": lambda x, y: (
        {"ids": IDS, "embeddings": x},
        dict(zip(IDS[SHUFFLED], y.iloc[SHUFFLED], strict=True)),
    ),
    "ids, embeddings and more": lambda x, y: (
        {"ids": IDS[:, None], "embeddings": x, "model": "ours", "patch": x[:3]},
        y.set_axis(IDS).iloc[SHUFFLED],
    ),
    "ids, and embeddings with ids": lambda x, y: (
        {"ids": IDS, "embeddings": dict(zip(IDS, x, strict=True))},
        y.set_axis(IDS).iloc[SHUFFLED],
    ),
    "ids that are called like a column": lambda x, y: (
        dict(zip(["ID", *IDS[1:]], x, strict=True)),
        y.set_axis(["ID", *IDS[1:]]).iloc[SHUFFLED],
    ),
    "another column of a dictionary": lambda x, y: (
        {"id": np.arange(ROWS), "image": IDS, "embedding": x},
        y.set_axis(IDS).iloc[SHUFFLED],
    ),
    "ids and other names": lambda x, y: ({"x": x, "ids": IDS}, y.set_axis(IDS).iloc[SHUFFLED]),
    "columns": lambda x, y: (
        {"id": IDS, **{str(number): x[:, number] for number in range(6)}},
        {"ids": IDS[SHUFFLED], "labels": y.to_numpy()[SHUFFLED]},
    ),
    "records": lambda x, y: (
        [{"id": identifier, "embedding": row} for identifier, row in zip(IDS, x, strict=True)],
        pd.DataFrame({"id": IDS, "height": y}).iloc[SHUFFLED],
    ),
}


@pytest.mark.filterwarnings("ignore:.*extra column")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_linear_labels_is_learned(form: str, data: tuple[Any, Any]) -> None:
    """A ridge probe finds labels that are linear, unless they are paired wrongly."""
    embeddings, labels = FORMS[form](*data)
    column = "image" if form.startswith("another column") else None
    frame = scoring.score(embeddings, labels, "ridge", folds=2, progress=False, id_column=column).to_frame()
    assert frame["score"].min() > 0.95
