"""``scoring.score``, and the examples on its page, which must print what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import scoring

PAGE = (Path(scoring.__file__).parent / "README.md").read_text("utf-8").partition("## From Python")[2]
BLOCKS = re.findall(r"```(?:python|text)\n(.*?)```", PAGE, re.DOTALL)
EXAMPLES = list(zip(BLOCKS[::2], BLOCKS[1::2], strict=True))
ROWS, DIM = 400, 8


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Embeddings and two tasks."""
    random = np.random.RandomState(0)
    latent = random.standard_normal((ROWS, DIM))
    ids = [f"image_{number:03}" for number in range(ROWS)]
    (tmp_path / "labels").mkdir()
    tables = {
        "ours.csv": latent + 0.1 * random.standard_normal((ROWS, DIM)),
        "labels/height__regr.csv": latent[:, :1],
        "labels/wood__cls.csv": latent[:, 1:2] > 0,
    }
    for name, table in tables.items():
        header = ",".join(map(str, range(DIM))) if table.shape[1] == DIM else "label"
        rows = (
            ",".join([identifier, *(f"{value:.4f}" for value in row)])
            for identifier, row in zip(ids, table, strict=True)
        )
        (tmp_path / name).write_text("\n".join([f"id,{header}", *rows]) + "\n")
    return tmp_path


@pytest.mark.parametrize(("example", "printed"), EXAMPLES)
def test_the_examples_print_what_their_page_says(
    example: str,
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A reader who copies an example gets the output on the page, in any folder, because the files that it reads are installed."""
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})  # the page is ours
    assert capsys.readouterr().out == printed


def test_every_form_of_the_same_data_gives_the_same_scores(folder: Path) -> None:
    """Files, data frames, series, dictionaries and arrays give the scores of the command line, fold by fold."""
    embeddings, labels = folder / "ours.csv", folder / "labels"
    frame = pd.read_csv(embeddings)
    wood = pd.read_csv(labels / "wood__cls.csv")
    wood["label"] = wood["label"] == 1
    array = frame.drop(columns="id").to_numpy()
    vectors = dict(zip(frame["id"], array, strict=True))
    by_id = wood.set_index("id")["label"]
    scores = []
    for given, truth in (
        (frame, by_id.rename("wood")),
        (frame.set_index("id")[::-1], {"wood": by_id}),
        (vectors, wood.rename(columns={"label": "wood"})),
        ({"ids": frame["id"], "embeddings": array}, {"wood__cls": by_id.astype(float)}),
        (array, {"wood": by_id.to_numpy()}),
        (array.tolist(), {"wood": by_id.tolist()}),
    ):
        result = scoring.score(given, truth, folds=2, epochs=100, learning_rate=0.01, progress=False)
        scores.append(result.to_frame().loc["wood", "folds"])
    assert scores == [scores[0]] * len(scores)


def test_the_type_of_a_task_follows_from_its_labels() -> None:
    """Two values are two classes, text is several classes, a table of zeros and ones is several labels, other numbers are a regression."""
    random = np.random.RandomState(1)
    rows, number = random.standard_normal((60, 3)), np.arange(60)
    labels = {
        "two": number % 2,
        "signs": np.where(number % 3, 1.0, -1.0),
        "names": np.array(["a", "b", "c"])[number % 3],
        "several": rows > 0,
        "numbers": rows[:, 0],
        "named__multiclass": number % 3,
    }
    frame = scoring.score(rows, labels, probe="ridge", folds=2).to_frame()
    assert frame["type"].to_dict() == {
        "two": "cls",
        "signs": "cls",
        "names": "multiclass",
        "several": "multilabel",
        "numbers": "regr",
        "named": "multiclass",
    }
    for wrong in ({"y": number[:5]}, {"y": rows}, {"a/b": number}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            scoring.score(rows, wrong, probe="ridge")


def test_a_misleading_score_is_marked() -> None:
    """Too few steps give a warning with a hint, a mark in the table, and text that is safe in a notebook; enough steps do not."""
    random = np.random.RandomState(1)
    rows = random.standard_normal((100, 4))
    with pytest.warns(UserWarning, match="Set epochs to 500 or more, or the probe to ridge"):
        short = scoring.score(rows, {"<b>": rows[:, 0]}, folds=2)
    assert short.to_frame()["enough_steps"].tolist() == [False]
    assert "Set epochs to 500" in repr(short)
    assert "&lt;b&gt;" in short._repr_html_()
    assert "<b>:" not in short._repr_html_()
    signs = (rows > 0).astype(int)
    for labels, epochs in ((signs, 500), ({"kind__multiclass": signs @ [1, 2, 0, 0]}, 125)):
        with pytest.warns(UserWarning, match=f"Set epochs to {epochs} or more"):
            scoring.score(rows, labels, folds=2)
    enough = scoring.score(rows, {"sum": rows[:, 0]}, folds=2, epochs=500)
    assert enough.to_frame()["enough_steps"].tolist() == [True]
    assert enough.to_frame()["score"].min() > 0.5 > short.to_frame()["score"].max()


def test_a_label_without_samples_takes_nothing_from_a_score() -> None:
    """One that only samples left out have is left out, too; if a test part lacks one, a warning says that its F1 is 0."""
    rows = np.eye(2)[[0, 1] * 40]
    labels = [["a"], ["b"]] * 30 + [["gone"], ["a", "gone"]] * 10
    with pytest.warns(UserWarning, match="label: 1 label was left out.* has it: gone"):
        assert scoring.score(rows, labels, "ridge", folds=10, exclude=range(60, 80)).q == 100
    labels[60:] = [["a", "rare"], ["b"], *[["a"], ["b"]] * 9]
    with pytest.warns(UserWarning, match=r"in \d of 10 folds, no sample to test on has one of the.*: rare\."):
        scoring.score(rows, labels, "ridge", folds=10)


def test_a_task_whose_embeddings_are_equal_is_refused() -> None:
    """Nothing can be learned from them, although the embeddings of other tasks differ."""
    rows = np.zeros((60, 2))
    rows[30:] = np.random.RandomState(0).standard_normal((30, 2))
    labels = {"first": [*range(30), *[None] * 30], "last": [*[None] * 30, *range(30)]}
    with pytest.raises(
        ValueError, match="All 30 samples of the task first have the same embedding of 2 values"
    ):
        scoring.score(rows, labels, "ridge", folds=2)


def test_without_tasks_there_is_an_empty_table() -> None:
    """As in NeuCo-Bench, a filter that names no task is no error."""
    with pytest.warns(UserWarning, match="no task is scored"):
        result = scoring.score(np.eye(30), np.arange(30) * 1.5, "ridge", task_filter=[])
    assert result.to_frame()["score"].tolist() == []
    assert "Mean Q nan" in repr(result)


@pytest.mark.processes
def test_importing_it_loads_nothing() -> None:
    """Reading tables does not import the code that trains probes."""
    code = "import sys, scoring; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "torch", "pandas"} & set(done.stdout.split())
    assert dir(scoring) == ["compare", "rank", "score"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        scoring.nothing  # noqa: B018


def test_a_path_may_begin_with_the_home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in pandas; a result is not written into a folder whose name is a tilde."""
    monkeypatch.setenv("HOME", str(folder))
    result = scoring.score("~/ours.csv", "~/labels", "ridge", folds=3)
    assert result.save("~/runs/ours") == folder / "runs/ours"
    assert scoring.compare("~/runs/ours", result).tasks == ("height", "wood")


def test_several_embeddings_are_scored_in_one_call(folder: Path) -> None:
    """A dictionary of names and embeddings, of any form, gives a result for each; an error says which one it is about."""
    file, labels = folder / "ours.csv", folder / "labels"
    frame = pd.read_csv(file).set_index("id")
    vectors = dict(zip(frame.index, frame.to_numpy(), strict=True))
    options = {"probe": "ridge", "folds": 3, "progress": False}
    results = scoring.score({"file": file, "table": frame, "vectors": vectors}, labels, **options)
    assert [*results] == ["file", "table", "vectors"]
    assert len({result.q for result in results.values()} | {scoring.score(file, labels, **options).q}) == 1
    assert [*scoring.rank(results).results] == [*results]
    with pytest.raises(ValueError, match="NaN") as raised:
        scoring.score({"good": frame, "bad": frame * np.nan}, labels, **options)
    assert raised.value.__notes__ == ["This is about the embeddings bad."]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_iterators_serve_all_embeddings_of_a_call() -> None:
    """The second would find labels, groups and excluded ids used up, and be scored on other samples."""
    rows = np.random.RandomState(0).standard_normal((60, 4))
    entries = {"one": rows, "same": rows.copy()}
    options = {"probe": "ridge", "folds": 3, "progress": False}

    def given() -> dict[str, Any]:
        labels = {"sum": map(float, rows.sum(axis=1)), "high": (value > 0 for value in rows[:, 0])}
        return {"labels": labels, "groups": (number // 4 for number in range(60))}

    scored = scoring.score(entries, **given(), **options)
    ranked = scoring.rank(
        entries, **given(), exclude=map(str, range(10)), task_filter=iter(["sum", "high"]), **options
    )
    for results, samples in ((scored, 60), (ranked.results, 50)):
        assert results["one"].to_frame().equals(results["same"].to_frame())
        assert results["one"].to_frame()["samples"].tolist() == [samples, samples]


@pytest.mark.parametrize(("probe", "library"), [("svm", "sklearn.svm"), ("mlp", "torch")])
def test_a_library_that_is_not_installed_is_missing_for_python_too(
    probe: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own error, with what needs the library and the command that installs it."""
    monkeypatch.setitem(sys.modules, library, None)
    for module in ("scoring.probes.svm", "scoring.probes.network"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    rows = np.random.RandomState(0).standard_normal((40, 2))
    with pytest.raises(
        ModuleNotFoundError, match=rf'needs {library}, .* pip install "neuco-worker\[research\]"\.'
    ):
        scoring.score(rows, rows[:, 0], probe, folds=2, progress=False)
