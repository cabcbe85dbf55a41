"""The demo's data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from worker.organizer import demo_data
from worker.organizer.resources import shipped


def test_digits_are_scikit_learns() -> None:
    """The shipped file contains scikit-learn's digits and is small."""
    path = shipped("config/demo/digits.npz")
    assert path.stat().st_size <= 120_000
    expected = load_digits()
    with np.load(path) as archive:
        np.testing.assert_array_equal(archive["images"], expected.images)
        np.testing.assert_array_equal(archive["digits"], expected.target)


def test_labels_are_true() -> None:
    """The labels of the tasks agree with the pixels and with each other."""
    dev, last = demo_data.load()
    tasks = last.tasks
    digit = tasks["digit__regr.csv"]
    assert tasks["even__cls.csv"] == {i: float(d % 2 == 0) for i, d in digit.items()}
    assert tasks["high__cls.csv"] == {i: float(d >= 5) for i, d in digit.items()}
    assert tasks["loop__cls.csv"] == {i: float(d in (0, 6, 8, 9)) for i, d in digit.items()}
    images = dict(zip(last.ids, last.images, strict=True))
    for i, ink in tasks["ink__regr.csv"].items():
        assert ink == pytest.approx(np.count_nonzero(images[i] > 8) / 64)
    for i, height in tasks["height__regr.csv"].items():
        assert height == pytest.approx(np.average(np.arange(8), weights=images[i].sum(axis=1)))
    assert set(dev.tasks) < set(tasks)
    assert not set(dev.ids) & set(last.ids)
    assert (
        abs(np.corrcoef(np.arange(len(digit)), list(digit.values()))[0, 1]) < 0.1
    )  # the order of the ids tells nothing
