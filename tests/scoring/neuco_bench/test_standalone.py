"""The standalone benchmark's readers and rules, without the command."""

from __future__ import annotations

import csv
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scoring.errors import OrganizerError, ParticipantError
from scoring.neuco_bench.configuration import parse_settings, read_settings
from scoring.neuco_bench.expectations import check_task
from scoring.neuco_bench.labels import read_annotations, read_labels
from scoring.neuco_bench.material import read_material
from scoring.neuco_bench.reading import read_embeddings, read_excluded
from scoring.neuco_bench.results import make_run_folder, read_results, write_results
from scoring.neuco_bench.resuming import inputs_digest, mark_finished
from scoring.neuco_bench.run import score_run
from scoring.probes import PROBES
from scoring.tasks import TaskType, load_tasks
from tests.waiting import LIMIT_S
from tests.worker.harness.full_disk import file_size_limit

IDS = [f"a{number:02}" for number in range(30)]
GOLDEN = Path(__file__).parents[1] / "golden" / "digits_pixels"


def write_csv(path: Path, header: list[object], rows: object) -> Path:
    """Write a table."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])  # type: ignore[misc]
    return path


def test_columns_named_by_digits_are_ordered_by_number(tmp_path: Path) -> None:
    """Others are left out, with a note; if no column is named by digits, all are read in their order, as in NeuCo-Bench."""
    values = np.random.RandomState(0).standard_normal((30, 12)).astype(np.float32)
    columns = [str(number) for number in range(12)]
    frame = pd.DataFrame(values, columns=columns).assign(id=IDS, comment="text")
    frame[["11", "id", *columns[:11], "comment"]].to_csv(tmp_path / "t.csv", index=False)
    read = read_embeddings(tmp_path / "t.csv", IDS)
    np.testing.assert_array_equal(read.matrix, values)
    assert (read.ids, read.warnings) == (tuple(IDS), ('1 extra column was ignored: "comment".',))
    frame.rename(columns=lambda name: f"X{name}" if name != "id" else name).to_csv(tmp_path / "r.csv")
    told = r"14 have other names \(column 1 has no name; remove columns that describe the samples\)"
    with pytest.raises(ParticipantError, match=told):
        read_embeddings(tmp_path / "r.csv", IDS)
    path = write_csv(tmp_path / "huge.csv", ["id", "9" * 5000, "010"], [["a", 1, 2], ["b", 3, 5]])
    np.testing.assert_array_equal(read_embeddings(path, ["a", "b"]).matrix, [[2, 1], [5, 3]])
    path = write_csv(tmp_path / "u.csv", ["id", "x", "y"], [["a", 1, 2], ["b", 3, 4]])
    np.testing.assert_array_equal(read_embeddings(path, ["a", "b"]).matrix, [[1, 2], [3, 4]])


def test_cells_that_are_not_numbers_count_as_zero(tmp_path: Path) -> None:
    """Empty cells, text and nan become 0 with a warning that says where they are."""
    rows = [["a", "", "1"], ["b", "word", "2"], ["c", "nan", "3"], ["d", "4", "5"]]
    read = read_embeddings(write_csv(tmp_path / "t.csv", ["id", "0", "1"], rows), "abcd")
    np.testing.assert_array_equal(read.matrix, [[0, 1], [0, 2], [0, 3], [4, 5]])
    assert [warning.partition(". ")[0] for warning in read.warnings] == [
        '1 cell is not a number: line 3 (id "b"), column 0: "word"',
        '1 cell is empty: line 2 (id "a"), column 0',
        '1 cell is NaN: line 4 (id "c"), column 0',
    ]
    assert {warning.partition(". ")[2] for warning in read.warnings} == {
        "Scored as 0, before the embeddings are standardized."
    }


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([["id", "0"], ["a", "inf"]], "cells.infinite"),
        ([["id", "0"], ["a", "1e39"]], "cells.range"),
        ([["name", "0"], ["a", "1"]], "columns.no_id"),
        ([["id", "0"], ["z", "1"]], "standalone.no_ids"),
        ([["id"], ["a"]], "columns.names"),
        ([["id", "0"]], "rows.none"),
        ([["id", "x", "label"], ["a", "1", "1"]], "columns.names"),
        ([["id", "0"], ["a", "np.float32(0.1)"]], "cells.text"),
        ([["id", "0"], ["a", "[0.1, 0.2]"]], "cells.list"),
        ([["id", "0"], ["a", "1"], ["b", "1"]], "values.constant"),
        ([["id", "0"], ["a", "1"], ["b", "2"], ["a.zarr", "3"]], "rows.duplicate"),
        ([["id", "0", "1", "2"], ["a", 1, 2, 3]], "standalone.too_wide"),
    ],
)
def test_embeddings_that_cannot_be_scored_are_refused(
    tmp_path: Path, rows: list[list[str]], code: str
) -> None:
    """A file is refused if its scores would mean nothing."""
    with pytest.raises(ParticipantError) as caught:
        read_embeddings(write_csv(tmp_path / "t.csv", rows[0], rows[1:]), ["a", "b"], embedding_dim=2)
    assert caught.value.code == code


def test_ids_without_any_label_are_shown_next_to_those_of_the_labels(tmp_path: Path) -> None:
    """So it is seen which of the two has another column as its ids."""
    with pytest.raises(ParticipantError, match='the first ids of both are "z" and "a"'):
        read_embeddings(write_csv(tmp_path / "t.csv", ["id", "0"], [["z", "1"]]), ["a", "b"])


def test_true_and_false_are_one_and_zero(tmp_path: Path) -> None:
    """Such a column is read as numbers by pandas, and so by NeuCo-Bench."""
    rows = [f"{identifier},{number % 3 == 0},{number}" for number, identifier in enumerate(IDS)]
    (tmp_path / "sub.csv").write_text("\n".join(["id,0,1", *rows, ""]))
    read = read_embeddings(tmp_path / "sub.csv", IDS)
    assert read.matrix[:4, 0].tolist() == [1, 0, 0, 1]
    assert read.warnings[0].endswith("; and so on. Scored as 1 and 0.")


def test_the_first_of_equal_columns_counts(tmp_path: Path) -> None:
    """The others are renamed by pandas, so that NeuCo-Bench takes them for no dimension."""
    rows = [f"{identifier},{number / 2},1,2" for number, identifier in enumerate(IDS)]
    (tmp_path / "sub.csv").write_text("\n".join(["id,0,1,1", *rows, ""]))
    read = read_embeddings(tmp_path / "sub.csv", IDS)
    assert read.matrix.shape == (len(IDS), 2)
    assert read.matrix[:, 1].tolist() == [1] * len(IDS)
    assert read.warnings == ('1 extra column was ignored: "1", the second time.',)


def test_ids_without_a_label_are_named_unless_they_are_excluded(tmp_path: Path) -> None:
    """Rows that are not scored are no surprise."""
    rows = [
        f"{identifier},{number / 2}" for number, identifier in enumerate([*IDS, "x", "y", "z", "out", "w"])
    ]
    (tmp_path / "sub.csv").write_text("\n".join(["id,0", *rows, ""]))
    read = read_embeddings(tmp_path / "sub.csv", IDS, exclude={"out"})
    assert read.notes == ('4 ids that are not in the labels were ignored: "x"; "y"; "z"; and so on.',)


def test_label_files_that_are_not_read_are_named(tmp_path: Path) -> None:
    """Only names that end with .csv are read, as in NeuCo-Bench; other files are no label files."""
    for name in ("a__regr.csv", "b__cls.csv.gz", "c__regr.parquet", "README.md", "._a__regr.csv"):
        (tmp_path / name).write_text("id,label\n" + "".join(f"{one},{len(one)}\n" for one in IDS))
    read = read_annotations(tmp_path)
    assert [task.name for task in read.tasks] == ["a"]
    assert read.warnings == (
        "b__cls.csv.gz was not read, because names of label files end with .csv.",
        "c__regr.parquet was not read, because names of label files end with .csv.",
    )
    (tmp_path / "a__regr.csv").unlink()
    with pytest.raises(OrganizerError, match=r"only b__cls.csv.gz, c__regr.parquet\."):
        read_annotations(tmp_path)
    (tmp_path / "h\udce9he__regr.csv").touch()
    with pytest.raises(OrganizerError, match=r"h\udce9he__regr.csv is not named .* in UTF-8"):
        read_annotations(tmp_path)


def test_labels_without_a_value_are_left_out(tmp_path: Path) -> None:
    """Rows without a label are left out with a warning; text is refused."""
    path = write_csv(tmp_path / "t__regr.csv", ["id", "label"], [["a", 1], ["b", ""], ["c", 2], ["d", "NA"]])
    task, warnings = read_labels(path, "t", "regr")
    assert task.ids == ("a", "c")
    assert warnings == ("t: 2 rows without a label were left out; NA counts as missing.",)
    rows = [["a", "1;2"], ["b", ""], ["c", "1.0"], ["d", "NA"]]
    task, warnings = read_labels(write_csv(path, ["id", "label"], rows), "t", "multilabel")
    assert (task.ids, task.classes, task.labels.tolist()) == (
        ("a", "b", "c"),
        ("1", "2"),
        [[1, 1], [0, 0], [1, 0]],
    )
    assert warnings == ("t: 1 row without a label was left out; NA counts as missing.",)
    for rows in ([], [["a", ""]]):
        write_csv(path, ["id", "label"], rows)
        with pytest.raises(OrganizerError, match=r"t__regr\.csv has no labels"):
            read_labels(path, "t", "regr")
    for odd in ("high", "inf", "-1e39"):
        write_csv(path, ["id", "label"], [["a", 1], ["b", odd], ["c", 2]])
        with pytest.raises(OrganizerError, match=f"line 3.*{odd}' is not a finite number in float32"):
            read_labels(path, "t", "regr")


def test_labels_that_are_names_lead_to_one_place(tmp_path: Path) -> None:
    """The error has file and line, and a hint for challenges: a file of several classes, which only `score` knows, is no way around it."""
    names = ["water", "land", "ice"]
    path = write_csv(tmp_path / "t__cls.csv", ["id", "label"], zip(IDS, names * 10, strict=True))
    ((_, (finding,)),) = [check_task(path)]
    assert f"{path}, line 2 (id {IDS[0]}): the label 'water' is not a finite number in float32." in finding[2]
    assert "Of more classes, make one task of two classes for each; or, only for `score`" in finding[2]
    numbers = [names.index(name) for name in names * 10]
    write_csv(path, ["id", "label"], zip(IDS, numbers, strict=True))
    ((_, (finding,)),) = [check_task(path)]
    assert f"{path} is of a task of two classes, but has 3 different labels." in finding[2]
    with pytest.raises(OrganizerError, match="one task per class"):
        load_tasks(path.rename(tmp_path / "t__multiclass.csv").parent, IDS)


def test_a_check_says_how_labels_are_distributed(tmp_path: Path) -> None:
    """The sizes of the classes, and labels far from the others, such as a code for missing values; no label is shown."""

    def said(kind: str, labels: list[object]) -> str:
        path = write_csv(tmp_path / f"t__{kind}.csv", ["id", "label"], zip(IDS, labels, strict=True))
        return check_task(path)[1][0][2]

    assert (
        "30 labels of type cls. Its 2 classes have 3 to 27 samples each; 10.0% are in the smallest."
        in said("cls", [1] * 3 + [0] * 27)
    )
    assert "Its 2 classes have 10 to 30 samples each" in said("multilabel", ["a;b"] * 10 + ["a"] * 20)
    assert "is a list as a program prints it" in said("multilabel", ["['a', 'b']"] * 10 + ["['a']"] * 20)
    assert "would be one, with its commas or bars: 'a|b'" in said("multilabel", ["a|b"] * 10 + ["a"] * 20)
    assert "Its 2 classes have 10 to 30" in said("multilabel", ["a;b, or c"] * 10 + ["a"] * 20)
    assert "Its 2 classes have 10 to 20" in said("multiclass", ["1", "1.0", "-2.5"] * 10)
    assert "None is far from the others." in said("regr", list(range(30)))
    far = said("regr", [*range(28), -9999, -9999])
    assert (
        f"2 labels are more than 10 interquartile ranges from the middle half, first that of {IDS[28]}."
        in far
    )
    assert "-9999" not in far


def test_classes_are_sorted_by_their_numbers_however_long_these_are(tmp_path: Path) -> None:
    """Equal numbers are sorted by how they are written, and names come last; the order does not depend on Python's hashes."""
    names = ["10", "9", "09", "8" + "0" * 5000, "b", "a"]
    path = write_csv(tmp_path / "t__multiclass.csv", ["id", "label"], zip(IDS, names * 5, strict=True))
    task = read_labels(path, "t", "multiclass", None)[0]
    assert task.classes == ("09", "9", "10", names[3], "a", "b")
    embeddings = write_csv(
        tmp_path / "e.csv", ["id", 0], ([name, place % 7] for place, name in enumerate(IDS))
    )
    settings = parse_settings({"k_folds": 2, "probe_type": "ridge"})
    material = read_material(embeddings, read_annotations(path), settings)
    assert score_run(material, settings).tasks[0].data.classes == task.classes


def test_as_many_classes_as_half_of_the_samples_are_refused(tmp_path: Path) -> None:
    """They are numbers or ids, as in memory."""
    path = write_csv(tmp_path / "t__multiclass.csv", ["id", "label"], [[name, name[-1]] for name in IDS[:20]])
    with pytest.raises(
        OrganizerError, match=r"10 classes for 20 samples\. A regression needs .* t__regr\.csv or"
    ):
        read_labels(path, "t", "multiclass")


def test_the_type_of_a_task_follows_from_its_name(tmp_path: Path) -> None:
    """Types have their short and their long names in any case; an unknown one is refused; ._ files of macOS are no labels."""
    rows = [[identifier, number % 2] for number, identifier in enumerate(IDS)]
    (tmp_path / "._a__cls.csv").write_bytes(b"\0\5\x16\7")
    for name in ("a__cls", "b__classification", "c__CLS"):
        write_csv(tmp_path / f"{name}.csv", ["id", "label"], rows)
    kinds = {task.name: task.kind for task in read_annotations(tmp_path).tasks}
    assert kinds == dict.fromkeys("abc", TaskType.CLASSIFICATION)
    write_csv(tmp_path / "x__class.csv", ["id", "label"], rows)
    with pytest.raises(OrganizerError, match="class"):
        read_annotations(tmp_path)


@pytest.mark.parametrize("labels", [[1] * 30, [0, 1] * 5])
def test_tasks_that_cannot_be_scored_are_refused_before_training(tmp_path: Path, labels: list[int]) -> None:
    """Constant labels and too few samples end the run with an error that names the task."""
    write_csv(tmp_path / "e.csv", ["id", 0, 1], ([i, n, n * n] for n, i in enumerate(IDS)))
    (tmp_path / "labels").mkdir()
    write_csv(tmp_path / "labels" / "poor__regr.csv", ["id", "label"], zip(IDS, labels, strict=False))
    settings = parse_settings({"k_folds": 1, "epochs": 1})
    material = read_material(tmp_path / "e.csv", read_annotations(tmp_path / "labels"), settings)
    with pytest.raises(OrganizerError, match="poor"):
        score_run(material, settings)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ([1], "The configuration is '[1]', not keys with values."),
        (
            {"probe_params": 3},
            "probe_params in the configuration is '3', not keys with values, such as epochs: 20.",
        ),
        ({"k_folds": True}, "k_folds in the configuration is 'True', not a whole number from 1 to 100,000."),
        ({"k_folds": 4.0}, "k_folds in the configuration is '4.0', not a whole number from 1 to 100,000."),
        (
            {"embedding_dim": "8"},
            "embedding_dim in the configuration is '8', not a whole number from 1 to 1,000,000.",
        ),
        (
            {"probe_type": "forest"},
            f"probe_type in the configuration is 'forest', not one of {', '.join(PROBES)}.",
        ),
        (
            {"embedding_dim": 10**30},
            f"embedding_dim in the configuration is '1{'0' * 30}', not a whole number from 1 to 1,000,000.",
        ),
        ({"enable_plots": 1}, "enable_plots in the configuration is '1', not true or false."),
        (
            {"store_probes": "x" * 99},
            f"store_probes in the configuration is '{'x' * 60}', not true or false.",
        ),
        (
            {"k_folds": 0, "task_filter": ["a", 1], "enable_plots": 1},
            "k_folds in the configuration is '0', not a whole number from 1 to 100,000.",
        ),
    ],
)
def test_a_wrong_value_is_shown_with_what_it_must_be(document: object, sentence: str) -> None:
    """The error names one fault, the first in the order of the keys, in our own words."""
    with pytest.raises(OrganizerError) as caught:
        parse_settings(document)
    assert (caught.value.code, caught.value.sentence) == ("standalone.bad_value", sentence)


@pytest.mark.parametrize("options", [{}, {"epochs": 5}, {"probe": "ridge"}])
def test_parameters_that_are_no_keys_are_refused_with_any_options(
    options: dict[str, Any], tmp_path: Path
) -> None:
    """An option that comes before the configuration is joined with the parameters only if they are keys with values."""
    (tmp_path / "config.yaml").write_text("probe_params: [epochs, 10]")
    with pytest.raises(
        OrganizerError, match=r"probe_params in the configuration is .*, not keys with values"
    ):
        read_settings(tmp_path / "config.yaml", **options)


APPENDIX_B2 = """
embedding_dim: 1024          # number of embedding dimensions
batch_size: 64              # batch size for (linear) probing
epochs: 20                  # number of epochs to optimize the (linear) probe for
learning_rate: 0.001        # learning rate to optimize with
k_folds: 40                 # number of cross-validations to generate statistics over
standardize_embeddings: true # standardize embeddings by their global mean and std
normalize_labels: true      # normalize in range [0,1]
task_filter: false          # all in /path/to/annotation_directory/ per default
                            # example: ["biomass_mean", "biomass_std"]
"""


def test_the_papers_example_is_read_without_a_warning(tmp_path: Path) -> None:
    """The configuration of Appendix B.2 gives no warning, and its nested form means the same."""
    (tmp_path / "config.yaml").write_text(APPENDIX_B2)
    flat = read_settings(tmp_path / "config.yaml")
    assert (flat.embedding_dim, flat.k_folds, flat.probe_type, flat.task_filter) == (1024, 40, "linear", None)
    assert flat.probe_params == {"batch_size": 64, "epochs": 20, "learning_rate": 0.001}
    assert (flat.standardize_embeddings, flat.normalize_labels, flat.warnings) == (True, True, ())
    nested = {key: value for key, value in flat.raw.items() if key not in flat.probe_params}
    again = parse_settings({**nested, "probe_params": dict(flat.probe_params), "task_filter": None})
    assert again.model_copy(update={"raw": flat.raw}) == flat


def test_what_neuco_bench_does_differently_is_said() -> None:
    """One key is enough, a wrong one is named, and the run says where parity ends."""
    ridge = parse_settings({"probe_type": "ridge"})
    assert (ridge.k_folds, [warning for warning in ridge.warnings if "k_folds: 40" in warning]) == (
        40,
        list(ridge.warnings),
    )
    mistyped = "The configuration's key 'k_fold' is unknown and has no effect; did you mean k_folds?"
    assert parse_settings({"k_fold": 3, "k_folds": 2, "epochs": 1}).warnings == (mistyped,)
    options = {"n_iter": 9, "n_points": 2, "cv": 3, "random_state": 1}
    searched = parse_settings({"k_folds": 2, "probe_type": "svm", "probe_params": {"opt_params": options}})
    assert searched.warnings == (
        "The settings of svm are drawn at random, so these opt_params have no effect: cv, n_points.",
    )
    stored = parse_settings({"k_folds": 2, "epochs": 1, "device": "cpu", "store_probes": True})
    assert (stored.store_probes, stored.raw) == (True, {"k_folds": 2, "epochs": 1, "store_probes": True})
    assert ["draws random numbers" in warning for warning in stored.warnings] == [True]
    alone = parse_settings({"k_folds": 1, "epochs": 1})
    assert ["Q is 100 times the score" in warning for warning in alone.warnings] == [True]


def test_a_run_without_tasks_has_no_score(tmp_path: Path) -> None:
    """An empty task_filter gives an empty report and a warning, as in NeuCo-Bench; unknown keys may have any value of YAML."""
    write_csv(tmp_path / "e.csv", ["id", 0, 1], ([i, n, n * n] for n, i in enumerate(IDS)))
    (tmp_path / "labels").mkdir()
    write_csv(tmp_path / "labels" / "t__regr.csv", ["id", "label"], ([i, n] for n, i in enumerate(IDS)))
    settings = parse_settings({"k_folds": 1, "epochs": 1, "task_filter": [], "key": b"\xff"})
    report = score_run(
        read_material(tmp_path / "e.csv", read_annotations(tmp_path / "labels"), settings),
        settings,
    )
    assert (report.tasks, np.isnan(report.overall_q)) == ((), True)
    assert "no task is scored" in report.warnings[1]
    write_results(tmp_path, report, settings, experiment="none")
    assert read_results(tmp_path)[0]["config"]["key"] == "_w=="


def test_two_runs_in_a_second_have_different_folders(tmp_path: Path) -> None:
    """Nothing is overwritten, and names cannot leave the output folder."""
    now = datetime(2026, 3, 2, 9, 5, 7, tzinfo=UTC)
    names = [make_run_folder(tmp_path, phase="p", method="m", now=now).name for _ in range(3)]
    assert names == ["m_20260302_090507", "m_20260302_090507_2", "m_20260302_090507_3"]
    for phase, method in (("..", "m"), ("p", "a/b"), ("", "m"), ("p", "m\udce9")):
        with pytest.raises(OrganizerError):
            make_run_folder(tmp_path, phase=phase, method=method, now=now)
    with pytest.raises(OrganizerError, match=r"File name too long.*or a shorter --phase or --method_name"):
        make_run_folder(tmp_path, phase="p", method="m" * 250, now=now)


def test_runs_that_begin_at_the_same_moment_have_different_folders(tmp_path: Path) -> None:
    """Two terminals may score the same file."""
    now, together = datetime(2026, 3, 2, 9, 5, 7, tzinfo=UTC), Barrier(8)

    def begun(_: int) -> Path:
        together.wait(LIMIT_S)
        return make_run_folder(tmp_path, phase="p", method="m", now=now)

    with ThreadPoolExecutor(together.parties) as threads:
        assert len({*threads.map(begun, range(together.parties))}) == together.parties


def test_a_summary_is_never_incomplete(tmp_path: Path) -> None:
    """Neither for `rank`, which may read it at any time, nor if a process is stopped while it writes or changes it."""
    labels, settings = read_annotations(GOLDEN / "labels"), parse_settings({"k_folds": 1, "epochs": 1})
    report = score_run(read_material(GOLDEN / "embeddings.csv", labels, settings), settings)
    with file_size_limit(10), pytest.raises(OSError, match="File too large"):
        write_results(tmp_path, report, settings, experiment="one")
    assert list(tmp_path.iterdir()) == []
    write_results(tmp_path, report, settings, experiment="one")
    before = read_results(tmp_path)
    with file_size_limit(10), pytest.raises(OSError, match="File too large"):
        mark_finished(tmp_path, "digest")
    assert read_results(tmp_path) == before
    mark_finished(tmp_path, "digest")
    assert read_results(tmp_path)[0]["inputs"] == "digest"


def test_leaving_out_a_task_changes_only_later_ones() -> None:
    """As in NeuCo-Bench, one random stream runs through all tasks: the tasks after it change, and those before it do not."""
    labels = read_annotations(GOLDEN / "labels")
    names, scores = [task.name for task in labels.tasks], []
    for chosen in (names, [names[0], names[2]]):
        settings = parse_settings({"k_folds": 2, "epochs": 1, "task_filter": chosen})
        report = score_run(read_material(GOLDEN / "embeddings.csv", labels, settings), settings)
        scores.append({task.data.name: [fold.score for fold in task.folds] for task in report.tasks})
    assert scores[1][names[0]] == scores[0][names[0]]
    assert scores[1][names[2]] != scores[0][names[2]]


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_list_of_excluded_ids_must_be_a_text_file(tmp_path: Path, content: bytes | None) -> None:
    """A device, which never ends, and other encodings are refused."""
    place = Path("/dev/zero") if content is None else tmp_path / "ids.txt"
    if content is not None:
        place.write_bytes(content)
    with pytest.raises(OrganizerError, match="cannot be read"):
        read_excluded(place)


def test_a_run_whose_columns_had_other_names_is_computed_again() -> None:
    """Its warnings would name columns that the file does not have."""
    labels, settings = read_annotations(GOLDEN / "labels"), parse_settings({"k_folds": 1, "epochs": 1})
    material = read_material(GOLDEN / "embeddings.csv", labels, settings)
    renamed = replace(material, embeddings=replace(material.embeddings, names=("a", "b")))
    assert inputs_digest(material, settings, 42) != inputs_digest(renamed, settings, 42)
