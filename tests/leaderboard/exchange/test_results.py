"""``scoring.compare`` and ``scoring.rank`` give in memory what the commands give for folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import scoring
from scoring.memory.result import interval
from tests.later import GROUP, Later
from worker.cli import guarded

pytestmark = GROUP
stats = Later("scipy.stats")

RANDOM = np.random.RandomState(0)
MATRIX = RANDOM.standard_normal((60, 4))
LABELS = {"height": MATRIX @ RANDOM.standard_normal(4), "wood": MATRIX[:, 1] > MATRIX[:, 2]}
NOISY = MATRIX + RANDOM.standard_normal(MATRIX.shape)


@pytest.fixture(scope="module")
def entries() -> Any:
    """Two embeddings, scored and ranked in one call."""
    return scoring.rank({"ours": MATRIX, "theirs": NOISY}, LABELS, probe="ridge", folds=8, progress=False)


def test_several_embeddings_are_ranked_in_one_call(entries: Any) -> None:
    """They get the scores of one call each, and results can be ranked, too."""
    frame = entries.to_frame()
    assert frame.index.to_list() == ["ours", "theirs"]
    assert frame["rank"].to_list() == [1, 2]
    alone = scoring.score(MATRIX, iter_labels(), "ridge", folds=8, progress=False)
    assert frame.loc["ours", "height"] == alone.to_frame().loc["height", "q"]
    again = scoring.rank(entries.results, baselines="theirs")
    assert again.to_frame().equals(scoring.rank(entries.table, baselines=["theirs"]).to_frame())
    assert again.to_frame()["rank"].isna().to_list() == [False, True]
    assert entries.weights.sum() == pytest.approx(1)
    assert "Without any one of the 2 tasks, no two teams change places." in repr(entries)
    assert entries.without.to_dict("index") == {
        "ours": {"height": 1, "wood": 1},
        "theirs": {"height": 2, "wood": 2},
    }
    assert scoring.rank(entries.table[["wood"]]).without.empty


def iter_labels() -> dict[str, Any]:
    """Return the labels as generators."""
    return {name: iter(values) for name, values in LABELS.items()}


def test_a_result_is_saved_as_the_folder_that_the_commands_read(
    entries: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ranks and differences are those of the results in memory."""
    folders = [entries.results[name].save(tmp_path / "results" / name) for name in ("ours", "theirs")]
    assert guarded(["rank", str(tmp_path), "--json"]) == 0
    ranked = json.loads(capsys.readouterr().out)["entries"]
    assert {entry["entry"]: entry["mean"] for entry in ranked} == entries.to_frame()["mean"].to_dict()
    assert guarded(["compare", *map(str, folders), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["differences"][0]
    compared = scoring.compare(*entries.results.values(), names=["ours", "theirs"])
    frame = compared.to_frame().loc["theirs"]
    for task in LABELS:
        assert printed["tasks"][task]["interval"] == frame.loc[task, ["low", "high"]].to_list()
    assert printed["overall"]["difference"] == frame.loc["mean of tasks", "difference"]
    assert frame["paired"].all()
    assert scoring.compare(folders[0], entries.results["theirs"]).to_frame().loc["B"].equals(frame)
    assert printed["overall"]["keeps_order"] == 1.0
    assert (
        "ours is ahead of theirs, also without any one of the 2 tasks; it is ahead in 100 % of 2,000"
        in repr(compared)
    )
    with pytest.raises(ValueError, match="is not empty"):
        entries.results["ours"].save(folders[0])


def test_plots_and_probes_are_saved_if_they_were_asked_for(tmp_path: Path) -> None:
    """They are those of the command."""
    for extra in ("torch", "vl_convert"):
        pytest.importorskip(extra)
    options = {"folds": 2, "epochs": 1000, "progress": False, "enable_plots": True, "store_probes": True}
    with pytest.warns(UserWarning, match="With store_probes"):
        place = scoring.score(MATRIX, LABELS["height"], **options).save(tmp_path / "run")
    names = {path.suffix for path in (place / "label").rglob("*.*")}
    assert {".png", ".pth", ".json"} <= names


def test_no_plot_has_a_control_character(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At one, in the name of a task or class, the library ends the process."""
    drawn: list[str] = []
    library = pytest.importorskip("vl_convert")

    def draw(spec: object, scale: float) -> bytes:
        drawn.append(str(spec))
        return b""

    monkeypatch.setattr(library, "vegalite_to_png", draw)
    labels = {"task\x0b__multiclass": np.where(MATRIX[:, 0] > 0, "a\x01", "\ufffe")}
    scoring.score(MATRIX, labels, "ridge", folds=2, progress=False, enable_plots=True).save(tmp_path / "run")
    assert len(drawn) == 4
    assert not any(odd in spec for spec in drawn for odd in (r"\x0b", r"\x01", r"\ufffe"))


def test_a_result_is_json(entries: Any) -> None:
    """Numbers that are not finite are None."""
    document = json.loads(json.dumps(entries.results["ours"].to_dict(), allow_nan=False))
    assert document["tasks"]["height"]["q_t"] == entries.results["ours"].to_frame().loc["height", "folds"]
    assert (document["seed"], document["notes"]) == (42, [])


@pytest.mark.parametrize("folds", [5, 8, 40])
def test_the_interval_of_a_mean_score_is_that_of_student(folds: int) -> None:
    """Failed folds do not count; with fewer than five there is no interval."""
    scores = RANDOM.standard_normal(folds)
    expected = stats.t.interval(0.95, folds - 1, scores.mean(), stats.sem(scores))
    assert interval([*scores, np.nan]) == pytest.approx(expected, abs=5e-3 * scores.std())
    assert np.isnan(interval([*scores[:4], np.nan])).all()


def test_what_cannot_be_compared_or_ranked_is_refused(entries: Any, tmp_path: Path) -> None:
    """The message says what to give instead; other labels or splits are told."""
    ours = entries.results["ours"]
    other = scoring.score(MATRIX, LABELS["wood"], "ridge", folds=8, progress=False)
    refused: list[tuple[Any, type[Exception], str]] = [
        (lambda: scoring.compare(ours), ValueError, "two runs or more"),
        (lambda: scoring.compare(ours, other), ValueError, "no task in common with a score in each"),
        (lambda: scoring.compare(ours, ours, names=["a"]), ValueError, "one for each result"),
        (lambda: scoring.compare(ours, MATRIX), TypeError, "ndarray.*scoring.score returned"),
        (lambda: scoring.compare(ours, tmp_path / "none"), FileNotFoundError, "no folder"),
        (lambda: scoring.compare(ours, tmp_path), ValueError, "not the folder of a run"),
        (lambda: scoring.compare(ours, {"a": ours}), TypeError, r"one by one: \*results.values\(\)"),
        (lambda: scoring.rank([ours]), TypeError, "Give a dictionary"),
        (lambda: scoring.rank(MATRIX, LABELS), TypeError, "Give a dictionary of names and embeddings"),
        (lambda: scoring.rank({}, LABELS), TypeError, "There are no entries in an object of the type dict"),
        (lambda: scoring.rank({"ours": MATRIX}), TypeError, "embeddings need labels"),
        (
            lambda: scoring.rank({"ours": ours, "other": other}),
            ValueError,
            "ours has no usable score in label",
        ),
        (lambda: scoring.rank({"ours": ours}, baselines="x"), ValueError, "No entry is named 'x'"),
        (lambda: scoring.rank({"ours": ours}, ghost_task=-1), ValueError, "The ghost task is -1"),
        (
            lambda: scoring.rank({"ours": ours}, ghost_task="1"),
            ValueError,
            "The ghost task is 1, not a number",
        ),
        (lambda: scoring.rank({1: ours, "1": ours}), ValueError, "'1' occurs 2 times"),
        (lambda: scoring.rank({"ours": ours}, folds=8), TypeError, "for embeddings, and there are none"),
        (lambda: scoring.rank(entries.table, LABELS), TypeError, "for embeddings, and there are none"),
        (
            lambda: scoring.rank(pd.DataFrame({"name": ["a"], "q": [1]})),
            TypeError,
            "'name' has the type ",
        ),
        *(
            (lambda table=table: scoring.rank(table), ValueError, hint)
            for table, hint in (
                (pd.DataFrame({"a": [1, 2], "Mean (Task)": [3, 4]}), r"drop\('Mean \(Task\)', axis=1\)"),
                (pd.DataFrame({"a": [1, 2]}, index=["x", "Average"]), r"drop\('Average', axis=0\)"),
                (pd.DataFrame({"a": [1, 2], "n_params": [3, 4]}), r"drop\('n_params', axis=1\)"),
                (pd.DataFrame({"a": [1, 2], "val_loss": [3, 4]}), "'val_loss' seems to have errors"),
                (pd.DataFrame({"a": [1, 2]}, index=["x", None]), "An entry has no name"),
                (pd.DataFrame({"a": range(5)}, index=[*"xxyyy"]), "'y' occurs 3 times"),
                (pd.DataFrame([[1, 2], [3, 4]], columns=[1, "1"]), "The task '1' occurs 2 times"),
                (pd.DataFrame({"a": [1, np.nan]}, index=["x", "y"]), "y has no usable score in a"),
                (pd.DataFrame({"a": [1, 1e300]}, index=["x", "y"]), "y has no usable score in a"),
                (pd.DataFrame(), "no task columns"),
            )
        ),
    ]
    for call, error, message in refused:
        with pytest.raises(error, match=message) as caught:
            call()
        assert type(caught.value).__module__ == "scoring.errors"
    reseeded = scoring.score(MATRIX, LABELS, "ridge", folds=8, seed=1, progress=False)
    with pytest.warns(UserWarning, match=r"differ from those of ours.*other \(height\)"):
        scoring.rank({"ours": ours, "other": reseeded})
    with pytest.warns(UserWarning, match="'size' decides the ranking alone"):
        scoring.rank(pd.DataFrame({"a": [0.1, 0.3], "size": [3e5, 4e6]}))


def test_a_table_may_have_names_of_two_levels() -> None:
    """An index of a model and its version is a name, too."""
    table = pd.DataFrame({"a": [0.9, 0.1]}, index=pd.MultiIndex.from_tuples([("A", 1), ("B", 2)]))
    assert scoring.rank(table).to_frame()["rank"].tolist() == [1, 2]
