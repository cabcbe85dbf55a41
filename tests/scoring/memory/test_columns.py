"""A column of a table that is not a dimension is refused by its name, and a lopsided scale is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import scoring

ROWS = 50
RANDOM = np.random.RandomState(0)
MATRIX = RANDOM.standard_normal((ROWS, 4))
LABELS = MATRIX @ RANDOM.standard_normal(4)
FRAME = pd.DataFrame(MATRIX).add_prefix("emb_")
NAMES = (
    *(
        "label",
        "Unnamed: 0",
        "index",
        "level_0",
        "rownames",
        "cloud_cover",
        "cloudCover",
        "epsg",
        "epsg_code",
        ".geo",
    ),
    *(
        "__index_level_0__",
        "...1",
        "row",
        "CLOUDY_PIXEL_PERCENTAGE",
        "sun_elevation",
        "centre_easting",
        "doy",
    ),
    *("fid", "ogc_fid", "OBJECTID", "gid", "WKT", "the_geom", "Shape_Area", "Shape_Length"),
    *("grid_cell", "grid_row_u", "grid_col_r", "cloudcover", "dayofyear"),
    *("system:index", "year", "years", "acquisition_date", "center_lat", "utm_zone", "split", "bbox", ""),
)
"""As in tables of pandas, R, GDAL, ArcGIS, PostGIS, Earth Engine and Major TOM."""


def ridge(embeddings: Any, labels: Any = LABELS, **options: Any) -> Any:
    """Score with few folds, quietly."""
    return scoring.score(embeddings, labels, "ridge", folds=2, progress=False, **options)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stored", [False, True])
def test_a_name_that_says_something_about_samples_is_refused(name: str, stored: bool, tmp_path: Path) -> None:
    """In memory and in files; next to columns named by numbers, such a column is ignored."""
    given: Any = FRAME.assign(**{name: np.random.RandomState(1).standard_normal(ROWS)})
    labels = pd.Series(LABELS)
    numbered = pd.DataFrame(MATRIX).assign(**{name: LABELS})
    with pytest.warns(UserWarning, match="1 extra column was ignored"):
        assert ridge(numbered).report.embedding_dim == 4
    if stored:
        given.insert(0, "id", [f"p{number}" for number in range(ROWS)])
        labels.index = pd.Index(given["id"])
        given.to_csv(tmp_path / "e.csv", index=False)
        given = tmp_path / "e.csv"
    called = f'is called "{name}"' if name else "has no name"
    with pytest.raises(ValueError, match=f"{called}.*describe the samples"):
        ridge(given, labels)


@pytest.mark.parametrize(
    "numbers", [range(ROWS), range(1, ROWS + 1), RANDOM.permutation(ROWS), range(100, 100 + ROWS)]
)
def test_a_column_that_counts_the_rows_is_refused(numbers: Any, tmp_path: Path) -> None:
    """It is an index that became a column, also in an array; sorting does not hide it."""
    counted = np.column_stack([numbers, MATRIX])
    for given in (FRAME.assign(a=numbers), counted, pd.DataFrame(counted)):
        with pytest.raises(ValueError, match="only counts the rows"):
            ridge(given)
    ids = [f"p{number}" for number in range(ROWS)]
    FRAME.assign(a=numbers, id=ids).to_csv(tmp_path / "e.csv", index=False)
    with pytest.raises(ValueError, match='column "a" of the embeddings only counts the rows'):
        ridge(tmp_path / "e.csv", pd.Series(LABELS, index=ids))
    for labels in (
        {"a": [*range(ROWS)], "height": LABELS},
        pd.DataFrame({"a": range(ROWS), "height": LABELS}),
    ):
        with pytest.raises(ValueError, match="'a' of the labels only counts the rows"):
            ridge(MATRIX, labels)


@pytest.mark.parametrize("constant", [1e30, -3.4028235e38, 2.0**60])
def test_a_large_constant_counts_nothing(constant: float) -> None:
    """Such as the value of missing data, from which the number of a row takes nothing away."""
    given = np.column_stack([MATRIX, np.full(ROWS, constant)])
    with pytest.warns(UserWarning, match="means that are much farther apart"):
        assert ridge(given).report.embedding_dim == 5


def test_a_table_of_many_columns_has_the_scores_of_its_values() -> None:
    """Also with columns that are no dimensions, and with an index whose values repeat; the time grows with the number of columns."""
    wide = np.random.RandomState(1).standard_normal((ROWS, 5000))
    table = pd.DataFrame(wide, index=np.arange(ROWS) // 2).assign(place="here")
    with pytest.warns(UserWarning, match='1 extra column was ignored: "place"'):
        assert ridge(table).q == ridge(wide).q


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_labels_inside_the_embeddings_are_refused() -> None:
    """By value, in any coding of classes, or by name; in an array, which has no names, a note tells it."""
    with pytest.raises(ValueError, match='column "a" of the embeddings has the labels of the task height'):
        ridge(FRAME.assign(a=LABELS), {"height": LABELS})
    with pytest.raises(ValueError, match='column "Height" of the embeddings'):
        ridge(FRAME.assign(Height=LABELS * 2), {"height": LABELS})
    classes = np.random.RandomState(1).permutation(ROWS) % 3
    with pytest.raises(ValueError, match='column "a" of the embeddings has the labels of the task land'):
        ridge(FRAME.assign(a=classes), {"land__multiclass": classes})
    names = np.array(["forest", "water", "city"])[classes]
    several = np.random.RandomState(2).permutation(ROWS)[:, None] % [2, 3, 5] == 0
    for column, task in (
        (7 - 2 * classes, {"land": names}),
        (LABELS <= 0, {"land": LABELS > 0}),
        (several[:, 1], {"land": several}),
    ):
        with pytest.raises(ValueError, match='column "a" of the embeddings has the labels of the task land'):
            ridge(FRAME.assign(a=column), task)
    once = FRAME.assign(a=np.arange(ROWS) == 7)
    assert ridge(once, {"height": LABELS, "rare": np.arange(ROWS) == 7}).report.embedding_dim == 5
    result = ridge(np.column_stack([MATRIX, LABELS]))
    assert result.notes == ("The column 4 of the embeddings has the labels of the task label.",)
    assert "Note: The column 4" in repr(result)


@pytest.mark.parametrize("name", ["embeddings", "vector"])
def test_a_column_of_embeddings_is_chosen_as_in_a_file(name: str, tmp_path: Path) -> None:
    """By its name; lists that say where a sample is are none, and what is ignored is told."""
    ids = [f"p{number}" for number in range(ROWS)]
    others = {"bbox" if name == "vector" else "patches": [*MATRIX[:, :2]], "emb_0": LABELS}
    table = pd.DataFrame({"id": ids, name: [*MATRIX], **others})
    table.to_parquet(tmp_path / "e.parquet")
    for given in (table, tmp_path / "e.parquet"):
        with pytest.warns(UserWarning, match="2 extra columns were ignored") as told:
            assert ridge(given, pd.Series(LABELS, index=ids)).report.embedding_dim == 4
        assert str(told[0].message).endswith('"; "emb_0".')
    with pytest.raises(TypeError, match=r"'bbox' \(vectors\)"):
        ridge(pd.DataFrame({"id": ids, "bbox": [*MATRIX], "emb_0": LABELS}))
    whole = {"ids": ids, "embeddings": MATRIX, "model": "ours"}
    with pytest.warns(UserWarning, match='1 extra column was ignored: "model"'):
        assert ridge(whole, pd.Series(LABELS, index=ids)).report.embedding_dim == 4


def test_ids_alone_are_no_embeddings(tmp_path: Path) -> None:
    """The message counts no other names."""
    ids = [f"p{number}" for number in range(ROWS)]
    table = pd.DataFrame({"id": ids})
    table.to_csv(tmp_path / "e.csv", index=False)
    for given in (table, tmp_path / "e.csv", table.set_index("id")):
        with pytest.raises(ValueError, match="; 0 have other names"):
            ridge(given, pd.Series(LABELS, index=ids))


@pytest.mark.parametrize("name", ["size", "level_1"])
def test_columns_without_numbers_are_listed(name: str) -> None:
    """A series such as emb_0 to emb_3 is not."""
    assert ridge(FRAME).notes == ()
    result = ridge(FRAME.assign(**{name: np.random.RandomState(1).standard_normal(ROWS)}))
    assert result.notes == (f'No column has a number as its name, so all are dimensions, also "{name}".',)


def test_numbers_that_are_no_dimensions_are_listed() -> None:
    """Such as a year; numbers from 0 or from 1 are not, in any order."""
    numbered = pd.DataFrame(MATRIX)
    assert ridge(numbered[[2, 0, 3, 1]]).notes == ridge(numbered.add_prefix("00")).notes == ()
    result = ridge(numbered.assign(**{"2018": np.random.RandomState(1).standard_normal(ROWS)}))
    assert result.notes == ('The columns are not numbered 0 to 4, so all are dimensions, also "2018".',)


def test_a_column_that_could_have_the_ids_is_asked_about(tmp_path: Path) -> None:
    """It is used if its name is given, also in files."""
    ids = [f"p{number}" for number in range(ROWS)]
    for name in ("ID", "image_id", "tileId"):
        with pytest.raises(ValueError, match=f"id_column='{name}'"):
            ridge(FRAME.assign(**{name: ids}))
    shuffled = pd.Series(LABELS, index=ids)[::-1]
    assert ridge(FRAME.assign(image_id=ids), shuffled, id_column="image_id").to_frame()["score"].min() > 0.9
    with pytest.raises(ValueError, match="have no column 'image', but 'emb_0', 'emb_1', 'emb_2' and 2 more"):
        ridge(FRAME.assign(image_id=ids), shuffled, id_column="image")
    FRAME.assign(image_id=ids).to_csv(tmp_path / "e.csv", index=False)
    FRAME.assign(image_id=ids).to_parquet(tmp_path / "e.parquet")
    vectors = pd.DataFrame({"image_id": ids, "embedding": [*MATRIX]})
    vectors.to_parquet(tmp_path / "vectors.parquet")
    shuffled.rename("label").rename_axis("image_id").to_csv(tmp_path / "height__regr.csv")
    for name in ("e.csv", "e.parquet", "vectors.parquet"):
        for labels in (shuffled, tmp_path / "height__regr.csv"):
            result = ridge(tmp_path / name, labels, id_column="image_id")
            assert (result.report.embedding_dim, result.to_frame()["score"].min() > 0.9) == (4, True)


def test_a_column_of_ids_in_a_dictionary_is_no_task() -> None:
    """Rows would be paired by position, without a note if ids are numbers; other columns of that name have a type."""
    ids = np.arange(100, 100 + ROWS)
    given, shuffled = pd.DataFrame(MATRIX, index=ids), np.random.RandomState(1).permutation(ROWS)
    for name in ("ids", "ID", "tile_id"):
        labels = {name: ids[shuffled], "height": LABELS[shuffled]}
        with pytest.raises(
            ValueError, match=f"no column id, but '{name}'.*a task, call it {name}__multiclass"
        ):
            ridge(given, labels)
        assert ridge(given, labels, id_column=name).to_frame()["score"].min() > 0.9
    assert ridge(MATRIX, {"tile_id__multiclass": ids % 3, "height": LABELS}).report.tasks
    assert ridge(given, {"tile_id": pd.Series(ids % 3.5, ids), "height": pd.Series(LABELS, ids)}).report.tasks


def test_a_column_of_a_dictionary_may_have_several_labels() -> None:
    """As a column of a table, whose lists have different lengths, too."""
    labels = {
        "id": [*range(100, 100 + ROWS)],
        "land": [["a", "b"] if label > 0 else ["b"] for label in LABELS],
    }
    given = pd.DataFrame(MATRIX, index=labels["id"])
    assert ridge(given, labels).q == ridge(given, pd.DataFrame(labels)).q


@pytest.mark.parametrize("column", [LABELS[1:], "height", np.array(1.5), 2 * [*LABELS]])
def test_columns_of_a_dictionary_have_one_value_for_each_id(column: Any) -> None:
    """Pandas has an error of its own, which names no column."""
    ids = [f"p{number}" for number in range(ROWS)]
    given = {"id": ids, "a": LABELS, "b": column}
    for embeddings, labels in (
        (pd.DataFrame(MATRIX, index=ids), given),
        (given, pd.Series(LABELS, index=ids)),
    ):
        with pytest.raises(
            ValueError, match=r"The column 'b' of the .* does not have 50 values, one for each id"
        ):
            ridge(embeddings, labels)


def test_few_columns_with_nearly_all_the_variance_are_told() -> None:
    """One mean and one standard deviation scale all values, so the other columns hardly count."""
    scale = np.array([1, 1e6, 1, 1])
    with pytest.warns(UserWarning, match="1 column of 4 holds 99.*: column 1.*Standardize each column"):
        ridge(MATRIX * scale)
    with pytest.warns(UserWarning, match='column "emb_1"'):
        ridge(FRAME * scale)
    with pytest.warns(UserWarning, match="2 columns of 4 hold 99.*: column 2, column 1"):
        ridge(MATRIX * [1, 1e6, 2e6, 1])
    for shift in (np.array([1e4, 0, 0, 0]), np.arange(4) * 100):
        with pytest.warns(UserWarning, match="The columns have means that are much farther apart"):
            ridge(MATRIX + shift)
    assert ridge(MATRIX + 100).report.warnings == ()
    assert ridge(MATRIX * scale, standardize_embeddings=False).report.warnings == ()
    assert ridge(MATRIX * np.array([1, 3, 1, 1])).report.warnings == ()


def test_labels_that_hardly_vary_in_a_test_part_are_told() -> None:
    """R2 has a tolerance, so one wrong label in the scale of the others, or none that is scaled, makes a score of 1 or 0."""
    assert ridge(MATRIX).report.warnings == ()
    for labels, options in (
        (np.where(np.arange(ROWS) == 7, -9999, LABELS), {}),
        (LABELS / 1e4, {"normalize_labels": False}),
        (LABELS + 1e9, {"normalize_labels": False}),
    ):
        with pytest.warns(UserWarning, match=r"in [12] of 2 folds, the labels of the test part are equal"):
            ridge(MATRIX, labels, **options)


@pytest.mark.parametrize("labels", [[{"a", "b"}] * ROWS, np.ones((ROWS, 2)), [True] * ROWS, [1.5] * ROWS])
def test_labels_that_are_all_the_same_are_refused(labels: Any) -> None:
    """Every probe would find them: several labels had a score of 1."""
    with pytest.raises(ValueError, match="All 50 labels of the task label are"):
        ridge(MATRIX, labels)


def test_what_helps_a_rare_class_is_said() -> None:
    """A ridge probe predicts numbers, so it is not the way out of too few epochs there; more epochs are."""
    random = np.random.RandomState(0)
    matrix = random.standard_normal((600, 4))
    values = matrix @ random.standard_normal(4)
    rare = {"rare": values > np.quantile(values, 0.93)}
    with pytest.warns(UserWarning, match=r"which are 42 of 600\. .* use the probe linear with more epochs"):
        assert ridge(matrix, rare).to_frame().loc["rare", "score"] < 0.1
    with pytest.warns(UserWarning, match=r"Set epochs to \d+ or more\.") as caught:
        short = scoring.score(matrix, rare, folds=2, progress=False)
    assert "ridge" not in str(caught[0].message)
    longer = scoring.score(matrix, rare, folds=2, epochs=200, progress=False)
    assert longer.to_frame().loc["rare", "score"] > 0.5 > short.to_frame().loc["rare", "score"]
