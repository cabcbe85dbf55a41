"""Task packages: reading, versions, checks, ceilings and groups."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from scoring.errors import OrganizerError
from scoring.neuco_bench.expectations import check_task
from scoring.neuco_bench.labels import read_annotations
from scoring.tasks import TaskPackage, group_scores, load_tasks
from scoring.tasks.packages import read_package

IDS = tuple(f"s{number:03}" for number in range(60))
GENERATOR = np.random.RandomState(5)
VALUES = GENERATOR.standard_normal((60, 4)).round(4)
CLASSES = ["cat", "dog", "owl"] * 20
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
        ("ceiling: yes\n", "package.bad_value", "ceiling"),
        ("ceiling: 1.5\n", "package.bad_value", "ceiling"),
        (f"ceiling: 1{'0' * 400}\n", "package.bad_value", "a number above 0"),
        ("baseline: {1: 2}\n", "package.bad_value", "baseline"),
        ("labels: ../labels.csv\n", "package.bad_value", "labels"),
        ("labels: /etc/hosts\n", "package.bad_value", "labels"),
        ("baseline: {embeddings: none.csv}\n", "package.bad_value", "'none.csv', not the name of a file"),
        ("identifier: x\nversion: yes\ntype: regr\n", "package.bad_value", "version"),
        ("parent: /land\n", "package.bad_value", "parent"),
        ("identifier: x\nversion: 0\ntype: regr\n", "package.bad_value", "version"),
        ("identifier: x\nversion: 1\n", "package.bad_value", "type"),
        ("identifier: ../x\nversion: 1\ntype: regr\n", "package.bad_value", "identifier"),
        ("parent: a\nparent: b\n", "package.unreadable", "the key `parent` is already in line"),
    ],
)
def test_faults_of_a_package_are_named(tmp_path: Path, text: str, code: str, word: str) -> None:
    """Every fault of task.yaml has a code and is named, unknown keys with the nearest known one."""
    package = make_package(tmp_path, text=text)
    with pytest.raises(OrganizerError) as caught:
        read_package(package)
    assert caught.value.code == code
    assert word in caught.value.message


@pytest.mark.parametrize(
    ("kind", "labels", "is_good", "words"),
    [
        ("REGR", LABELS, False, "s000"),
        ("multiclass", CLASSES, True, "challenges do not score"),
        ("cls", CLASSES, False, "__multiclass.csv or in task.yaml"),
        ("cls", LABELS, False, "__regr.csv or in task.yaml"),
    ],
)
def test_labels_are_checked_for_a_challenge(
    tmp_path: Path, kind: str, labels: object, is_good: bool, words: str
) -> None:
    """Labels follow the challenge's rules and ids; a type that challenges refuse is noted; names of classes have a hint."""
    package = make_package(tmp_path, text=f"identifier: x\nversion: 1\ntype: {kind}\n", labels=labels)
    check, as_expected, sentence = check_task(package, IDS[1:])[1][0]
    assert (check, as_expected, words in sentence) == ("data", is_good, True)


def test_a_group_is_the_mean_of_its_members() -> None:
    """A group's score is the unweighted mean of its tasks and groups; it has a ceiled score only if every task has a ceiling."""
    packages = [
        TaskPackage.model_construct(identifier="a", parent="land/forest", ceiling=0.8),
        TaskPackage.model_construct(identifier="b", parent="land/forest", ceiling=0.5),
        TaskPackage.model_construct(identifier="c", parent="land", ceiling=1.0),
        TaskPackage.model_construct(identifier="d"),
    ]
    tree = group_scores({"a": 0.4, "b": 0.2, "c": 0.9, "d": 0.1}, packages)
    assert [(group.group, group.depth, group.tasks) for group in tree] == [
        ("", 0, ("a", "b", "c", "d")),
        ("land", 1, ("a", "b", "c")),
        ("land/forest", 2, ("a", "b")),
    ]
    assert [group.score for group in tree] == pytest.approx([(0.1 + 0.6) / 2, (0.9 + 0.3) / 2, 0.3])
    assert tree[0].ceiled is None
    assert tree[2].ceiled == pytest.approx((0.5 + 0.4) / 2)
