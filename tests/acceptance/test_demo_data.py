"""The demo's data."""

from __future__ import annotations

import numpy as np

from tests.later import GROUP, Later
from worker.organizer import demo_data, shipped

pytestmark = GROUP
datasets = Later("sklearn.datasets")


def test_digits_are_scikit_learns() -> None:
    """The shipped file contains scikit-learn's digits and is small."""
    path = shipped("config/demo/digits.npz")
    assert path.stat().st_size <= 120_000
    expected = datasets.load_digits()
    with np.load(path) as archive:
        np.testing.assert_array_equal(archive["images"], expected.images)
        np.testing.assert_array_equal(archive["digits"], expected.target)


def test_labels_are_true() -> None:
    """The labels of the tasks follow from the digits, the phases share no id, and the order of the ids tells nothing."""
    dev, last = demo_data.load()
    digits = last.tasks["digit__regr.csv"]
    for name, holds in {"even": {0, 2, 4, 6, 8}, "high": {5, 6, 7, 8, 9}, "loop": {0, 6, 8, 9}}.items():
        assert last.tasks[f"{name}__cls.csv"] == {key: float(digit in holds) for key, digit in digits.items()}
    assert not set(dev.ids) & set(last.ids)
    assert abs(np.corrcoef(np.arange(len(digits)), list(digits.values()))[0, 1]) < 0.1
