"""``neuco-worker score`` without a configuration, and ``compare`` of its results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

from leaderboard.exchange import leaderboard_csv, rank_table, read_runs
from worker.cli import guarded

ROWS, DIM = 80, 4
IDS = [f"a{number:02}" for number in range(ROWS)]


def write(path: Path, columns: list[str], rows: np.ndarray) -> None:
    """Write a table with an id in front."""
    lines = [
        ",".join([name, *(f"{value:.5g}" for value in row)]) for name, row in zip(IDS, rows, strict=True)
    ]
    path.write_text("\n".join([",".join(["id", *columns]), *lines]) + "\n")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: two of the same size, one narrower; and one on other labels."""
    folder = tmp_path_factory.mktemp("runs")
    random = np.random.default_rng(0)
    latent = random.standard_normal((ROWS, DIM))
    for name, noise, dim in (("ours", 0.1, DIM), ("theirs", 2.0, DIM), ("narrow", 0.1, 2)):
        table = latent + noise * random.standard_normal((ROWS, DIM))
        write(folder / f"{name}.csv", [str(column) for column in range(dim)], table[:, :dim])
    (folder / "labels").mkdir()
    write(folder / "labels/wood__cls.csv", ["label"], (latent[:, :1] > 0).astype(int))
    write(folder / "labels/height__regr.csv", ["label"], latent[:, 1:2])
    (folder / "more").mkdir()
    write(folder / "more/wood__cls.csv", ["label"], (latent[:, 2:3] > 0).astype(int))
    settings = {"k_folds": 10, "epochs": 20, "enable_plots": False, "output_fold_results": True}
    (folder / "quick.yaml").write_text(json.dumps(settings))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, labels in (
            ("ours", "labels"),
            ("theirs", "labels"),
            ("narrow", "labels"),
            ("ours", "more"),
        ):
            arguments = ["--annotation_path", labels, "--submission_file", f"{name}.csv", "--phase", labels]
            assert guarded(["score", *arguments, "--config", "quick.yaml"]) == 0
    return folder / "results"


Compare = Callable[..., dict[str, Any]]


@pytest.fixture
def compare(runs: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    """Run the command on runs of these names."""

    def compared(*names: str, phases: tuple[str, ...] = ("labels",) * 9) -> dict[str, Any]:
        folders = [
            str(next((runs / phase).glob(f"{name}_*"))) for name, phase in zip(names, phases, strict=False)
        ]
        assert guarded(["compare", *folders, "--json"]) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return compared


def test_score_needs_no_configuration_and_prints_each_result_once(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first line names the sample values, every figure is printed once, and a named configuration file must exist."""
    pytest.importorskip("vl_convert")
    monkeypatch.chdir(runs.parent)
    arguments = ["score", "--annotation_path", "labels", "--submission_file", "ours.csv", "--phase", "alone"]
    assert guarded(arguments) == 0
    printed = capsys.readouterr()
    first = (
        "There is no config.yaml, so NeuCo-Bench's sample values are used: 40 folds and the probe linear ("
    )
    assert printed.out.startswith(first)
    [path] = (runs / "alone").glob("*/results_summary.json")
    summary = json.loads(path.read_text())
    for q in summary["task_q_scores"].values():
        assert (printed.out + printed.err).count(f" {q:.3f} ") == 1
    assert guarded([*arguments, "--config", "config.yaml"]) == 2
    monkeypatch.chdir(runs)
    (runs / "config.yaml").write_text("k_folds: 3\nprobe_type: ridge\n")
    arguments = ["score", "--annotation_path", "../labels", "--submission_file", "../ours.csv", "--json"]
    capsys.readouterr()
    assert guarded(arguments) == 0
    assert json.loads(capsys.readouterr().out)["config"]["k_folds"] == 3


def test_runs_are_compared_in_pairs(compare: Compare, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Q and differences agree with the runs, even if their sizes differ; a clear difference has an interval without 0."""
    comparison = compare("ours", "theirs", "narrow")
    assert [run["run"].partition("_")[0] for run in comparison["runs"]] == ["ours", "theirs", "narrow"]
    ours, theirs, _ = comparison["runs"]
    [path] = (runs / "labels").glob("ours_*/results_summary.json")
    assert ours["task_q_scores"] == json.loads(path.read_text())["task_q_scores"]
    for place, difference in enumerate(comparison["differences"], 1):
        assert {task: score["paired"] for task, score in difference["tasks"].items()} == {
            "height": True,
            "wood": True,
        }
        for task, score in difference["tasks"].items():
            expected = comparison["runs"][place]["task_q_scores"][task] - ours["task_q_scores"][task]
            assert score["difference"] == pytest.approx(expected)
        assert difference["overall"]["difference"] == pytest.approx(
            comparison["runs"][place]["overall_q_score"] - ours["overall_q_score"]
        )
    assert theirs["overall_q_score"] < ours["overall_q_score"]
    overall = comparison["differences"][0]["overall"]
    assert (overall["depends_on"], overall["keeps_order"]) == ([], 1.0)
    folders = [str(next((runs / "labels").glob(f"{name}_*"))) for name in ("ours", "theirs")]
    assert guarded(["compare", *folders]) == 0
    assert (
        "A is ahead of B, also without any one of the 2 tasks; it is ahead in 100 %"
        in capsys.readouterr().out
    )
    assert comparison["left_out"] == []


def test_tasks_with_other_labels_are_reported_as_unpaired(
    compare: Compare, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """This covers other labels under the same name, and a task that only one run has."""
    comparison = compare("ours", "ours", phases=("labels", "more"))
    assert list(comparison["differences"][0]["tasks"]) == ["wood"]
    assert not comparison["differences"][0]["tasks"]["wood"]["paired"]
    assert comparison["left_out"] == ["height"]
    folders = [str(next((runs / phase).glob("ours_*"))) for phase in ("labels", "more")]
    assert guarded(["compare", *folders]) == 0
    output = capsys.readouterr().out
    assert "B and A were not compared fold by fold in wood" in output
    assert "Left out, because some run has no score: height." in output


def test_folds_with_the_same_test_part_are_not_counted_as_several(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With few groups, `score` writes which folds tested the same samples. If all did, nothing is known of other splits."""
    folders = []
    for name in ("ours", "theirs"):
        folders.append(str(tmp_path / name))
        copytree(next((runs / "labels").glob(f"{name}_*")), tmp_path / name)
        for path in (tmp_path / name).glob("*/*_result.json"):
            result = json.loads(path.read_text())
            path.write_text(json.dumps({**result, "test_parts": [0] * len(result["q_t"])}))
    assert guarded(["compare", *folders, "--json"]) == 0
    [difference] = json.loads(capsys.readouterr().out)["differences"]
    intervals = [score["interval"] for score in (difference["overall"], *difference["tasks"].values())]
    assert intervals == [None] * 3


def test_runs_that_cannot_be_compared_are_refused(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One run, no run, a run without folds, and no common task all give exit status 2 and a hint."""
    ours, more = (str(next((runs / phase).glob("ours_*"))) for phase in ("labels", "more"))
    bare = tmp_path / "bare"
    (bare / "height").mkdir(parents=True)
    (bare / "results_summary.json").write_text('{"task_q_scores": {"height": 1.0}}')
    (bare / "height/height_result.json").write_text('{"q_stat": 1.0}')
    other = tmp_path / "other"
    (other / "height").mkdir(parents=True)
    (other / "results_summary.json").write_text('{"task_q_scores": {"height": 1.0}}')
    (other / "height/height_result.json").write_text('{"q_stat": 1.0, "q_t": [0.5, 0.6]}')
    for arguments, words in (
        ([ours], "needs two runs"),
        ([ours, str(tmp_path)], "is not the folder of a run"),
        ([ours, str(bare)], "has no fold scores"),
        ([more, str(other)], "no task in common"),
    ):
        assert guarded(["compare", *arguments]) == 2
        assert words in capsys.readouterr().err
    assert guarded(["compare", ours, str(other)]) == 0
    assert "B and A were not compared fold by fold in height" in capsys.readouterr().out


def edited(run: Path, file: str, **changes: object) -> None:
    """Change keys of a run's file."""
    document = json.loads((run / file).read_text())
    (run / file).write_text(json.dumps({**document, **changes}))


def test_a_run_with_another_number_of_folds_is_compared_unpaired(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same splits cannot have other folds, whatever the file says; nor are tasks with other folds drawn together."""
    ours, theirs = (
        str(copytree(next((runs / "labels").glob(f"{name}_*")), tmp_path / name))
        for name in ("ours", "theirs")
    )
    edited(Path(ours), "wood/wood_result.json", q_t=[0.5, 0.6])
    assert guarded(["compare", ours, theirs, "--json"]) == 0
    [difference] = json.loads(capsys.readouterr().out)["differences"]
    assert {task: score["paired"] for task, score in difference["tasks"].items()} == {
        "height": True,
        "wood": False,
    }


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("results_summary.json", {"task_q_scores": {"wood": 1e200}}),
        ("results_summary.json", {"task_q_scores": {"../wood": 1.0}}),
        ("results_summary.json", {"task_q_scores": {"wo\0od": 1.0}}),
        ("wood/wood_result.json", {"metrics": {"f1": {}}}),
        ("wood/wood_result.json", {"q_t": [1e200]}),
    ],
)
def test_a_run_that_score_cannot_have_written_is_refused(
    file: str, changes: dict[str, object], runs: Path, tmp_path: Path
) -> None:
    """Scores have a largest value, tasks are names of files, and metrics have means; nothing is written elsewhere."""
    run = copytree(next((runs / "labels").glob("ours_*")), tmp_path / "labels" / "ours")
    copytree(run / "wood", run.parent / "wood")
    edited(run, file, **changes)
    commands = [
        ["compare", str(run), str(run)],
        ["export", str(run), "--to", "neurobench", "--output", str(tmp_path / "out")],
    ]
    if "summary" in file:
        commands.append(["rank", str(tmp_path), "--phase", "labels"])
    assert [guarded(command) for command in commands] == [2] * len(commands)


def test_a_phase_is_the_name_of_a_folder(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise runs elsewhere would be ranked, and a leaderboard written there."""
    copytree(runs / "labels", tmp_path / "labels")
    (tmp_path / "results").mkdir()
    assert guarded(["rank", str(tmp_path / "results"), "--phase", "../labels"]) == 2
    assert "--phase '../labels' cannot be used as the name of a folder" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels", "results"]


def test_a_leaderboard_keeps_the_order_of_tasks(tmp_path: Path) -> None:
    """Its columns are in the order of the runs' tasks; a baseline has no rank."""
    for name in ("one", "two"):
        (tmp_path / "results" / name).mkdir(parents=True)
        document = {
            "task_q_scores": {"wood": 2.0, "height": 1.0},
            "task_acc_scores": {"wood": 0.5, "height": 0.4},
        }
        (tmp_path / "results" / name / "results_summary.json").write_text(json.dumps(document))
    runs = read_runs(tmp_path / "results")
    assert list(runs.table.columns) == ["wood", "height"]
    text = leaderboard_csv(runs, rank_table(runs.table, baselines=["one"]))
    header, *rows = [line.split(",") for line in text.splitlines()]
    assert [row[header.index("aggregated_rank")] for row in rows] == ["1", ""]
    assert [name for name in header if "::" in name] == ["q::wood", "q::height", "acc::wood", "acc::height"]
