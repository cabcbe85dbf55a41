"""The compiled generator against torch and numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.randomness import Split
from scoring.randomness.fold_draws import STATE_SIZE, draw, draw_folds, skip, start
from tests.later import GROUP, Later

pytestmark = GROUP
torch = Later("torch")

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


PAIRS = st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=2)


@given(
    splits=PAIRS,
    trainings=PAIRS,
    rows=st.integers(2, 300),
    tested=st.integers(1, 100),
    dim=st.integers(1, 300),
    epochs=st.integers(1, 3),
)
@settings(max_examples=30, deadline=None)
def test_draws_are_those_of_the_reference(
    splits: list[int], trainings: list[int], rows: int, tested: int, dim: int, epochs: int
) -> None:
    """The split, the layer's initial values to the last bit, and the order of every epoch agree."""
    tested = min(tested, rows - 1)
    orders = [np.random.RandomState(seed).permutation(rows).astype(np.int32) for seed in splits]
    draws = draw_folds(
        [Split(order=order, tested=tested) for order in orders],
        np.array(trainings, dtype=np.uint32),
        dim=dim,
        epochs=epochs,
    )
    for fold, (split, seed) in enumerate(zip(orders, trainings, strict=True)):
        assert np.array_equal(draws.tests[fold], split[:tested])
        torch.manual_seed(seed)
        layer = torch.nn.Linear(dim, 1)
        initial = [*layer.weight.detach().numpy()[0], layer.bias.detach().numpy()[0]]
        assert np.allclose(draws.weights[fold], initial, rtol=1e-6, atol=1e-7)
        for order in draws.orders[fold]:
            torch.empty((), dtype=torch.int64).random_()
            assert np.array_equal(order, split[tested:][torch.randperm(rows - tested).numpy()])
            torch.empty((), dtype=torch.int64).random_()
            torch.randperm(tested)
