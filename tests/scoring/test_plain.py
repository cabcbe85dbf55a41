"""The plain loop against the usual way to write it, and in parts against cases computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from scoring.engines.reference import PlainEngine
from scoring.errors import Cancelled
from scoring.protocol import Recipe
from tests.scoring.engines.units import make_unit, part
from tests.scoring.harness.usual_loop import usual_loop


@pytest.mark.parametrize(("samples", "dim", "batch_size"), [(72, 3, 64), (101, 17, 32)])
def test_the_plain_loop_agrees_with_the_usual_loop(samples: int, dim: int, batch_size: int) -> None:
    """The same seeds in a loop with DataLoader and torchmetrics give the same scores."""
    unit = make_unit(samples=samples, dim=dim, folds=2, recipe=Recipe(epochs=3, batch_size=batch_size))
    scores = PlainEngine().score(unit)
    for task in range(2):
        for fold in range(2):
            assert scores[task, fold] == pytest.approx(usual_loop(unit, task, fold), rel=2e-6, abs=2e-6)


def test_one_step_by_hand() -> None:
    """The step has the gradient of the mean squared error and one AdamW update; the score is the R2 of the test part."""
    unit = make_unit(samples=20, dim=2, types="r", folds=1, recipe=Recipe(epochs=1, batch_size=64))
    order = np.random.RandomState(int(unit.split_seeds[0])).permutation(20)
    test, train = order[:2], order[2:]
    torch.manual_seed(int(unit.training_seeds[0]))
    layer = torch.nn.Linear(2, 1)
    weights = np.append(layer.weight.detach().numpy()[0], layer.bias.detach().numpy()).astype(np.float64)
    rows = np.column_stack([unit.rows, np.ones(20)]).astype(np.float64)
    labels = unit.targets[0].astype(np.float64)
    gradient = 2 * rows[train].T @ (rows[train] @ weights - labels[train]) / len(train)
    # the first step of Adam moves each weight by lr * g / (|g| + eps), after the decay by lr * 0.01
    weights = weights * (1 - 0.001 * 0.01) - 0.001 * gradient / (np.abs(gradient) + 1e-8)
    residual = np.sum((rows[test] @ weights - labels[test]) ** 2)
    expected = 1 - residual / np.sum((labels[test] - labels[test].mean()) ** 2)
    assert PlainEngine().score(unit)[0, 0] == pytest.approx(expected, rel=1e-5)


def test_the_best_epoch_counts() -> None:
    """More epochs never lower a score, because the earlier ones are the same."""
    few = make_unit(samples=72, dim=5, folds=2, recipe=Recipe(epochs=2, learning_rate=0.5))
    many = make_unit(samples=72, dim=5, folds=2, recipe=Recipe(epochs=6, learning_rate=0.5))
    assert np.all(PlainEngine().score(many) >= PlainEngine().score(few))


def test_tasks_on_a_row_set_replay_the_same_stream() -> None:
    """A task has the same scores alone and with another one."""
    unit = make_unit(samples=72, dim=5)
    both = PlainEngine().score(unit)
    assert PlainEngine().score(part(unit, tasks=[1]))[0].tolist() == both[1].tolist()


def test_a_fold_without_finite_score_has_failed() -> None:
    """Rows that overflow give NaN, not minus infinity."""
    unit = make_unit(samples=40, dim=4, types="r", folds=1, recipe=Recipe(epochs=2))
    unit.rows[:] *= np.float32(1e38)
    assert math.isnan(PlainEngine().score(unit)[0, 0])


def test_the_plain_loop_can_be_stopped() -> None:
    """It checks after each epoch whether it should stop."""
    asked = iter([False, True])
    with pytest.raises(Cancelled):
        PlainEngine().score(make_unit(samples=40, dim=4), cancelled=lambda: next(asked))
