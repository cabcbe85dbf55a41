"""The command line keeps NeuCo-Bench's flags, files, folders, keys and numbers."""

from __future__ import annotations

import csv
import json
import re
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from scoring.neuco_bench.resuming import mark_begun
from tests.later import GROUP, Later
from worker.cli import guarded

pytestmark = GROUP
torch = Later("torch")

GOLDEN = Path(__file__).parent.parent / "scoring" / "golden"
# These keys come after the six of NeuCo-Bench.
OUR_SUMMARY_KEYS = {
    "probe_type",
    "seed",
    "embedding_dim",
    "warnings",
    "seconds",
    "versions",
    "machine",
    "inputs",
}
OUR_TASK_KEYS = {
    "splits",
    "labels",
    "task_type",
    "samples",
    "folds",
    "failed_folds",
    "enough_steps",
    "metrics",
    "complexity",
    "seconds",
}


def run_score(output: Path, case: Path, *, config: Path | None = None, more: tuple[str, ...] = ()) -> Path:
    """Score a case through the command line and return its run folder."""
    status = guarded(
        [
            "score",
            "--annotation_path", str(case / "labels"),
            "--submission_file", str(case / "embeddings.csv"),
            "--output_dir", str(output),
            "--config", str(config or case / "config.yaml"),
            "--method_name", "mine",
            "--phase", "dev",
            *more,
        ]
    )  # fmt: skip
    assert status == 0
    return max((output / "dev").iterdir())


def summary_of(folder: Path) -> dict[str, Any]:
    """Read a run's summary."""
    document: dict[str, Any] = json.loads((folder / "results_summary.json").read_text())
    return document


def result_of(folder: Path, task: str) -> dict[str, Any]:
    """Read a task's result."""
    document: dict[str, Any] = json.loads((folder / task / f"{task}_result.json").read_text())
    return document


@pytest.fixture
def small_case(tmp_path: Path) -> Callable[..., Path]:
    """Make a tiny benchmark: 80 samples, a regression and a classification."""

    def make(name: str = "case", **settings: object) -> Path:
        case = tmp_path / name
        (case / "labels").mkdir(parents=True)
        generator = np.random.RandomState(1)
        values = generator.standard_normal((80, 6))
        signal = values @ generator.standard_normal(6)
        ids = [f"{number:04}" for number in range(80)]  # leading zeros must survive
        write_csv(
            case / "embeddings.csv", ["id", *range(6)], ([i, *v] for i, v in zip(ids, values, strict=True))
        )
        write_csv(case / "labels" / "slope__regr.csv", ["id", "label"], zip(ids, signal, strict=True))
        write_csv(
            case / "labels" / "sign__cls.csv", ["id", "label"], zip(ids, (signal > 0) * 2 - 1, strict=True)
        )
        document = {"k_folds": 2, "batch_size": 16, "epochs": 2, "learning_rate": 0.1, "enable_plots": False}
        (case / "config.yaml").write_text(yaml.safe_dump(document | settings))
        return case

    return make


def write_csv(path: Path, header: list[object], rows: object) -> None:
    """Write a table."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", ["digits_pixels", "digits_pca16_padded"])
def test_golden_results_come_out_of_the_command_line(case: str, tmp_path: Path) -> None:
    """Our files have NeuCo-Bench's fold scores, means and spreads under its keys to within 1e-5, and its Q to within 1e-5 of its value."""
    expected = json.loads((GOLDEN / case / "expected.json").read_text())
    folder = run_score(tmp_path, GOLDEN / case)
    summary = summary_of(folder)
    first = [
        "experiment",
        "overall_q_score",
        "overall_acc_score",
        "task_q_scores",
        "task_acc_scores",
        "config",
    ]
    assert list(summary)[:6] == first
    assert set(summary) - set(first) == OUR_SUMMARY_KEYS
    assert summary["experiment"] == folder.name
    config = yaml.safe_load((GOLDEN / case / "config.yaml").read_text())
    del config["probe_params"]["device"]
    assert summary["config"] == config
    assert summary["overall_q_score"] == pytest.approx(expected["overall_q_score"], rel=1e-5, abs=0)
    assert summary["overall_acc_score"] == pytest.approx(expected["overall_acc_score"], rel=0, abs=1e-5)
    assert list(summary["task_q_scores"]) == list(summary["task_acc_scores"]) == sorted(expected["tasks"])
    assert {path.name for path in folder.iterdir()} == {"results_summary.json", *expected["tasks"]}
    for task, golden in expected["tasks"].items():
        result = result_of(folder, task)
        theirs = ["q_stat", "mean_score", "std_dev", "hyperparamaters", "q_t"]
        assert list(result)[:5] == theirs
        assert set(result) - set(theirs) == OUR_TASK_KEYS
        assert result["hyperparamaters"] == config["probe_params"]
        assert result["q_stat"] == pytest.approx(golden["q"], rel=1e-5, abs=0)
        assert result["mean_score"] == pytest.approx(golden["mean"], rel=0, abs=1e-5)
        assert result["std_dev"] == pytest.approx(golden["std"], rel=0, abs=1e-5)
        assert result["q_t"] == pytest.approx(golden["folds"], rel=0, abs=1e-5)
        assert summary["task_q_scores"][task] == result["q_stat"]
        assert summary["task_acc_scores"][task] == result["mean_score"]


def test_files_and_labels_are_enough(
    small_case: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`score FILE... LABELS` scores each file by NeuCo-Bench's sample values and marks scores of too few steps; labels may be one file."""
    case = small_case()
    shutil.copy(case / "embeddings.csv", tmp_path / "one.csv")
    (tmp_path / "two.csv").symlink_to(case / "embeddings.csv")
    table = pd.read_csv(tmp_path / "one.csv", dtype={"id": str})
    for name in ("net-v1.5", "spark.parquet"):
        (tmp_path / name).mkdir()
        table.to_parquet(tmp_path / name / "part.parquet")
    monkeypatch.chdir(tmp_path)
    files = ("one.csv", "two.csv", "net-v1.5", "spark.parquet")
    assert guarded(["score", *files, str(case / "labels"), "--folds", "2"]) == 0
    shown = capsys.readouterr()
    assert "Set epochs to" in shown.err
    assert "*" in shown.out
    runs = {path.parent.name.split("_")[0] for path in Path("results/results").glob("*/results_summary.json")}
    assert runs == {"one", "two", "net-v1.5", "spark"}
    assert (
        guarded(["score", "one.csv", str(case / "labels" / "sign__cls.csv"), "--json", "--folds", "2"]) == 0
    )
    assert list(json.loads(capsys.readouterr().out)["task_q_scores"]) == ["sign"]
    for arguments in (
        ["one.csv"],
        ["none.csv", "labels"],
        ["one.csv", "two.csv", "labels", "--method_name", "m"],
    ):
        assert guarded(["score", *arguments]) == 2


def test_prefixes_of_one_file_are_scored_in_one_table(
    small_case: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each number of dimensions is a run of its own, with the scores of a file that has no more."""
    case = small_case()
    run_score(tmp_path / "runs", case, more=("--dims", "6,2"))
    printed = capsys.readouterr().out
    assert re.search(r"Task +┃ +2 ┃ +6 ┃", printed)
    narrow, whole = sorted((tmp_path / "runs/dev").iterdir())
    assert [summary_of(folder)["embedding_dim"] for folder in (narrow, whole)] == [2, 6]
    table = [line.split(",") for line in (case / "embeddings.csv").read_text().splitlines()]
    write_csv(case / "embeddings.csv", [*table[0][:3]], (row[:3] for row in table[1:]))
    alone = run_score(tmp_path / "alone", case)
    assert summary_of(alone)["task_q_scores"] == summary_of(narrow)["task_q_scores"]
    for wrong in ("3", "0", "a", "1,", "9" * 5000):
        assert guarded(["score", str(case / "embeddings.csv"), str(case / "labels"), "--dims", wrong]) == 2
    assert "--dims names 3 dimensions, but the embeddings have 2" in capsys.readouterr().err


def test_a_stopped_run_of_many_files_goes_on_where_it_was(
    small_case: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What was scored with the same inputs and configuration is shown again, not computed; anything else is computed."""
    case, runs = small_case(), tmp_path / "results/results"
    labels = case / "labels"
    monkeypatch.chdir(tmp_path)
    shutil.copy(case / "embeddings.csv", "one.csv")
    assert guarded(["score", "one.csv", "two.csv", str(labels), "--folds", "2"]) == 1  # stopped by the second
    first, err = capsys.readouterr()
    assert "two.csv: The file cannot be read: No such file" in err
    [one] = runs.iterdir()
    (tmp_path / "two.csv").write_text((tmp_path / "one.csv").read_text().replace("0001", "none"))

    def scored(*more: str, files: tuple[str, ...] = ("one.csv", "two.csv")) -> tuple[int, str, str]:
        before = len(list(runs.iterdir()))
        assert guarded(["score", *files, str(labels), "--folds", "2", *more]) == 0
        shown = capsys.readouterr()
        return len(list(runs.iterdir())) - before, shown.out, shown.err

    added, out, err = scored()
    assert (added, "1 of 2 runs had been scored before" in err) == (1, True)
    assert out.startswith(first)
    added, out, err = scored("--json")
    assert (added, "2 of 2 runs had been scored before" in err) == (0, True)
    assert json.loads(out)[0] == summary_of(one) | {"folder": str(one.relative_to(tmp_path))}
    assert "Set epochs to" in err
    shutil.copy("one.csv", "one_more.csv")
    assert scored(files=("one_more.csv",))[0] == 1
    for more in (("--folds", "3"), ("--seed", "1"), ("--probe", "ridge"), ("--dims", "2,3")):
        added, _, err = scored(*more, files=("one.csv",))
        assert (added, "before" in err) == (1 + (more[0] == "--dims"), False), more
    table = (labels / "sign__cls.csv").read_text()
    (labels / "sign__cls.csv").write_text(table.replace(",1", ",-1", 1))
    assert scored(files=("one.csv",))[0] == 1
    (labels / "sign__cls.csv").write_text(table)
    (one / "sign" / "sign_result.json").unlink()
    assert scored(files=("one.csv",))[0] == 1
    tables = {file: file.read_text().splitlines() for file in labels.glob("*.csv")}
    for factor in (1, 3):  # the same number of groups, but others
        for file, (header, *rows) in tables.items():
            grouped = (f"{row},tile {factor * number % 80 // 10}" for number, row in enumerate(rows))
            file.write_text("\n".join([f"{header},group", *grouped]) + "\n")
        added, _, err = scored(files=("one.csv",))
        assert (added, "each of 8 groups is in one part of a split, whole" in err) == (1, True)
    monkeypatch.setattr("scoring.neuco_bench.resuming.sources_digest", lambda: "a later commit")
    assert scored(files=("one.csv",))[0] == 1


def test_options_come_before_the_configuration(small_case: Callable[..., Path], tmp_path: Path) -> None:
    """Another probe keeps what it has of the parameters; the results say what was used."""
    case = small_case()
    trained = summary_of(run_score(tmp_path / "a", case, more=("--epochs", "3", "--folds", "3")))
    assert trained["config"]["probe_params"] == {"epochs": 3}
    assert trained["config"]["k_folds"] == 3
    assert result_of(max((tmp_path / "a/dev").iterdir()), "slope")["hyperparamaters"]["batch_size"] == 16
    solved = summary_of(run_score(tmp_path / "b", case, more=("--probe", "ridge")))
    assert (solved["probe_type"], solved["config"]["probe_params"]) == ("ridge", {})
    names = [str(case / "embeddings.csv"), str(case / "labels")]
    assert guarded(["score", *names, "--probe", "ridge", "--epochs", "3"]) == 2


def test_excluded_ids_and_filtered_tasks_stay_out(small_case: Callable[..., Path], tmp_path: Path) -> None:
    """--exclude_file leaves out ids, task_filter keeps some tasks, and update_leaderboard ranks the phase after the run."""
    case = small_case(task_filter=["slope"], update_leaderboard=True)
    (tmp_path / "bad.txt").write_text("0001\n0002.zarr\n\nunknown\n")
    folder = run_score(tmp_path / "out", case, more=("--exclude_file", str(tmp_path / "bad.txt")))
    assert result_of(folder, "slope")["samples"] == 78
    assert list(summary_of(folder)["task_q_scores"]) == ["slope"]
    [path] = (tmp_path / "out" / "leaderboards" / "dev").glob("*.csv")
    assert folder.name in path.read_text()


def test_standardization_runs_over_the_union_of_all_label_files(
    small_case: Callable[..., Path], tmp_path: Path
) -> None:
    """Ids that only a filtered-out task labels still count for the mean and spread of the embeddings, as in NeuCo-Bench, with a warning."""
    case = small_case(task_filter=["slope"])
    table = (case / "embeddings.csv").read_text().rstrip() + "\nfar" + ",50" * 6 + "\n"
    (case / "embeddings.csv").write_text(table)
    alone = summary_of(run_score(tmp_path / "a", case))
    with (case / "labels" / "sign__cls.csv").open("a") as file:
        file.write("far,1\n")
    joint = summary_of(run_score(tmp_path / "b", case, more=("--seed", "42")))
    assert alone["task_q_scores"] != joint["task_q_scores"]
    assert alone["warnings"] == []
    assert joint["warnings"] == [
        "The embeddings are standardized over all 81 samples that any label file names,"
        " also for tasks that label fewer: slope."
    ]


def test_rank_ranks_complete_runs(small_case: Callable[..., Path], tmp_path: Path) -> None:
    """Runs that lack a score for a task of the phase are left out, and the CSV lists the best run first, in NeuCo-Bench's columns."""
    results = tmp_path / "results"
    for name, scores in {
        "good_1": {"a": 20.0, "b": 10.0},
        "fair_2": {"a": 10.0, "b": 9.0},
        "part_3": {"a": 30.0},
        "nan_4": {"a": 30.0, "b": float("nan")},
    }.items():
        folder = results / "dev" / name
        folder.mkdir(parents=True)
        document = {"experiment": name, "task_q_scores": scores, "task_acc_scores": {"a": 0.5}}
        if name == "fair_2":  # as NeuCo-Bench wrote it before February 2026
            document = {"experiment": name, "overall_score": 9.5, "task_results": scores}
        (folder / "results_summary.json").write_text(json.dumps(document))
    assert guarded(["rank", str(results), "--phase", "dev"]) == 0
    [path] = (results / "leaderboards" / "dev").glob("leaderboard_*.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["experiment"] for row in rows] == ["good_1", "fair_2"]
    assert [row["aggregated_rank"] for row in rows] == ["1", "2"]
    assert float(rows[1]["weighted_score"]) == 2.0
    assert float(rows[0]["mean_score"]) == 15.0
    assert list(rows[0])[:6] == [
        "experiment",
        "mean_score",
        "weighted_score",
        "aggregated_rank",
        "q::a",
        "q::b",
    ]


def test_a_run_that_was_stopped_and_computed_again_is_ranked_once(
    small_case: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has its scores while its plots are drawn; twice in the ranking, it would push the others down."""

    def ranked() -> tuple[list[str], list[dict[str, str]]]:
        capsys.readouterr()
        assert guarded(["rank", str(tmp_path), "--phase", "dev", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        return [entry["entry"] for entry in document["entries"]], document["left_out"]

    case = small_case()
    stopped = run_score(tmp_path, case)
    mark_begun(stopped, summary_of(stopped)["inputs"])
    assert ranked() == ([stopped.name], [])
    again = run_score(tmp_path, case)
    reason = {"run": stopped.name, "reason": "was stopped, and computed again"}
    assert (again != stopped, ranked()) == (True, ([again.name], [reason]))
    assert "unfinished" not in summary_of(again)


def test_rank_says_which_tasks_were_not_the_same(
    small_case: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs on other labels or splits of a task are ranked, because NeuCo-Bench's results do not say what theirs were, but not silently."""
    case = small_case(output_fold_results=True)
    results, words = tmp_path / "results", ["rank", str(tmp_path / "results"), "--json"]
    for seed in ("42", "43"):
        run_score(results, case, more=("--seed", seed))
        capsys.readouterr()
        assert guarded([*words, "--phase", "dev"]) == 0
        differing = json.loads(capsys.readouterr().out)["differing"]
        assert differing == ([] if seed == "42" else ["sign", "slope"])
    assert guarded([*words[:2], "--phase", "dev"]) == 0
    assert "the same labels and splits: see sign, slope." in capsys.readouterr().out


def test_plots_and_metrics_are_those_of_the_paper(small_case: Callable[..., Path], tmp_path: Path) -> None:
    """With enable_plots, a run draws PNG files into NeuCo-Bench's folders; the results have the paper's metrics and the probe's cost."""
    folder = run_score(tmp_path, small_case(enable_plots=True, k_folds=1))
    drawn = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.png"))
    assert drawn == [
        "sign/confusion_matrices/embeddings_sign_cm_fold1.png",
        "sign/loss_curves/sign_train_loss_curves.png",
        "sign/loss_curves/sign_validation_loss_curves.png",
        "sign/roc_curves/embeddings_sign_roc_fold1.png",
        "slope/loss_curves/slope_train_loss_curves.png",
        "slope/loss_curves/slope_validation_loss_curves.png",
        "slope/regression_scatter/embeddings_slope_scatter_fold1.png",
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.rglob("*.png"))
    slope = result_of(folder, "slope")
    sign = result_of(folder, "sign")
    assert set(slope["metrics"]) == {"r2", "mse", "mae"}
    assert slope["metrics"]["r2"]["mean"] == pytest.approx(slope["mean_score"], abs=1e-5)
    assert set(sign["metrics"]) == {"f1", "precision", "recall", "accuracy", "roc_auc"}
    assert sign["metrics"]["f1"]["mean"] == pytest.approx(sign["mean_score"])
    assert slope["complexity"]["probe_parameters"] == 7
    assert slope["complexity"]["embedding_bytes"] == 24
    assert slope["complexity"]["activation_sparsity"] == 0.0


def test_several_classes_and_labels(small_case: Callable[..., Path], tmp_path: Path) -> None:
    """Tasks with more than two classes or several labels per sample are scored; the other tasks keep their scores."""
    case = small_case()
    before = summary_of(run_score(tmp_path / "a", case))
    with (case / "labels" / "slope__regr.csv").open() as file:
        rows = [(row["id"], float(row["label"])) for row in csv.DictReader(file)]
    labels = case / "labels"
    write_csv(
        labels / "name__multiclass.csv",
        ["id", "label"],
        ((i, ("low", "mid", "high")[int(v > -1) + int(v > 1)]) for i, v in rows),
    )
    names = [";".join(name for name, bound in (("x", 0), ("y", 1), ("z", -1)) if v > bound) for _, v in rows]
    write_csv(labels / "many__multilabel.csv", ["id", "label"], zip((i for i, _ in rows), names, strict=True))
    folder = run_score(tmp_path / "b", case)
    summary = summary_of(folder)
    assert set(summary["task_q_scores"]) == {"slope", "sign", "name", "many"}
    assert {task: summary["task_q_scores"][task] for task in before["task_q_scores"]} == before[
        "task_q_scores"
    ]
    kinds = {task: result_of(folder, task) for task in ("name", "many")}
    assert [kinds[task]["task_type"] for task in kinds] == ["multiclass", "multilabel"]
    assert kinds["name"]["classes"] == ["high", "low", "mid"]


@pytest.mark.parametrize("normalize", [True, False])
def test_stored_probes_predict(normalize: bool, small_case: Callable[..., Path], tmp_path: Path) -> None:
    """A stored probe, loaded by the script next to it, predicts the labels; storing it changes no score, and the run says what differs."""
    document = {
        "k_folds": 2,
        "probe_type": "ridge",
        "probe_params": {"alphas": [0.001]},
        "enable_plots": False,
    }
    case, config = small_case("a"), tmp_path / "ridge.yaml"
    config.write_text(
        yaml.safe_dump(
            document | {"store_probes": True, "normalize_labels": normalize, "task_filter": "slope"}
        )
    )
    stored = run_score(tmp_path, case, config=config) / "slope" / "probe"
    assert set(torch.load(stored / "probe.pth")) >= {"state_dict", "input_dim", "output_dim", "task_type"}
    script = runpy.run_path(str(stored / "load_probe.py"))
    probe, kind = script["load_probe"](stored)
    about = torch.load(stored / "probe.pth")
    assert (kind, set(about["state_dict"])) == ("regr", {"linear.weight", "linear.bias"})
    table = np.loadtxt(case / "embeddings.csv", delimiter=",", skiprows=1)[:, 1:]
    labels = np.loadtxt(case / "labels" / "slope__regr.csv", delimiter=",", skiprows=1)[:, 1]
    rows = (table - about["embedding_mean"]) / about["embedding_std"]
    with torch.no_grad():
        predicted = probe(torch.from_numpy(rows.astype(np.float32))).numpy()
    np.testing.assert_allclose(predicted * about["label_range"] + about["label_low"], labels, atol=0.01)
    assert ((about["label_low"], about["label_range"]) != (0, 1)) is normalize
    plain, storing = (
        json.loads(
            (run_score(tmp_path / name, small_case(name, **more)) / "results_summary.json").read_text()
        )
        for name, more in (("b", {}), ("c", {"store_probes": True}))
    )
    assert plain["task_q_scores"] == storing["task_q_scores"]
    assert [warning for warning in storing["warnings"] if "random numbers" in warning]
