"""People who come from NeuCo-Bench: their flags, files, folders, keys and numbers."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from worker.cli import guarded

GOLDEN = Path(__file__).parent.parent / "scoring" / "golden"


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
        document = {"k_folds": 2, "batch_size": 16, "epochs": 2, "learning_rate": 0.01, "enable_plots": False}
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
    """Every fold, mean and spread that NeuCo-Bench wrote is in our files under its keys to 1e-5, every Q, on a scale of 100, to 1e-4."""
    expected = json.loads((GOLDEN / case / "expected.json").read_text())
    folder = run_score(tmp_path, GOLDEN / case)
    summary = json.loads((folder / "results_summary.json").read_text())
    first = [
        "experiment",
        "overall_q_score",
        "overall_acc_score",
        "task_q_scores",
        "task_acc_scores",
        "config",
    ]
    assert list(summary)[:6] == first
    assert summary["experiment"] == folder.name
    assert summary["config"] == yaml.safe_load((GOLDEN / case / "config.yaml").read_text())
    assert summary["overall_q_score"] == pytest.approx(expected["overall_q_score"], abs=1e-4)
    assert summary["overall_acc_score"] == pytest.approx(expected["overall_acc_score"], abs=1e-5)
    assert list(summary["task_q_scores"]) == sorted(expected["tasks"])
    for task, golden in expected["tasks"].items():
        result = json.loads((folder / task / f"{task}_result.json").read_text())
        assert list(result)[:5] == ["q_stat", "mean_score", "std_dev", "hyperparamters", "q_t"]
        assert result["q_stat"] == pytest.approx(golden["q"], abs=1e-4)
        assert result["mean_score"] == pytest.approx(golden["mean"], abs=1e-5)
        assert result["std_dev"] == pytest.approx(golden["std"], abs=1e-5)
        assert result["q_t"] == pytest.approx(golden["folds"], abs=1e-5)
        assert summary["task_q_scores"][task] == result["q_stat"]
        assert summary["task_acc_scores"][task] == result["mean_score"]


def test_the_flat_form_of_the_paper_means_the_same(small_case: Callable[..., Path], tmp_path: Path) -> None:
    """Appendix B.2 writes the probe's parameters at the top, and false for all tasks."""
    nested = {"probe_params": {"batch_size": 16, "epochs": 2, "learning_rate": 0.01}, "probe_type": "linear"}
    flat = small_case(task_filter=False)
    config = tmp_path / "nested.yaml"
    config.write_text(yaml.safe_dump({"k_folds": 2, "enable_plots": False, "task_filter": None, **nested}))
    one = json.loads((run_score(tmp_path / "a", flat) / "results_summary.json").read_text())
    other = json.loads((run_score(tmp_path / "b", flat, config=config) / "results_summary.json").read_text())
    assert one["task_q_scores"] == other["task_q_scores"]
    assert set(one["task_q_scores"]) == {"slope", "sign"}


def test_seed_42_unless_told_otherwise(small_case: Callable[..., Path], tmp_path: Path) -> None:
    """The default seed is NeuCo-Bench's; another gives other folds."""
    case = small_case(output_fold_results=True)
    scores = []
    for number, more in enumerate(((), ("--seed", "42"), ("--seed", "43"))):
        folder = run_score(tmp_path / str(number), case, more=more)
        scores.append(json.loads((folder / "slope" / "slope_result.json").read_text())["q_t"])
    assert scores[0] == scores[1] != scores[2]


def test_leniencies_warn(
    small_case: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a challenge refuses is scored here, and each leniency is said aloud and kept in the results."""
    case = small_case(embedding_dim=8)
    lines = (case / "embeddings.csv").read_text().splitlines()
    lines[1] = ",".join(["0000", "oops", *lines[1].split(",")[2:]])
    del lines[5]
    (case / "embeddings.csv").write_text("\n".join([*lines, "stranger" + ",1" * 6]))
    folder = run_score(tmp_path, case)
    warnings = json.loads((folder / "results_summary.json").read_text())["warnings"]
    assert [warning.split(" ", 1)[0] for warning in warnings] == ["1", "1", "The"]
    assert "1 cells are no numbers" in warnings[0]
    assert "1 labelled ids have no embedding" in warnings[1]
    assert "padded with zeros to 8" in warnings[2]
    shown = "".join(capsys.readouterr().err.split("Warning: "))
    assert all(warning in shown for warning in warnings)
    assert json.loads((folder / "slope" / "slope_result.json").read_text())["samples"] == 79


def test_excluded_ids_and_filtered_tasks_stay_out(small_case: Callable[..., Path], tmp_path: Path) -> None:
    """--exclude_file and task_filter leave out what they name."""
    case = small_case(task_filter=["slope"])
    (tmp_path / "bad.txt").write_text("0001\n0002\n\nunknown\n")
    folder = run_score(tmp_path / "out", case, more=("--exclude_file", str(tmp_path / "bad.txt")))
    assert json.loads((folder / "slope" / "slope_result.json").read_text())["samples"] == 78
    assert list(json.loads((folder / "results_summary.json").read_text())["task_q_scores"]) == ["slope"]


def test_standardisation_runs_over_the_union_of_all_label_files(
    small_case: Callable[..., Path], tmp_path: Path
) -> None:
    """Ids of a task that is filtered out still count for the mean and spread of the embeddings, as in NeuCo-Bench."""
    case = small_case(task_filter=["slope"])
    table = (case / "embeddings.csv").read_text().rstrip() + "\nfar" + ",50" * 6 + "\n"
    (case / "embeddings.csv").write_text(table)
    alone = json.loads((run_score(tmp_path / "a", case) / "results_summary.json").read_text())
    sign = case / "labels" / "sign__cls.csv"
    sign.write_text(sign.read_text() + "far,1\n")
    joint = json.loads((run_score(tmp_path / "b", case) / "results_summary.json").read_text())
    assert alone["task_q_scores"] != joint["task_q_scores"]


def test_summarize_ranks_complete_runs(small_case: Callable[..., Path], tmp_path: Path) -> None:
    """Runs without a score in some task of the phase are left out; the CSV has NeuCo-Bench's columns, the best run first."""
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
        (folder / "results_summary.json").write_text(json.dumps(document))
    assert guarded(["summarize", "--output_dir", str(results), "--phase", "dev"]) == 0
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


def test_update_leaderboard_ranks_after_the_run(small_case: Callable[..., Path], tmp_path: Path) -> None:
    """With update_leaderboard each run ends with a leaderboard of its phase."""
    case = small_case(update_leaderboard=True)
    folder = run_score(tmp_path, case)
    [path] = (tmp_path / "leaderboards" / "dev").glob("*.csv")
    assert folder.name in path.read_text()


def test_json_is_one_document(
    small_case: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--json prints the summary on stdout and nothing else."""
    folder = run_score(tmp_path, small_case(), more=("--json",))
    document = json.loads(capsys.readouterr().out)
    assert document["folder"] == str(folder)
    assert set(document["task_q_scores"]) == {"slope", "sign"}


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"k_folds": 0}, 2),
        ({"epochs": "many"}, 2),
        ({"probe_type": "forest"}, 2),
        ({"task_filter": ["nothing"]}, 2),
        ({"embedding_dim": 3}, 1),
    ],
)
def test_wrong_settings_are_named(
    small_case: Callable[..., Path],
    tmp_path: Path,
    settings: dict,
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A wrong value ends with its exit status and a sentence, before anything is trained."""
    case = small_case(**settings)
    arguments = ["score", "--annotation_path", str(case / "labels"), "--output_dir", str(tmp_path / "out")]
    arguments += ["--submission_file", str(case / "embeddings.csv"), "--config", str(case / "config.yaml")]
    assert guarded(arguments) == status
    assert "Traceback" not in (shown := capsys.readouterr().err)
    assert shown.startswith("neuco-worker: ")
