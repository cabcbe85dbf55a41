"""Task packages: reading, versions, checks, ceilings and groups."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.errors import OrganizerError
from scoring.neuco_bench.expectations import check_package
from scoring.neuco_bench.labels import estimate_ceiling, read_annotations, read_labels
from scoring.tasks import TaskPlace, group_scores, load_tasks
from scoring.tasks.packages import read_package

IDS = tuple(f"s{number:03}" for number in range(60))
GENERATOR = np.random.RandomState(5)
VALUES = GENERATOR.standard_normal((60, 4)).round(4)
LABELS = (VALUES @ [1.0, -2.0, 0.5, 0.0] + GENERATOR.standard_normal(60)).round(4)


def write_table(path: Path, header: list[str], rows: object) -> None:
    """Write a CSV file."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])  # type: ignore[misc]


def make_package(folder: Path, *, text: str = "", labels: object = None, name: str = "canopy") -> Path:
    """Make a package of 60 regression labels."""
    package = folder / name
    package.mkdir(parents=True)
    write_table(
        package / "labels.csv", ["id", "label"], zip(IDS, LABELS if labels is None else labels, strict=True)
    )
    default = f"identifier: {name}\nversion: 1\ntype: regr\n"
    (package / "task.yaml").write_text(text if text.startswith("identifier") else default + text)
    return package


def test_a_folder_may_hold_packages_and_label_files(tmp_path: Path) -> None:
    """A tasks folder may hold both, sorted by task name; one name twice is refused."""
    make_package(tmp_path, name="b_package")
    write_table(tmp_path / "a__cls.csv", ["id", "label"], zip(IDS, (LABELS > 0) * 1, strict=True))
    assert [task.name for task in load_tasks(tmp_path, IDS)] == ["a", "b_package"]
    assert [task.name for task in read_annotations(tmp_path).tasks] == ["a", "b_package"]
    write_table(tmp_path / "b_package__regr.csv", ["id", "label"], zip(IDS, LABELS, strict=True))
    with pytest.raises(OrganizerError) as caught:
        load_tasks(tmp_path, IDS)
    assert caught.value.code == "tasks.duplicate_task"


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        ("ceilng: 0.5\n", "package.bad_value", "ceiling"),
        ("ceiling: 1.5\n", "package.bad_value", "ceiling"),
        ("ceiling: estimate\n", "package.no_repeats", "repeats"),
        (f"ceiling: 1{'0' * 400}\n", "package.bad_value", "a number above 0"),
        ("baseline: {1: 2}\n", "package.bad_value", "baseline"),
        ("repeats: nowhere.csv\n", "package.bad_value", "'nowhere.csv', not the name of a file"),
        ("labels: ../labels.csv\n", "package.bad_value", "labels"),
        ("labels: /etc/hosts\n", "package.bad_value", "labels"),
        ("baseline: {embeddings: none.csv}\n", "package.bad_value", "'none.csv', not the name of a file"),
        ("identifier: x\nversion: yes\ntype: regr\n", "package.bad_value", "version"),
        ("parent: /land\n", "package.bad_value", "parent"),
        ("identifier: x\nversion: 0\ntype: regr\n", "package.bad_value", "version"),
        ("identifier: x\nversion: 1\n", "package.bad_value", "type"),
        ("identifier: ../x\nversion: 1\ntype: regr\n", "package.bad_value", "identifier"),
    ],
)
def test_faults_of_a_package_are_named(tmp_path: Path, text: str, code: str, word: str) -> None:
    """Every fault of task.yaml has a code and is named, unknown keys with the nearest known one."""
    package = make_package(tmp_path, text=text)
    with pytest.raises(OrganizerError) as caught:
        read_package(package)
    assert caught.value.code == code
    assert word in caught.value.message


def test_the_baseline_must_reach_its_expected_score(tmp_path: Path) -> None:
    """The same embeddings on the same labels give the same score; changed labels or a wrong expectation are found."""
    text = "baseline: {embeddings: baseline.csv, folds: 4, epochs: 2, learning_rate: 0.01, score: %s}\n"
    package = make_package(tmp_path, text=text % "null")
    write_table(
        package / "baseline.csv", ["id", *"0123"], ([i, *v] for i, v in zip(IDS, VALUES, strict=True))
    )
    unknown = check_package(read_package(package), folds=4)
    assert not unknown.passed
    assert unknown.baseline_score is not None
    stated = f"identifier: canopy\nversion: 1\ntype: regr\n{text % f'{unknown.baseline_score:.6f}'}"
    (package / "task.yaml").write_text(stated)
    assert check_package(read_package(package), folds=4).passed
    (package / "task.yaml").write_text(stated.replace(f"{unknown.baseline_score:.6f}", "0.999"))
    [wrong] = [
        finding for finding in check_package(read_package(package), folds=4).findings if not finding.passed
    ]
    assert wrong.check == "baseline"


def test_splits_that_cannot_be_scored_are_found(tmp_path: Path) -> None:
    """Two positives among sixty labels cannot be in every test part."""
    text = "identifier: rare\nversion: 1\ntype: cls\n"
    package = make_package(tmp_path, text=text, labels=[int(number < 2) for number in range(60)], name="rare")
    [splits] = [
        finding for finding in check_package(read_package(package)).findings if finding.check == "splits"
    ]
    assert not splits.passed


def test_ids_outside_the_public_list_are_found(tmp_path: Path) -> None:
    """A package is checked against the challenge's ids by the challenge's rules."""
    checked = check_package(read_package(make_package(tmp_path)), IDS[1:])
    assert not checked.passed
    assert "s000" in checked.findings[0].sentence


def test_the_ceiling_of_noisy_labels_is_their_reliability(tmp_path: Path) -> None:
    """With labels that are means of two measurements of known noise, the estimated ceiling is the known share of signal."""
    generator = np.random.RandomState(3)
    ids = [f"s{number:04}" for number in range(2000)]
    truth = generator.standard_normal(2000)
    measured = truth[:, np.newaxis] + 0.5 * generator.standard_normal((2000, 2))
    package = tmp_path / "noisy"
    package.mkdir()
    write_table(package / "labels.csv", ["id", "label"], zip(ids, measured.mean(axis=1), strict=True))
    pairs = [(identifier, value) for identifier, row in zip(ids, measured, strict=True) for value in row]
    write_table(package / "repeats.csv", ["id", "label"], pairs)
    text = "identifier: noisy\nversion: 1\ntype: regr\nceiling: estimate\nrepeats: repeats.csv\n"
    (package / "task.yaml").write_text(text)
    found = read_package(package)
    task, _ = read_labels(found.labels, "noisy", "regr")
    assert estimate_ceiling(found, task) == pytest.approx(1 / (1 + 0.25 / 2), abs=0.01)


def test_annotators_who_agree_have_a_ceiling_of_one(tmp_path: Path) -> None:
    """For classes the ceiling is the agreement of one annotator with the others: 1 if all agree, and less if not."""
    labels = [number % 2 for number in range(60)]
    text = "identifier: c\nversion: 1\ntype: cls\nceiling: estimate\nrepeats: repeats.csv\n"
    ceilings = []
    for wrong in (0, 6):
        package = tmp_path / str(wrong)
        package.mkdir()
        write_table(package / "labels.csv", ["id", "label"], zip(IDS, labels, strict=True))
        rows = [
            (i, 1 - x if turn == 0 and n < wrong else x)
            for turn in range(3)
            for n, (i, x) in enumerate(zip(IDS, labels, strict=True))
        ]
        write_table(package / "repeats.csv", ["id", "label"], rows)
        (package / "task.yaml").write_text(text)
        task, _ = read_labels(package / "labels.csv", "c", "cls")
        ceilings.append(estimate_ceiling(read_package(package), task))
    assert ceilings[0] == 1.0
    assert 0.8 < ceilings[1] < 1.0


def test_a_group_is_the_mean_of_its_members() -> None:
    """A group's score is the unweighted mean of its tasks and groups; it has a ceiled score only if every task has a ceiling."""
    places = [
        TaskPlace(identifier="a", parent="land/forest", ceiling=0.8),
        TaskPlace(identifier="b", parent="land/forest", ceiling=0.5),
        TaskPlace(identifier="c", parent="land", ceiling=1.0),
        TaskPlace(identifier="d"),
    ]
    tree = group_scores({"a": 0.4, "b": 0.2, "c": 0.9, "d": 0.1}, places)
    assert [(group.group, group.depth, group.tasks) for group in tree] == [
        ("", 0, ("a", "b", "c", "d")),
        ("land", 1, ("a", "b", "c")),
        ("land/forest", 2, ("a", "b")),
    ]
    assert [group.score for group in tree] == pytest.approx([(0.1 + 0.6) / 2, (0.9 + 0.3) / 2, 0.3])
    assert tree[0].ceiled is None
    assert tree[2].ceiled == pytest.approx((0.5 + 0.4) / 2)


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(-1, 1), min_size=1),
    st.lists(st.sampled_from(["", "x", "x/y", "z"]), min_size=6, max_size=6),
)
def test_a_tree_holds_every_task_once(scores: dict[str, float], parents: list[str]) -> None:
    """The root has all tasks, its score lies between the least and the greatest, and order does not matter."""
    places = [
        TaskPlace(identifier=name, parent=parent) for name, parent in zip("abcdef", parents, strict=True)
    ]
    tree = group_scores(scores, places)
    assert tree[0].tasks == tuple(sorted(scores))
    assert min(scores.values()) - 1e-12 <= tree[0].score <= max(scores.values()) + 1e-12
    assert [(g.group, g.tasks) for g in tree] == [
        (g.group, g.tasks) for g in group_scores(scores, places[::-1])
    ]
