"""Blocks have as many folds as fit, and fewer when the device runs out of memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scoring.engines.fold_memory import Footprint, in_blocks
from scoring.errors import InfrastructureError

TOO_LARGE = InfrastructureError("One fold does not fit.", code="engine.memory")


@given(folds=st.integers(1, 50), most=st.integers(1, 60), room=st.integers(1, 60))
def test_every_fold_is_trained_once_and_in_order(folds: int, most: int, room: int) -> None:
    """Blocks are halved until they fit, whatever the estimate was."""
    trained: list[int] = []
    asked: list[int] = []

    def train(block: slice) -> None:
        asked.append(block.stop - block.start)
        if asked[-1] > room:
            raise torch.OutOfMemoryError
        trained.extend(range(block.start, block.stop))

    in_blocks(folds, most, train, too_large=TOO_LARGE)
    assert trained == list(range(folds))
    assert max(asked) <= most
    assert sum(size > room for size in asked) <= 6  # 60 halved six times is 0


@pytest.mark.parametrize("most", [0, 1, 5])
def test_a_single_fold_that_does_not_fit_is_an_error(most: int) -> None:
    """It is an error whether the estimate or the device finds it."""

    def train(block: slice) -> None:
        raise torch.OutOfMemoryError

    with pytest.raises(InfrastructureError) as caught:
        in_blocks(5, most, train, too_large=TOO_LARGE)
    assert caught.value is TOO_LARGE


def test_a_lack_of_memory_is_detected_behind_another_error() -> None:
    """For example, the end of a recording may fail because of it."""
    trained: list[int] = []

    def train(block: slice) -> None:
        if block.stop - block.start > 1:
            try:
                raise torch.OutOfMemoryError
            finally:
                raise RuntimeError("capture was invalidated")
        trained.append(block.start)

    in_blocks(3, 3, train, too_large=TOO_LARGE)
    assert trained == [0, 1, 2]


def test_other_errors_are_raised() -> None:
    """Only a lack of memory reduces the size of blocks."""

    def train(block: slice) -> None:
        raise RuntimeError("device-side assert")

    with pytest.raises(RuntimeError, match="device-side assert"):
        in_blocks(5, 5, train, too_large=TOO_LARGE)


@given(shared=st.integers(0, 10**9), per_fold=st.integers(1, 10**9), limit=st.integers(0, 10**12))
def test_the_largest_number_of_folds_that_fits(shared: int, per_fold: int, limit: int) -> None:
    """They need at most the limit, and one fold more would need more."""
    needed = Footprint(shared=shared, per_fold=per_fold, drawn=0)
    fitting = needed.folds_in(limit)
    assert fitting == 0 or shared + fitting * per_fold <= limit
    assert shared + (fitting + 1) * per_fold > limit
