"""The demo's data and methods."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from sklearn.datasets import load_digits

from worker.organizer import demo_data
from worker.organizer.demo import BROKEN, PIXELS, file
from worker.organizer.resources import shipped


def test_digits_are_scikit_learns() -> None:
    """The shipped file contains scikit-learn's digits and is small."""
    path = shipped("config/demo/digits.npz")
    assert path.stat().st_size <= 120_000
    expected = load_digits()
    with np.load(path) as archive:
        np.testing.assert_array_equal(archive["images"], expected.images)
        np.testing.assert_array_equal(archive["digits"], expected.target)


def test_ids_tell_nothing() -> None:
    """Ids are unique and sorted, and their order is not correlated with the digits."""
    dev, last = demo_data.load()
    for phase in (dev, last):
        assert list(phase.ids) == sorted(set(phase.ids))
        digit = next(task for task in phase.tasks if task.name.startswith("digit"))
        assert abs(np.corrcoef(np.arange(len(digit.labels)), digit.labels)[0, 1]) < 0.1
    assert not set(dev.ids) & set(last.ids)
    assert len(dev.ids) + len(last.ids) == 1797


def test_labels_are_true() -> None:
    """The labels of the tasks agree with the pixels and with each other."""
    dev, last = demo_data.load()
    tasks = {task.name: dict(zip(task.ids, task.labels, strict=True)) for task in last.tasks}
    digit = tasks["digit__regr.csv"]
    assert tasks["even__cls.csv"] == {i: float(d % 2 == 0) for i, d in digit.items()}
    assert tasks["high__cls.csv"] == {i: float(d >= 5) for i, d in digit.items()}
    assert tasks["loop__cls.csv"] == {i: float(d in (0, 6, 8, 9)) for i, d in digit.items()}
    images = dict(zip(last.ids, last.images, strict=True))
    for i, ink in tasks["ink__regr.csv"].items():
        assert ink == pytest.approx(np.count_nonzero(images[i] > 8) / 64)
    for i, height in tasks["height__regr.csv"].items():
        assert height == pytest.approx(np.average(np.arange(8), weights=images[i].sum(axis=1)))
    assert {task.name for task in dev.tasks} < set(tasks)


def test_files_say_what_was_embedded() -> None:
    """A good file has every id and the exact values; the broken file has NaN cells and lacks ids."""
    phase, _ = demo_data.load()
    header, *rows = csv.reader(io.StringIO(file(PIXELS, phase).decode()))
    assert header == ["id", *map(str, range(64))]
    assert [row[0] for row in rows] == list(phase.ids)
    np.testing.assert_array_equal(
        np.array([row[1:] for row in rows], dtype=np.float32), demo_data.raw_pixels(phase.images)
    )
    broken = list(csv.reader(io.StringIO(file(BROKEN, phase).decode())))[1:]
    assert len(broken) == len(phase.ids) - 2
    assert sum(cell == "nan" for row in broken for cell in row) == 2
