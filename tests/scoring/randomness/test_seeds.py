"""Seeds, commitments and splits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring import randomness
from scoring.protocol import ids_hash
from scoring.randomness import (
    Splitter,
    fold_draws,
    fold_seeds,
    group_numbers,
    held_out,
    phase_key,
    secret_commitment,
)
from tests.later import GROUP, Later

pytestmark = GROUP
model_selection = Later("sklearn.model_selection")

PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
VECTORS = json.loads(re.search(r'```json\n(\{\s+"secret".*?)```', PAGE, re.DOTALL)[1])


def test_the_documented_vectors_hold() -> None:
    """Key, commitment, row set, seeds, first split, initial weights and first order are those of docs/protocol.md."""
    key = phase_key(bytes.fromhex(VECTORS["secret"]), VECTORS["phase"])
    row_set = ids_hash(tuple(VECTORS["ids"]))
    split_seeds, training_seeds = fold_seeds(key, row_set, 3, derivation=VECTORS["version"])
    assert key.hex() == VECTORS["phase_key"]
    assert secret_commitment(key) == VECTORS["commitment"]
    assert row_set == VECTORS["row_set"]
    assert split_seeds.tolist() == VECTORS["split_seeds"]
    assert training_seeds.tolist() == VECTORS["training_seeds"]
    assert Splitter(10, 0.1).split(int(split_seeds[0])).order.tolist() == VECTORS["first_permutation_of_10"]
    state = np.empty(fold_draws.STATE_SIZE, dtype=np.uint32)
    fold_draws.start(state, int(training_seeds[0]))
    drawn = [fold_draws.uniform(state, -0.5, 0.5) for _ in range(5)]
    assert drawn == pytest.approx([*VECTORS["first_weights_of_4"], VECTORS["first_bias"]], abs=1e-7)
    fold_draws.skip(state, 2)
    order = np.empty(9, dtype=np.int32)
    fold_draws.shuffle(state, np.arange(9, dtype=np.int32), order)
    assert order.tolist() == VECTORS["first_order_of_9"]


@pytest.mark.parametrize(
    "other",
    [
        {"key": phase_key(b"another secret", "eval")},
        {"key": phase_key(b"secret", "dev")},
        {"row_set": "cd"},
        {"derivation": 2},
    ],
)
def test_seeds_depend_on_secret_phase_row_set_and_version(other: dict) -> None:
    """Changing any one of them changes every seed."""
    base = {"key": phase_key(b"secret", "eval"), "row_set": "ab", "folds": 20, "derivation": 1}
    for ours, theirs in zip(fold_seeds(**base), fold_seeds(**{**base, **other}), strict=True):
        assert not set(ours.tolist()) & set(theirs.tolist())


@given(st.integers(2, 500), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.25, 0.5]))
def test_splits_are_those_of_scikit_learn(rows: int, seed: int, test_size: float) -> None:
    """The first rows of the permutation are ShuffleSplit's test part, the others its training part, in order."""
    if held_out(rows, test_size) == rows:
        return
    split = Splitter(rows, test_size).split(seed)
    splitter = model_selection.ShuffleSplit(n_splits=1, test_size=test_size, random_state=seed)
    train, test = next(splitter.split(np.zeros((rows, 1))))
    assert (split.test.tolist(), split.train.tolist()) == (test.tolist(), train.tolist())


@given(
    st.lists(st.integers(1, 30), min_size=5, max_size=40),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.1, 0.25, 0.5]),
)
def test_no_group_is_in_both_parts(sizes: list[int], seed: int, test_size: float) -> None:
    """Both parts are in the order of the rows, and no other group would bring the test part nearer to its size, unless none fits at all."""
    names = np.random.RandomState(seed % 100).permutation(
        np.repeat([f"g{n}" for n in range(len(sizes))], sizes)
    )
    wanted = test_size * len(names)
    split = Splitter(len(names), test_size, group_numbers(names.tolist())).split(seed)
    assert sorted(split.order.tolist()) == list(range(len(names)))
    assert set(names[split.test]).isdisjoint(names[split.train])
    assert all(part.size and (np.diff(part) > 0).all() for part in (split.test, split.train))
    if min(sizes) >= 2 * wanted:
        assert split.tested == min(sizes)
        return
    for name in set(names) - set(names[split.test]):
        more = split.tested + np.count_nonzero(names == name)
        assert abs(more - wanted) >= abs(split.tested - wanted)


def test_folds_that_test_the_same_rows_get_the_same_number() -> None:
    """In whatever order they were drawn; nothing is said where all folds test other rows."""
    tests = [np.array(rows, np.int32) for rows in ([7, 3], [1, 2], [3, 7], [2, 1], [3, 1])]
    assert randomness.test_parts(tests) == (0, 1, 0, 1, 2)
    assert randomness.test_parts(tests[:2]) == ()
