"""What a task predicts follows from its labels by one rule; what is left open is told, and what means nothing is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from scipy import sparse

from scoring.memory.containers import plain
from scoring.memory.kinds import TaskKind, decide, split_name

ROWS = 60
VALUES = np.random.RandomState(0).standard_normal(ROWS)
THREE = np.digitize(VALUES, [-0.5, 0.5])
PAIR = THREE % 2
NAMES = np.array(["NA", "None", "nan"])[THREE]


def kind_of(values: Any, name: str = "land") -> tuple[TaskKind, np.ndarray[Any, Any]]:
    """Decide about labels as a caller holds them."""
    own, declared = split_name(name)
    return decide(own, plain(values, "labels"), declared)


def arrow(values: pyarrow.Array) -> pd.Series[Any]:
    """Return a series that pandas leaves to pyarrow."""
    return pd.Series(values, dtype=pd.ArrowDtype(values.type))


KINDS: dict[str, tuple[Any, str]] = {
    "floats": (VALUES, "regr"),
    "big-endian": (VALUES.astype(">f4"), "regr"),
    "a column": (VALUES[:, None], "regr"),
    "a column with more axes": (VALUES[:, None, None], "regr"),
    "arrow's scalars": ([*pyarrow.array(VALUES)], "regr"),
    "arrays without axes": ([np.array(value) for value in VALUES], "regr"),
    "a list of columns": ([[value] for value in VALUES], "regr"),
    "numbers as objects": (VALUES.astype(object), "regr"),
    "decimals": ([Decimal(str(value)) for value in VALUES], "regr"),
    "nullable": (pd.array(VALUES, dtype="Float64"), "regr"),
    "whole numbers": (THREE, "regr"),
    "two numbers": (PAIR, "cls"),
    "signs": (PAIR * 2.0 - 1, "cls"),
    "small whole numbers": (PAIR.astype(np.uint8), "cls"),
    "booleans": (PAIR == 1, "cls"),
    "booleans as objects": ((PAIR == 1).astype(object), "cls"),
    "a list of booleans": ((PAIR == 1).tolist(), "cls"),
    "nullable booleans": (pd.array(PAIR == 1, dtype="boolean"), "cls"),
    "texts": (NAMES, "multiclass"),
    "texts as objects": (NAMES.astype(object), "multiclass"),
    "a series of texts": (pd.Series(NAMES), "multiclass"),
    "arrow's texts with a dictionary": (arrow(pyarrow.array(NAMES).dictionary_encode()), "multiclass"),
    "arrow's numbers with a dictionary": (arrow(pyarrow.array(THREE).dictionary_encode()), "multiclass"),
    "arrow's booleans": (arrow(pyarrow.array(PAIR == 1)), "cls"),
    "bytes": (NAMES.astype("S"), "multiclass"),
    "two texts": (np.array(["b", "a"])[PAIR], "multiclass"),
    "categories": (pd.Categorical(THREE), "multiclass"),
    "zeros and ones": (np.eye(3)[THREE], "multilabel"),
    "a table of booleans": (pd.DataFrame(np.eye(3)[THREE] > 0), "multilabel"),
    "a sparse table": (sparse.csr_array(np.eye(3)[THREE]), "multilabel"),
    "lists of names": ([["a", "b"] if value else ["c"] for value in PAIR], "multilabel"),
}


@pytest.mark.parametrize("values", KINDS)
def test_the_type_follows_from_the_labels(values: str) -> None:
    """How an array stores its values does not matter."""
    given, expected = KINDS[values]
    kind, labeled = kind_of(given)
    assert (kind.kind, labeled.all(), len(kind.labels)) == (expected, True, ROWS)


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "dates": (pd.date_range("2026", periods=ROWS), TypeError, "dates or times"),
    "dates with zones": (pd.date_range("2026", periods=ROWS, tz="UTC"), TypeError, "dates or times"),
    "dates as objects": ([datetime.date(2026, 1, 1)] * ROWS, TypeError, "dates or times"),
    "times as objects": ([datetime.datetime(2026, 1, 1)] * ROWS, TypeError, "dates or times"),  # noqa: DTZ001
    "durations": (pd.to_timedelta(VALUES, unit="D"), TypeError, "dates or times"),
    "periods": (pd.period_range("2026", periods=ROWS), TypeError, "dates or times"),
    "complex numbers": (VALUES + 1j, TypeError, "complex"),
    "numbers and texts": ([1, "a"] * (ROWS // 2), TypeError, "of several kinds"),
    "other objects": ([object()] * ROWS, TypeError, "of the type object"),
    "fractions": ([Fraction(value) for value in VALUES], TypeError, "of the type Fraction"),
    "ids": ([f"p_{number}" for number in range(ROWS)], ValueError, "60 classes for 60 samples.*they are ids"),
    "ids of pairs": ([f"p_{number // 2}" for number in range(ROWS)], ValueError, "30 classes for 60 samples"),
    "numbers as texts": ([str(value) for value in VALUES], ValueError, r"labels\.astype\(float\)"),
    "an empty text": (np.array(["", "a", "b"])[THREE], ValueError, "empty texts.*by None"),
    "one text": (["a"] * ROWS, ValueError, "All labels of the task land are 'a'"),
    "infinity": (np.where(PAIR, np.inf, VALUES), ValueError, "26 labels that are infinite or too large"),
    "a huge number": ([1e39, *VALUES[1:]], ValueError, "1 label that is infinite or too large for float32"),
    "no labels": ([None] * ROWS, ValueError, "has no labels"),
    "a matrix": (VALUES.reshape(-1, 2), ValueError, r"the shape \(30, 2\)"),
    "lists of numbers": ([[1, 2], [3]] * (ROWS // 2), ValueError, "are lists"),
}


@pytest.mark.parametrize("values", REFUSED)
def test_labels_that_mean_nothing_are_refused(values: str) -> None:
    """A message says what they are, and what to give instead."""
    given, error, message = REFUSED[values]
    with pytest.raises(error, match=message):
        kind_of(given)


def test_only_none_nan_and_na_are_missing() -> None:
    """Words such as NA are names of classes: Namibia, or no land cover."""
    kind, labeled = kind_of(NAMES)
    assert (kind.classes, labeled.all()) == (("NA", "None", "nan"), True)
    for missing in (None, np.nan, pd.NA, pd.NaT):
        kind, labeled = kind_of([missing, *NAMES[1:]])
        assert labeled.tolist() == [False] + [True] * (ROWS - 1)
        kind, labeled = kind_of([missing, *VALUES[1:]])
        assert (kind.kind, labeled.sum()) == ("regr", ROWS - 1)
    kind, labeled = kind_of(arrow(pyarrow.array([None, np.nan, *VALUES[2:]], from_pandas=False)))
    assert (kind.kind, labeled.sum()) == ("regr", ROWS - 2)
    masked = np.ma.masked_array(PAIR, mask=THREE == 2)
    kind, labeled = kind_of(masked)
    assert (kind.kind, labeled.tolist()) == ("cls", (THREE != 2).tolist())


def test_a_name_decides() -> None:
    """A type behind the task's name comes before the rule, and must fit."""
    assert split_name("land__MultiClass") == ("land", "multiclass")
    assert split_name("land__cover") == ("land__cover", None)
    kind, _ = kind_of(THREE.astype(float), "land__multiclass")
    assert (kind.kind, kind.classes, kind.labels.tolist()) == ("multiclass", ("0", "1", "2"), THREE.tolist())
    assert kind_of(PAIR == 1, "land__regr")[0].kind == "regr"
    for same in (["1", "1.0 ", "2"], [1, 1.0, 2], [b"1.", b" 1", b"2"]):
        assert kind_of([*same] * 20, "land__multiclass")[0].classes == ("1", "2")
    assert kind_of([["a ", "b"], ["b"]] * 20)[0].classes == ("a", "b")
    lists = pd.Series([["a", "b"], ["b"]] * 20, dtype=pd.ArrowDtype(pyarrow.list_(pyarrow.string())))
    assert kind_of(lists)[0].kind == "multilabel"
    several = kind_of(np.array(["a;b", "b; c"])[PAIR], "land__multilabel")[0]
    assert (several.classes, several.labels[0].sum()) == (("a", "b", "c"), 2)
    for values, name, message in (
        (THREE, "land__cls", "3 different labels. Name it land__multiclass"),
        (NAMES, "land__cls", "Name it land__multiclass"),
        (NAMES, "land__regr", "needs numbers"),
        (VALUES, "land__multiclass", "60 classes for 60 samples.*Name it land__regr"),
        (np.eye(3)[THREE], "land__multiclass", "argmax"),
    ):
        with pytest.raises(ValueError, match=message):
            kind_of(values, name)


def test_what_could_be_meant_otherwise_is_noted() -> None:
    """The note says what was chosen, and the name that chooses otherwise."""
    assert (
        kind_of(THREE)[0].note == "land: regression on 3 whole numbers; name it land__multiclass for classes."
    )
    assert "7 is the positive one" in kind_of(np.where(PAIR, 7, 3))[0].note
    assert "two classes, 20260314 and 20260315, of" in kind_of(PAIR + 20260314)[0].note
    assert "labels.argmax(axis=1)" in kind_of(np.eye(3)[THREE])[0].note
    table = pd.DataFrame({"b": PAIR, "a": 1 - PAIR, "never": 0, "both": 1})
    kind, _ = kind_of(table)
    assert kind.note == "land: no sample has the label never, which is left out."
    assert (kind.classes, kind.labels[:, 1].tolist()) == (("a", "b", "both"), PAIR.tolist())
    for values in (VALUES, PAIR, PAIR == 1, NAMES):
        assert kind_of(values)[0].note == ""
