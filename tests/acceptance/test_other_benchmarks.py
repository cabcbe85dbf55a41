"""Task packages check themselves, hand-written files in the format of GEO-Bench can be read, and our exports follow those formats."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from scoring.neuco_bench.resuming import mark_begun
from scoring.tasks import load_tasks
from tests.later import GROUP, Later
from worker.cli import guarded

pytestmark = GROUP
stats = Later("scipy.stats")

FILES = Path(__file__).parent / "other_benchmarks"
EXAMPLE = Path(__file__).parents[2] / "config" / "researcher"


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    """Copy the hand-written GEO-Bench submission."""
    return Path(shutil.copytree(FILES / "geobench" / "new_submission", tmp_path / "new_submission"))


def rows_of(submission: Path) -> list[dict[str, str]]:
    """Read the submission's results."""
    with (submission / "results_and_parameters.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def write_rows(submission: Path, rows: list[dict[str, str]]) -> None:
    """Write the submission's results."""
    with (submission / "results_and_parameters.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def import_json(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, dict[str, Any]]:
    """Import a submission, and return the exit status and the JSON document."""
    capsys.readouterr()
    status = guarded(["import", *map(str, arguments), "--json"])
    return status, json.loads(capsys.readouterr().out)


# Brain-Score: a benchmark is a package with its own expectations


def test_the_same_model_gives_the_same_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The shipped example passes its own check, an increased version number gives new cells, and a changed label fails the check."""
    package = Path(shutil.copytree(EXAMPLE / "tasks" / "even", tmp_path / "tasks" / "even"))
    assert guarded(["task", "check", str(package)]) == 0
    assert guarded(["task", "check", str(tmp_path)]) == 0  # a folder that contains a folder of tasks
    ids = [row.split(",")[0] for row in (package / "labels.csv").read_text().splitlines()[1:]]
    [before] = load_tasks(tmp_path / "tasks", ids)
    (package / "task.yaml").write_text(
        (package / "task.yaml").read_text().replace("version: 1", "version: 2")
    )
    [after] = load_tasks(tmp_path / "tasks", ids)
    assert before.version != after.version
    labels = (package / "labels.csv").read_text().splitlines()
    labels[1] = labels[1][:-1] + str(1 - int(labels[1][-1]))
    (package / "labels.csv").write_text("\n".join(labels))
    capsys.readouterr()
    assert guarded(["task", "check", str(package), "--json"]) == 1
    [task] = json.loads(capsys.readouterr().out)["tasks"]
    assert [finding["check"] for finding in task["findings"] if not finding["passed"]] == ["baseline"]


def test_ceiled_scores_and_groups_are_in_the_results(tmp_path: Path) -> None:
    """With packages among the tasks, a run reports ceiled scores and the scores of groups."""
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"k_folds": 2, "epochs": 2, "enable_plots": False}))
    arguments = [
        "--annotation_path",
        str(EXAMPLE / "tasks"),
        "--submission_file",
        str(EXAMPLE / "embeddings.csv"),
    ]
    assert guarded(["score", *arguments, "--config", str(config), "--output_dir", str(tmp_path / "out")]) == 0
    [path] = (tmp_path / "out").glob("results/*/results_summary.json")
    summary = json.loads(path.read_text())
    assert summary["task_ceiled_scores"]["even"] == pytest.approx(summary["task_acc_scores"]["even"])
    assert [group["group"] for group in summary["groups"]] == ["", "digits", "digits/number"]


# GEO-Bench: results by pull request


def test_a_submission_is_normalized_aggregated_and_ranked(
    submission: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results are scaled by the frozen ranges, aggregated to interquartile means with bootstrap intervals, and ranked."""
    ranges = json.loads((FILES / "geobench" / "normalizer.json").read_text())
    status, document = import_json(capsys, submission, "--normalizer", FILES / "geobench" / "normalizer.json")
    assert (status, document["valid"], document["faults"]) == (0, True, [])
    expected: dict[str, dict[str, list[float]]] = {}
    for row in rows_of(submission):
        low, high = ranges[row["dataset"]]
        value = (float(row["test metric"]) - low) / (high - low)
        expected.setdefault(row["backbone"], {}).setdefault(row["dataset"], []).append(value)
    by_backbone = {row["backbone"]: row for row in document["standings"]}
    for backbone, by_dataset in expected.items():
        standing = by_backbone[backbone]
        for dataset, values in by_dataset.items():
            assert standing["datasets"][dataset] == pytest.approx(stats.trim_mean(values, 0.25))
        assert standing["iqm"] == pytest.approx(
            stats.trim_mean(np.concatenate(list(by_dataset.values())), 0.25)
        )
        assert standing["interval"][0] <= standing["iqm"] <= standing["interval"][1]
    assert [row["rank"] for row in document["standings"]] == [1, 2]
    assert by_backbone["prithvi_600"]["name"] == "Prithvi-EO-V2 600M"


def test_files_of_other_programs_are_read_the_same(
    submission: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Editors of Windows write a mark first and other line ends, and people put spaces around values."""
    normalizer = tmp_path / "normalizer.json"
    normalizer.write_bytes((FILES / "geobench" / "normalizer.json").read_bytes())
    before = import_json(capsys, submission, "--normalizer", normalizer)
    write_rows(
        submission,
        [{f" {name}": f" {value} " for name, value in row.items()} for row in rows_of(submission)],
    )
    for path in (normalizer, *submission.iterdir()):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert import_json(capsys, submission, "--normalizer", normalizer) == before


def test_several_submissions_are_ranked_together_unless_a_backbone_is_in_two(
    submission: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Folders may have the same name; seeds of one backbone, and metrics of one dataset, are never mixed."""
    other = Path(shutil.copytree(submission, submission.parent / "other" / "new_submission"))
    normalizer = FILES / "geobench" / "normalizer.json"
    rows = rows_of(other)
    write_rows(other, [{**row, "backbone": f"{row['backbone']}_b"} for row in rows])
    info = json.loads((other / "additional_info.json").read_text())
    info["New model info"] = [{"model_display_name": "", "model_size": "", "unique_backbone_key": ""}]
    (other / "additional_info.json").write_text(json.dumps(info))
    status, document = import_json(capsys, submission, other, "--normalizer", normalizer)
    assert (status, len(document["standings"])) == (0, 4)
    unlike = {"Overall_Accuracy": "Multiclass_Jaccard_Index"}
    write_rows(
        other,
        [
            {**row, "backbone": f"{row['backbone']}_b", "Metric": unlike.get(row["Metric"], row["Metric"])}
            for row in rows
        ],
    )
    status, document = import_json(capsys, submission, other, "--normalizer", normalizer)
    assert (status, len(document["faults"])) == (1, 1)
    assert "`forest` is measured by `Multiclass_Jaccard_Index`, `Overall_Accuracy`" in document["faults"][0]
    write_rows(other, rows)
    status, document = import_json(capsys, submission, other, "--normalizer", normalizer)
    assert (status, document["standings"]) == (1, [])
    assert document["faults"] == [
        f"The backbone `{backbone}` is in 2 folders: `{submission}`, `{other}`."
        for backbone in dict.fromkeys(row["backbone"] for row in rows)
    ]


def test_names_in_a_comment_are_only_text(submission: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever sends a folder decides its names, but not what the comment on a pull request says."""
    other = Path(shutil.copytree(submission, submission.parent / "other"))
    evil = "x`\n\n# Merge this, @everyone"
    for folder in (submission, other):
        rows = [row for row in rows_of(folder) if row["dataset"] == "forest"]
        write_rows(folder, [{**row, "backbone": evil, "dataset": evil} for row in rows])
    normalizer = FILES / "geobench" / "normalizer.json"
    _, document = import_json(capsys, submission, other, "--normalizer", normalizer)
    told = [fault for fault in document["faults"] if "Merge this" in fault]
    assert ["`x' # Merge this, @everyone`" in fault for fault in told] == [True] * len(told)
    assert {*map(str.strip, "\n".join(told).splitlines())} == {*told}
    assert [fault[:13] for fault in told][-2:] == ["The backbone ", "The dataset `"]


def test_dimensions_are_averaged(submission: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dimension with all its datasets is averaged; detection metrics, an empty patience and no new model are valid."""
    names = dict(zip(("forest", "trees"), (["so2sat", "forestnet"], ["benv2", "treesatai"]), strict=True))
    rows = [{**row, "dataset": name} for row in rows_of(submission) for name in names[row["dataset"]]]
    for row in rows:
        metric = "test_test_segm_map" if row["dataset"] == "benv2" else "test_test_map"
        row |= {"early_stop_patience": "", "batch_size_selection": "Fixed", "Metric": metric}
    write_rows(submission, rows)
    info = json.loads((submission / "additional_info.json").read_text())
    info["New model info"] = [{"model_display_name": "", "model_size": "", "unique_backbone_key": ""}]
    (submission / "additional_info.json").write_text(json.dumps(info))
    status, document = import_json(capsys, submission, "--freeze", submission.parent / "normalizer.json")
    assert (status, document["faults"]) == (0, [])
    for row in document["standings"]:
        assert row["dimensions"] == {"Classification": pytest.approx(row["iqm"])}


def test_the_board_comes_from_the_leaderboards_own_code(submission: Path, tmp_path: Path) -> None:
    """--output renders README, page and data as for a challenge, with the datasets as revealed tasks."""
    arguments = [
        "--normalizer",
        str(FILES / "geobench" / "normalizer.json"),
        "--output",
        str(tmp_path / "board"),
    ]
    assert guarded(["import", str(submission), *arguments]) == 0
    readme = (tmp_path / "board" / "README.md").read_text()
    assert "| Rank | Movement | Team | Mean Q |" in readme
    assert "Prithvi-EO-V2 600M" in readme
    document = json.loads((tmp_path / "board" / "leaderboard" / "geobench.json").read_text())
    assert len(document["entries"]) == 2
    assert "trees" in (tmp_path / "board" / "index.html").read_text()


def drop(column: str) -> Callable[[list[dict[str, str]]], list[dict[str, str]]]:
    """Return a function that removes a column."""
    return lambda rows: [{key: value for key, value in row.items() if key != column} for row in rows]


def change(number: int, column: str, value: str) -> Callable[[list[dict[str, str]]], list[dict[str, str]]]:
    """Return a function that changes one cell."""
    return lambda rows: [{**row, column: value} if place == number else row for place, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (drop("Metric"), ["no column `Metric`"]),
        (drop("lr"), ["no column `lr`"]),
        (drop("frozen_or_full_ft"), ["no column `frozen_or_full_ft`"]),
        (
            lambda rows: rows[1:],
            ["`prithvi_600` on `forest` has 4 results with 4 different seeds; exactly 5 are needed"],
        ),
        (change(0, "Seed", "2"), ["`prithvi_600` on `forest` has 5 results with 4 different seeds"]),
        (lambda rows: [*rows, {**rows[0], "Seed": "9"}], ["has 6 results with 6 different seeds"]),
        (
            change(3, "Metric", "Accuracy"),
            ["`Metric` is none of", "`Overall_Accuracy`", "line 5 (`Accuracy`)"],
        ),
        (change(4, "test metric", "good"), ["`test metric` is not a number", "line 6 (`good`)"]),
        (change(4, "test metric", "nan"), ["`test metric` is not a number"]),
        (change(4, "test metric", "52"), ["percent", "line 6 (`52`)"]),
        (change(2, "Seed", "1.5"), ["`Seed` is not a whole number"]),
        (
            change(2, "batch_size_selection", "any"),
            ["`batch_size_selection` should be `HPO`, `Fixed`, `fixed` or `optimized`"],
        ),
        (change(2, "dataset", ""), ["`dataset` is empty: line 4"]),
        (
            lambda rows: [{**row, "dataset": row["dataset"].replace("trees", "tres")} for row in rows],
            ["`tres` is not in the normalizer"],
        ),
        (change(0, "Metric", "Multiclass_Jaccard_Index"), ["use one metric per dataset"]),
    ],
)
def test_faults_are_named_for_the_pull_request(
    submission: Path, tmp_path: Path, damage: Callable[..., list[dict[str, str]]], words: list[str]
) -> None:
    """Every fault gives exit status 1 and is named in a Markdown comment, with line and value if it is in a cell."""
    write_rows(submission, damage(rows_of(submission)))
    verdict = tmp_path / "verdict.md"
    arguments = ["--normalizer", str(FILES / "geobench" / "normalizer.json"), "--comment", str(verdict)]
    assert guarded(["import", str(submission), *arguments]) == 1
    text = verdict.read_text()
    assert text.startswith("### The submission cannot be taken yet\n\n- ")
    for word in words:
        assert word in text


def test_no_cell_is_taken_from_another_column(submission: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line that is longer than the header, a column that occurs twice, and a device in place of a file are named."""
    path = submission / "results_and_parameters.csv"
    header, *lines = path.read_text().splitlines()
    for text, word in (
        ("\n".join([header, *(f"{line}," for line in lines)]), "Expected 16 fields in line 2, saw 17"),
        (
            "\n".join([f"{header},test metric", *(f"{line},0.9" for line in lines)]),
            "has 2 columns `test metric`",
        ),
    ):
        path.write_text(text)
        status, document = import_json(capsys, submission)
        assert status == 1
        assert [word in fault for fault in document["faults"]] == [True]
    path.unlink()
    path.symlink_to("/dev/zero")
    assert import_json(capsys, submission)[0] == 1


def test_all_faults_come_at_once(submission: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Faults in both files are reported together, with at most three places each, and submitted text cannot break out of its code span."""
    rows = [{**row, "test metric": "x` **bold** @all `"} for row in rows_of(submission)]
    write_rows(submission, rows)
    info = json.loads((submission / "additional_info.json").read_text())
    del info["License"]
    info["New model info"][0]["unique_backbone_key"] = "other"
    info["New model info"].append({"model_display_name": "New"})
    (submission / "additional_info.json").write_text(json.dumps(info))
    status, document = import_json(capsys, submission)
    assert status == 1
    text = "\n".join(document["faults"])
    for word in (
        "and 17 more",
        "`License`",
        "`model_size` of number 2 of `New model info` of `additional_info.json` is missing",
    ):
        assert word in text
    assert "x' **bold** @all '" in text


def test_a_backbone_without_every_dataset_has_no_rank(
    submission: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is listed last; --freeze writes the lowest and highest result of each dataset and never replaces a file."""
    frozen = tmp_path / "normalizer.json"
    rows = rows_of(submission)
    write_rows(
        submission, [row for row in rows if (row["backbone"], row["dataset"]) != ("resnet50", "trees")]
    )
    status, document = import_json(capsys, submission, "--freeze", frozen)
    assert (status, list(json.loads(frozen.read_text()))) == (0, ["forest", "trees"])
    ranks = [(row["backbone"], row["rank"]) for row in document["standings"]]
    assert ranks == [("prithvi_600", 1), ("resnet50", None)]
    assert guarded(["import", str(submission), "--freeze", str(frozen)]) == 2


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Score the example twice, with all folds in the results."""
    output = tmp_path / "results"
    config = tmp_path / "config.yaml"
    document = {
        "k_folds": 6,
        "batch_size": 32,
        "epochs": 2,
        "enable_plots": False,
        "output_fold_results": True,
    }
    config.write_text(yaml.safe_dump({**document, "task_filter": ["even", "ink"]}))
    for method in ("one", "two"):
        arguments = [
            "--submission_file",
            str(EXAMPLE / "embeddings.csv"),
            "--annotation_path",
            str(EXAMPLE / "labels"),
        ]
        names = ["--method_name", method, "--phase", "dev", "--seed", "42" if method == "one" else "7"]
        assert (
            guarded(["score", *arguments, *names, "--config", str(config), "--output_dir", str(output)]) == 0
        )
    return output


def test_our_scores_go_to_geobench_and_come_back(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The export has five folds in place of seeds, says so, is a valid submission, and leaves out a run of NeuCo-Bench itself."""
    exported = tmp_path / "new_submission"
    theirs = runs / "dev" / "theirs_20260101_000000"
    (theirs / "ink").mkdir(parents=True)
    (theirs / "results_summary.json").write_text('{"experiment": "theirs", "task_q_scores": {"ink": 1.0}}')
    (theirs / "ink" / "ink_result.json").write_text('{"q_stat": 1.0, "mean_score": 0.1, "std_dev": 0.1}')
    assert (
        guarded(["export", str(runs), "--to", "geobench", "--output", str(exported), "--phase", "dev"]) == 0
    )
    rows = rows_of(exported)
    assert set(rows[0]) == set(rows_of(FILES / "geobench" / "new_submission")[0])
    assert len(rows) == 2 * 2 * 5
    assert "Code Repository Link " in json.loads((exported / "additional_info.json").read_text())
    [result] = runs.glob("dev/one_*/ink/ink_result.json")
    folds = json.loads(result.read_text())["q_t"]
    assert [
        float(row["test metric"]) for row in rows if (row["backbone"], row["dataset"]) == ("one", "ink")
    ] == folds[:5]
    assert (
        "splits (folds)"
        in json.loads((exported / "additional_info.json").read_text())[
            "Additional information about submission"
        ]
    )
    status, document = import_json(capsys, exported, "--freeze", tmp_path / "normalizer.json")
    assert (status, {row["backbone"] for row in document["standings"]}) == (0, {"one", "two"})


def test_several_runs_of_a_method_are_backbones_of_their_own(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one, it would have each seed several times, and could not be imported."""
    [folder] = (runs / "dev").glob("one_*")
    shutil.copytree(folder, folder.with_name("one_20260101_000000"))
    exported = str(tmp_path / "exported")
    assert guarded(["export", str(runs), "--to", "geobench", "--output", exported, "--phase", "dev"]) == 0
    capsys.readouterr()
    status, document = import_json(capsys, Path(exported), "--freeze", tmp_path / "normalizer.json")
    names = {row["backbone"] for row in document["standings"]}
    assert (status, names) == (0, {folder.name, "one_20260101_000000", "two"})


def test_a_run_that_was_stopped_and_computed_again_is_exported_once(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has its scores while its plots are drawn."""
    [folder] = (runs / "dev").glob("one_*")
    stopped = shutil.copytree(folder, folder.with_name("one_20260101_000000"))
    mark_begun(stopped, json.loads((folder / "results_summary.json").read_bytes())["inputs"])
    exported = str(tmp_path / "exported")
    assert guarded(["export", str(runs), "--to", "geobench", "--output", exported, "--phase", "dev"]) == 0
    output = capsys.readouterr()
    assert output.err == "Left out: one_20260101_000000 was stopped, and computed again.\n"
    assert "Wrote 2 entries" in output.out


# NeuroBench: correctness and complexity


def same_shape(expected: Any, actual: Any, path: str = "") -> None:
    """Require all expected keys at every level; additional keys are allowed."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert key in actual, f"{path}.{key}"
            same_shape(value, actual[key], f"{path}.{key}")


def test_results_go_out_in_neurobenchs_layout(
    runs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each task's document has the keys of NeuroBench's layout, the accuracy for a classification, and correct figures."""
    layout = json.loads((FILES / "neurobench" / "layout.json").read_text())
    [run] = runs.glob("dev/one_*")
    capsys.readouterr()
    assert guarded(["export", str(run), "--to", "neurobench"]) == 0
    by_task = {document["task"]: document for document in json.loads(capsys.readouterr().out)}
    same_shape(layout, by_task["even"])
    same_shape(layout, by_task["ink"])
    assert by_task["ink"]["model"] == "one"
    assert (
        by_task["ink"]["metrics"]["correctness"]["accuracy"] == by_task["ink"]["metrics"]["correctness"]["r2"]
    )
    result = json.loads((run / "even" / "even_result.json").read_text())
    even = by_task["even"]["metrics"]
    assert even["correctness"]["accuracy"] == result["metrics"]["accuracy"]["mean"]
    assert even["complexity"]["total_parameters"] == 17
    assert even["complexity"]["embedding_bytes"] == 64
    table = np.loadtxt(EXAMPLE / "embeddings.csv", delimiter=",", skiprows=1, usecols=range(1, 17))
    assert even["complexity"]["activation_sparsity"] == pytest.approx(float((table == 0).mean()))
    assert even["system"]["latency_ms"] > 0
    assert guarded(["export", str(run), "--to", "neurobench", "--output", str(tmp_path / "out")]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["even.json", "ink.json"]
