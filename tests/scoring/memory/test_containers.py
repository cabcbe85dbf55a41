"""What a caller has in memory is read with its names and ids, whatever library made it, or refused in one sentence."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from scipy import sparse

import scoring
from scoring.probes import PROBES

ROWS, DIM = 40, 6
RANDOM = np.random.RandomState(0)
MATRIX = RANDOM.standard_normal((ROWS, DIM))
LABELS = MATRIX @ RANDOM.standard_normal(DIM)
IDS = [f"p_{number:02}" for number in range(ROWS)]
SERIES = pd.Series(LABELS, index=IDS)[::-1]
TABLE = pyarrow.table({"id": IDS, **{f"e{number}": MATRIX[:, number] for number in range(DIM)}})


class WithPandas:
    """A table with the method of polars, xarray, cuDF and others."""

    def to_pandas(self) -> pd.DataFrame:
        """Return it as a data frame."""
        return TABLE.to_pandas()


class WithStream:
    """A table with Arrow's protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the stream."""
        return TABLE.__arrow_c_stream__(requested_schema)


class WithInterchange:
    """A table with the older protocol of data frames."""

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        """Return the protocol's object."""
        return TABLE.__dataframe__(nan_as_null, allow_copy)


class Unhelpful:
    """A table whose library is incomplete."""

    def to_pandas(self) -> pd.DataFrame:
        """Fail as polars does without pyarrow."""
        raise ModuleNotFoundError("pyarrow")


class Dataset(Unhelpful):
    """A table of several axes, as of xarray, which could also be lazy."""

    compute = Unhelpful.to_pandas


class Device:
    """A tensor whose values cannot be copied, as of torch's device ``meta``."""

    def detach(self) -> Device:
        """Return itself."""
        return self

    def cpu(self) -> Device:
        """Fail as torch does."""
        raise NotImplementedError("no data")

    numpy = cpu


class Lazy:
    """A table that is not computed yet."""

    def collect(self) -> WithPandas:
        """Compute it."""
        return WithPandas()


def structured(masked: bool = False) -> Any:
    """Return a structured array with ids and vectors."""
    array = np.zeros(ROWS, [("id", "U4"), ("embedding", "f4", (DIM,))])
    array["id"], array["embedding"] = IDS, MATRIX
    return np.ma.array(array) if masked else array


def torch_tensor(values: Any) -> Any:
    """Return a tensor that is part of a graph, in a type that numpy does not have."""
    return pytest.importorskip("torch").tensor(values, requires_grad=True).bfloat16()


def xarray_of_samples(**coordinates: Any) -> Any:
    """Return a labeled array whose first axis has no index."""
    coords = {name: ("sample", values) for name, values in coordinates.items()}
    return pytest.importorskip("xarray").DataArray(MATRIX, dims=("sample", "dim"), coords=coords)


class WithIndex:
    """A series with an index of its library, such as dask's, that is else an array."""

    index = pd.Index(IDS)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Lose the index."""
        return np.asarray(LABELS, dtype)

    def compute(self) -> pd.Series[float]:
        """Keep it."""
        return SERIES


def xarray_table(values: Any) -> Any:
    """Return a labeled array."""
    return pytest.importorskip("xarray").DataArray(values, dims=("id", "dim"), coords={"id": IDS})


WITH_IDS: dict[str, Callable[[], Any]] = {
    "to_pandas": WithPandas,
    "arrow stream": WithStream,
    "interchange": WithInterchange,
    "pyarrow": lambda: TABLE,
    "polars": lambda: pytest.importorskip("polars").from_arrow(TABLE),
    "xarray": lambda: xarray_table(MATRIX),
    "xarray with ids beside the axis": lambda: xarray_of_samples(id=IDS).swap_dims({"sample": "id"}),
    "records": lambda: TABLE.to_pylist(),
    "structured": structured,
    "masked and structured": lambda: structured(masked=True),
    "lists of arrow": lambda: pyarrow.table({"id": IDS, "embedding": MATRIX.tolist()}),
    "lists of arrow in pandas": lambda: pyarrow.table({"id": IDS, "embedding": MATRIX.tolist()}).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "vectors next to a column without a name": lambda: pd.DataFrame(
        {"id": IDS, "embedding": [*MATRIX], 0: 1.5}
    ),
    "vectors without a name": lambda: pd.Series([*MATRIX], index=IDS).to_frame(),
    "a series of vectors": lambda: pd.Series([*MATRIX], index=IDS),
    "texts of any length": lambda: {"ids": np.array(IDS, np.dtypes.StringDType()), "embeddings": MATRIX},
    "a column of tensors": lambda: pd.DataFrame({"id": IDS, "vector": [*torch_tensor(MATRIX)]}),
    "a series of series": lambda: pd.Series([*map(pd.Series, MATRIX)], index=IDS),
    "a dictionary of tensors": lambda: {key: torch_tensor(row) for key, row in zip(IDS, MATRIX, strict=True)},
}
WITHOUT: dict[str, Callable[[], Any]] = {
    "tensor": lambda: torch_tensor(MATRIX),
    "list of tensors": lambda: [*torch_tensor(MATRIX)],
    "sparse tensor": lambda: torch_tensor(MATRIX).detach().to_sparse(),
    "sparse matrix": lambda: sparse.csr_matrix(MATRIX),
    "sparse array": lambda: sparse.coo_array(MATRIX),
    "sparse dictionary": lambda: sparse.dok_matrix(MATRIX),
    "big-endian": lambda: MATRIX.astype(">f4"),
    "objects": lambda: MATRIX.astype(object),
    "half": lambda: MATRIX.astype(np.float16),
    "bfloat16": lambda: MATRIX.astype(pytest.importorskip("ml_dtypes").bfloat16),
    "memory": lambda: memoryview(MATRIX),
    "columns first": lambda: np.asfortranarray(MATRIX),
    "record array": lambda: np.rec.fromarrays([*MATRIX.T], names=[f"e{number}" for number in range(DIM)]),
    "generator": lambda: (row for row in MATRIX),
    "values of a dictionary": lambda: dict(zip(IDS, MATRIX, strict=True)).values(),
    "tuples": lambda: tuple(map(tuple, MATRIX)),
    "nullable": lambda: pd.DataFrame(MATRIX).astype("Float64"),
}


def ridge(embeddings: Any, labels: Any, **options: Any) -> scoring.memory.result.Result:
    """Score with few folds, quietly."""
    return scoring.score(embeddings, labels, "ridge", folds=2, progress=False, **options)


@pytest.mark.filterwarnings("ignore:1 extra column")
@pytest.mark.parametrize("form", WITH_IDS)
def test_a_table_of_any_library_keeps_its_ids(form: str) -> None:
    """Ids are no dimension, and join rows with labels in another order."""
    result = ridge(WITH_IDS[form](), SERIES)
    assert (result.report.embedding_dim, result.to_frame()["score"].min() > 0.9) == (DIM, True)


@pytest.mark.parametrize("form", WITHOUT)
def test_an_array_of_any_library_is_read_by_position(form: str) -> None:
    """Labels in the same order are learned."""
    for labels in (
        LABELS,
        (value for value in LABELS),
        torch_tensor(LABELS[:, None]),
        [*torch_tensor(LABELS)],
        {"height": torch_tensor(LABELS)},  # which pandas takes for a scalar
    ):
        result = ridge(WITHOUT[form](), labels)
        assert (result.report.embedding_dim, result.to_frame()["score"].min() > 0.9) == (DIM, True)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2"])
@pytest.mark.parametrize("library", ["torch", "ml_dtypes"])
def test_small_floats_count_with_their_exact_values(library: str, name: str) -> None:
    """Scores are those of the same numbers as float32, which holds them exactly."""
    kind = getattr(pytest.importorskip(library), name)
    small = (
        pytest.importorskip("torch").tensor(MATRIX).to(kind) if library == "torch" else MATRIX.astype(kind)
    )
    wide = small.float().numpy() if library == "torch" else small.astype(np.float32)
    assert not np.array_equal(wide, MATRIX.astype(np.float32))
    assert ridge(small, LABELS).q == ridge([*small], LABELS).q == ridge(wide, LABELS).q


def test_masked_values_are_missing() -> None:
    """They are not the numbers under the mask, and count as 0 like NaN."""
    mask = np.eye(ROWS, DIM, dtype=bool)
    with pytest.warns(UserWarning, match="6 cells are NaN"):
        masked = ridge(np.ma.masked_array(MATRIX, mask), LABELS)
    assert masked.q == ridge(np.where(mask, 0, MATRIX), LABELS).q


@pytest.mark.parametrize("name", ["id", "tile_id", "tile"])
def test_ids_that_a_conversion_would_lose_are_refused(name: str) -> None:
    """Rows would be paired by position, although both sides have ids; other coordinates do not matter."""
    with pytest.raises(
        ValueError, match=rf"'{name}', which is no index.*swap_dims\(\{{'sample': '{name}'\}}\)"
    ):
        ridge(xarray_of_samples(**{name: IDS}), SERIES)
    others = xarray_of_samples(lat=LABELS, country=["a", "b"] * (ROWS // 2))
    assert ridge(others, LABELS).to_frame()["score"].min() > 0.9
    dataset = xarray_table(MATRIX).to_dataset(name="embedding")[["embedding"]].isel(dim=0)
    assert ridge(MATRIX, dataset).report.tasks
    with pytest.raises(
        TypeError, match=r"WithIndex, which cannot be read\. Give what its method compute\(\)"
    ):
        ridge(WITH_IDS["records"](), WithIndex())


LOOP: list[Any] = [[1.0] * DIM for _ in range(ROWS)]
LOOP[3] = LOOP
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a list in itself": (LOOP, ValueError, "A list contains itself"),
    "a number beyond floats": ([[10**400, 1]] * ROWS, ValueError, "A number cannot be a float"),
    "a signaling NaN": ([[Decimal("sNaN"), 1]] * ROWS, ValueError, "A number cannot be a float"),
    "three axes": (np.zeros((ROWS, 2, 3)), ValueError, r"the shape \(40, 2, 3\).*mean\(axis=1\)"),
    "one axis": (LABELS, ValueError, r"the shape \(40,\)"),
    "no rows": (MATRIX[:0], ValueError, r"the shape \(0, 6\)"),
    "ragged": (
        [[1, 2], [1, 2, 3]] * 20,
        ValueError,
        "Row 0 of the embeddings has 2 values, row 1 has 3 values",
    ),
    "batches": ([MATRIX[:25], MATRIX[25:]], ValueError, r"join batches with numpy\.concatenate"),
    "equal batches": ([MATRIX[:20], MATRIX[20:]], ValueError, r"join batches with numpy\.concatenate"),
    "huge": (sparse.csr_matrix((ROWS, 10**9)), ValueError, "sparse with the shape"),
    "texts": (MATRIX.astype(str), TypeError, "not numbers"),
    "raw bytes": (np.zeros((ROWS, DIM), "V2"), TypeError, "bfloat16"),
    "a column of texts": (
        pd.DataFrame(MATRIX).add_prefix("e").assign(site=IDS),
        TypeError,
        "'site' \\(text\\)",
    ),
    "a set": (set(LABELS), TypeError, "a set, which has no order"),
    "nothing": (None, TypeError, "NoneType, which cannot be read"),
    "a type": (np.ndarray, TypeError, "cannot be read"),
    "an open file": (io.BytesIO(), TypeError, "the path of a file"),
    "an incomplete library": (Unhelpful(), TypeError, "Unhelpful, which cannot be read"),
    "several axes": (Dataset(), TypeError, "Dataset, which cannot be read. Give a numpy array"),
    "a tensor without values": (Device(), TypeError, "Device, which cannot be read"),
    "structs": (
        [{"id": key, "embedding": {"a": 1, "b": 2}} for key in IDS],
        TypeError,
        r"'embedding' \(structs\)",
    ),
    "lazy": (Lazy(), TypeError, r"its method collect\(\)"),
    "two levels": (
        pd.DataFrame(MATRIX, columns=pd.MultiIndex.from_product([["a", "b"], [0, 1, 2]])),
        ValueError,
        "have 2 levels",
    ),
    "repeated names": (pd.DataFrame(MATRIX, columns=[0, 1, 2] * 2), ValueError, "called 0, 1, 2"),
    "ids and rows": (
        {"ids": IDS[:5], "embeddings": MATRIX},
        ValueError,
        "does not have 5 values, one for each id",
    ),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_cannot_be_embeddings_is_refused(form: str) -> None:
    """The message says what was seen, in words that the caller knows."""
    given, error, message = REFUSED[form]
    with pytest.raises(error, match=message) as caught:
        ridge(given, LABELS)
    assert type(caught.value).__module__ == "scoring.errors"
    assert not any(word in str(caught.value) for word in ("configuration", "k_folds", ".parquet", "temp"))


ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"seed": -1}, ValueError, "The argument seed is -1"),
    ({"folds": 0}, ValueError, "The argument folds is 0"),
    ({"folds": "10"}, TypeError, "The argument folds is '10'"),
    ({"folds": True}, TypeError, "The argument folds is True"),
    ({"threads": 0}, ValueError, "The argument threads is 0"),
    ({"probe": "Ridge"}, ValueError, ", ".join(PROBES)),
    ({"probe": "linear", "epoch": 5}, TypeError, "Did you mean epochs?"),
    ({"epochs": 5}, TypeError, "no argument 'epochs' for the probe ridge. Its parameters are: alphas"),
    ({"k_folds": 5}, TypeError, "Did you mean folds?"),
    (
        {"probe": "linear", "epochs": 0},
        ValueError,
        "The argument epochs is '0', not a whole number from 1 to 100,000",
    ),
    (
        {"probe": "linear", "batch_size": 10**20},
        ValueError,
        "batch_size is .* not a whole number from 1 to 1,000,000",
    ),
    (
        {"probe": "linear", "learning_rate": 1e-320},
        ValueError,
        "learning_rate is .* not a number from 1e-12 to 1,000,000",
    ),
    ({"probe": "linear", "epochs": True}, ValueError, "The argument epochs is 'True', not a whole number"),
    ({"folds": 10**6}, ValueError, "The argument folds is 1000000, not a whole number from 1 to 100,000"),
    ({"embedding_dim": 10**30}, ValueError, "not a whole number from 1 to 1,000,000"),
    ({"normalize_labels": "yes"}, ValueError, "The argument normalize_labels is 'yes', not true or false"),
    ({"task_filter": ["x"]}, ValueError, "task_filter names 'x', which is not a task. The tasks are: label"),
    ({"embedding_dim": 2}, ValueError, "but embedding_dim is 2"),
    ({"exclude": "p_00"}, TypeError, "The argument exclude is 'p_00', not a list"),
    ({"exclude": 5}, TypeError, "The argument exclude is 5"),
    ({"task_filter": 5}, TypeError, "The argument task_filter is 5"),
]


NAMES: list[list[Any]] = [
    IDS,
    [float(row + 3) for row in range(ROWS)],
    [name.encode() for name in IDS],
    [(row // 10, row % 10) for row in range(ROWS)],
]


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        ({"ids": [f"{name}\udce9" for name in IDS], "labels": LABELS}, {}),
        (dict(zip([f"{name}\udce9" for name in IDS], LABELS, strict=True)), {}),
        (["\udce9" if label > 0 else "b" for label in LABELS], {}),
        ({"h\udce9he": LABELS}, {}),
        (LABELS, {"groups": [f"\udce9{row // 4}" for row in range(ROWS)]}),
    ],
)
def test_half_a_character_is_refused(labels: Any, options: dict[str, Any]) -> None:
    """Python makes it of names of files that are not UTF-8; no result could be written with it."""
    ids = [*labels["ids"]] if isinstance(labels, dict) and "ids" in labels else [*labels]
    given = dict(zip(ids, MATRIX, strict=True)) if len(ids) == ROWS and isinstance(labels, dict) else MATRIX
    with pytest.raises(ValueError, match=r"\\udce9.*UTF-8|UTF-8.*\\udce9") as caught:
        ridge(given, labels, **options)
    assert type(caught.value).__module__ == "scoring.errors"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("ids", NAMES, ids=["text", "floats", "bytes", "tuples"])
def test_ids_to_leave_out_may_have_any_type_that_ids_have(ids: list[Any]) -> None:
    """They are read like the ids themselves; if none is found, a warning says that nothing was left out."""
    index = pd.Index(ids)
    given = pd.DataFrame(MATRIX, index=index), pd.Series(LABELS, index=index)
    fewer = ridge(given[0].iloc[3:], given[1].iloc[3:])
    assert ridge(*given, exclude=ids[:3]).q == ridge(*given, exclude=index[:3]).q == fewer.q
    assert "No sample was left out" not in repr(ridge(*given, exclude=ids[:3]))
    assert "an excluded id, such as 'True'" in repr(ridge(*given, exclude=[True]))
    with pytest.raises(
        ValueError, match=r"No id of the embeddings has a label, except ones that are left out\."
    ):
        ridge(*given, exclude=ids)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("ids", [IDS, np.random.RandomState(1).permutation(ROWS), np.arange(ROWS) + 5])
def test_ids_to_leave_out_are_those_of_labels_if_embeddings_have_none(ids: Any) -> None:
    """Not numbers of rows; of arrays alone, they are."""
    labels = pd.Series(LABELS, index=ids)

    def kept(embeddings: Any, labels: Any, **options: Any) -> list[list[float]]:
        [task] = ridge(embeddings, labels, **options).report.tasks
        return [*task.data.rows.tolist()]

    fewer = kept(MATRIX[3:], LABELS[3:])
    assert kept(MATRIX, LABELS, exclude=range(3)) == kept(MATRIX, labels, exclude=ids[:3]) == fewer
    if "0" not in map(str, ids):
        assert kept(pd.DataFrame(MATRIX), labels, exclude=ids[:3]) == fewer
        with pytest.raises(ValueError, match="but '0', which could be the number of a row"):
            ridge(MATRIX, labels, exclude=[0])
    assert "No sample was left out" in repr(ridge(MATRIX, labels, exclude=["x"]))


@pytest.mark.parametrize(("options", "error", "message"), ARGUMENTS)
def test_wrong_arguments_are_named_as_the_caller_wrote_them(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    """Numbers of numpy are numbers; everything else is refused before anything is read."""
    scoring.score(
        MATRIX, LABELS, "ridge", folds=np.int64(2), seed=np.uint8(1), progress=False, enable_plots=np.False_
    )
    with pytest.raises(error, match=message):
        scoring.score(MATRIX, LABELS, **{"probe": "ridge", "folds": 2, "progress": False, **options})


@pytest.mark.parametrize(
    "alphas",
    [
        np.array([1.0, 10.0]),
        pd.Series([1.0, 10.0]),
        [np.float32(1), np.int64(10)],
        range(1, 11, 9),
        iter([1, 10]),
    ],
    ids=["array", "series", "scalars", "range", "iterator"],
)
def test_arguments_of_any_library_are_in_the_results(alphas: Any, tmp_path: Path) -> None:
    """They are saved as the numbers that they are."""
    result = ridge(MATRIX, LABELS, alphas=alphas)
    result.save(tmp_path / "run")
    assert result.to_dict()["config"]["probe_params"] == {"alphas": [1, 10]}
    assert result.q == ridge(MATRIX, LABELS, alphas=[1, 10]).q


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """An address on the web is not a file."""
    for embeddings, labels in ((tmp_path / "x.csv", SERIES), (MATRIX, str(tmp_path / "x.csv"))):
        with pytest.raises(FileNotFoundError, match=r"x\.csv do not exist"):
            ridge(embeddings, labels)
    with pytest.raises(FileNotFoundError, match=r"'id,label.*File name too long.*what pandas reads from it"):
        ridge(MATRIX, "id,label\n" + "p,1\n" * 2000)
    with pytest.raises(FileNotFoundError, match="Download them first"):
        ridge("https://example.org/x.csv", SERIES)


def test_files_and_what_is_in_memory_go_together(tmp_path: Path) -> None:
    """Files have ids, so the other side needs them, too; numbers of rows in their order are enough."""
    pd.DataFrame(MATRIX, index=pd.Index(IDS, name="id")).to_csv(tmp_path / "e.csv")
    SERIES.rename("label").rename_axis("id").to_csv(tmp_path / "height__regr.csv")
    pd.Series(LABELS, name="label").rename_axis("id").to_csv(tmp_path / "numbered__regr.csv")
    frame = pd.DataFrame(MATRIX, index=IDS)
    for embeddings, labels in (
        (tmp_path / "e.csv", SERIES),
        (tmp_path / "e.csv", tmp_path / "height__regr.csv"),
        (frame, tmp_path / "height__regr.csv"),
        (MATRIX, tmp_path / "numbered__regr.csv"),
    ):
        assert ridge(embeddings, labels).to_frame()["score"].min() > 0.9
    assert ridge(MATRIX, tmp_path / "numbered__regr.csv").notes == ()
    pd.Series(LABELS[1:], range(1, ROWS), name="label").rename_axis("id").to_csv(tmp_path / "some__regr.csv")
    assert "numbers of rows, of which the first is 0." in ridge(MATRIX, tmp_path / "some__regr.csv").notes[0]
    for embeddings, labels in ((tmp_path / "e.csv", LABELS), (MATRIX, tmp_path / "height__regr.csv")):
        with pytest.raises(ValueError, match="have no ids"):
            ridge(embeddings, labels)
    pd.DataFrame(MATRIX).rename_axis("id").to_csv(tmp_path / "numbered.csv")
    counted = pd.Series(LABELS)
    with pytest.raises(
        ValueError, match=r"column id, .*make it text: labels\.set_axis\(labels\.index\.astype\(str\)\)"
    ):
        ridge(tmp_path / "numbered.csv", counted)
    for labels in (
        counted.set_axis(counted.index.astype(str)),
        pd.DataFrame({"id": range(ROWS), "y": LABELS}),
    ):
        assert ridge(tmp_path / "numbered.csv", labels).to_frame()["score"].min() > 0.9


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_task_that_is_too_small_is_left_out() -> None:
    """The others are scored."""
    labels: Mapping[str, Any] = {"height": LABELS, "rare": [*LABELS[:10], *[None] * 30]}
    result = ridge(MATRIX, labels)
    assert [*result.to_frame().index] == ["height"]
    assert result.notes == ()
    assert "The task rare has 10 samples" in repr(result)
    with pytest.raises(ValueError, match="has 10 samples"):
        ridge(MATRIX[:10], LABELS[:10])
