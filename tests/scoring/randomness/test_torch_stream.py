"""The compiled generator against torch and numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scoring.kernel.train import draws_per_fold
from scoring.randomness.torch_stream import STATE_SIZE, draw, shuffle, skip, start, uniform

SEEDS = st.integers(0, 2**32 - 1)


def stream(seed: int) -> np.ndarray:
    """Start a stream."""
    state = np.empty(STATE_SIZE, dtype=np.uint32)
    start(state, seed)
    return state


@given(SEEDS)
def test_draws_are_those_of_mt19937(seed: int) -> None:
    """The raw draws are numpy's RandomState's, across more than one refill."""
    expected = np.random.RandomState(seed).randint(0, 2**32, size=1300, dtype=np.uint32)
    state = stream(seed)
    assert [int(draw(state)) for _ in range(1300)] == expected.tolist()


@given(SEEDS, st.integers(0, 2000), st.integers(0, 2000))
def test_skipping_equals_drawing(seed: int, first: int, second: int) -> None:
    """A skip of a + b gives the same state as a draws and a skip of b."""
    drawn, skipped = stream(seed), stream(seed)
    for _ in range(first):
        draw(drawn)
    skip(drawn, second)
    skip(skipped, first + second)
    assert draw(drawn) == draw(skipped)


@given(SEEDS, st.integers(2, 700), st.integers(2, 700))
def test_a_training_loop_draws_what_torch_draws(seed: int, dim: int, rows: int) -> None:
    """Initial weights, DataLoader's base seed and randperm are the same as torch's."""
    torch.manual_seed(seed)
    layer = torch.nn.Linear(dim, 1)
    torch.empty((), dtype=torch.int64).random_()
    expected = torch.randperm(rows)
    state = stream(seed)
    bound = dim**-0.5
    weights = [uniform(state, -bound, bound) for _ in range(dim)]
    bias = uniform(state, -bound, bound)
    skip(state, 2)
    order = np.empty(rows, dtype=np.int32)
    shuffle(state, np.arange(rows, dtype=np.int32), order)
    assert weights == pytest.approx(layer.weight[0].tolist(), abs=1e-7)
    assert bias == pytest.approx(layer.bias.item(), abs=1e-7)
    assert order.tolist() == expected.tolist()


@given(st.integers(1, 200), st.integers(20, 300), st.integers(1, 3))
def test_the_draws_of_a_fold_are_counted(dim: int, rows: int, epochs: int) -> None:
    """Skipping a fold gives torch's state after training it."""
    torch.manual_seed(42)
    torch.nn.Linear(dim, 1)
    tested = rows // 10
    for _ in range(epochs):
        for part in (rows - tested, tested):
            torch.empty((), dtype=torch.int64).random_()
            torch.randperm(part)
    state = stream(42)
    skip(state, draws_per_fold(dim, rows, epochs))
    assert uniform(state, 0.0, 1.0) == torch.rand(1).item()
