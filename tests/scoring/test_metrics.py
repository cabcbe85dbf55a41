"""The metrics against torchmetrics, edge rules included, and Q against hand-computed values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from scoring.metrics import SIGMOID_HALF, f1, mean_quality, quality, r2
from tests.later import GROUP, Later

pytestmark = GROUP
torch = Later("torch")
classification = Later("torchmetrics.functional.classification")
regression = Later("torchmetrics.functional.regression")

UNIT = st.floats(0, 1, width=32)


@given(
    st.integers(2, 40).flatmap(
        lambda n: st.tuples(arrays(np.float32, n, elements=UNIT), arrays(np.float32, n, elements=UNIT))
    )
)
def test_r2_agrees_with_torchmetrics(pair: tuple[np.ndarray, np.ndarray]) -> None:
    """They are equal up to float32 rounding, unless the sums of squares are at the tolerance itself."""
    predictions, targets = pair
    total = float(np.sum((targets - targets.mean(dtype=np.float64)) ** 2))
    residual = float(np.sum((targets.astype(float) - predictions) ** 2))
    if any(abs(value - 1e-4) < 2e-5 for value in (total, residual)) or (1e-4 < total < 1e-2):
        return  # sums in float32 may be on the other side
    expected = regression.r2_score(torch.from_numpy(predictions), torch.from_numpy(targets)).item()
    assert r2(predictions, targets) == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(
    ("predictions", "targets"),
    [
        ([0.5, 0.5], [0.5, 0.5]),
        ([0.5, 0.505], [0.5, 0.5]),
        ([0.5, 0.6], [0.5, 0.5]),
        ([math.nan, 0.5], [0.0, 1.0]),
        ([math.nan, 0.5], [0.5, 0.5]),
        ([math.inf, 0.5], [0.0, 1.0]),
        ([-math.inf, 0.5], [0.5, 0.5]),
        ([0.0, 1.0], [1.0, 0.0]),
        ([3e38, 0.0], [0.0, 1.0]),
    ],
)
def test_r2_follows_the_edge_rules(predictions: list[float], targets: list[float]) -> None:
    """Near-zero sums, NaN and infinities give what torchmetrics gives."""
    pair = np.array(predictions, dtype=np.float32), np.array(targets, dtype=np.float32)
    expected = regression.r2_score(torch.from_numpy(pair[0]), torch.from_numpy(pair[1])).item()
    ours = r2(*pair)
    if math.isfinite(expected):
        assert ours == pytest.approx(expected, abs=1e-6)
    else:
        assert not math.isfinite(ours) or ours < -1e38  # float32 overflows where float64 does not


LOGITS = st.one_of(
    UNIT, st.floats(-4, 4, width=32), st.sampled_from([0.0, 0.5, 1.0, math.nan, math.inf, -math.inf])
)


@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(
            st.lists(LOGITS, min_size=n, max_size=n), st.lists(st.booleans(), min_size=n, max_size=n)
        )
    )
)
def test_f1_agrees_with_torchmetrics(pair: tuple[list[float], list[bool]]) -> None:
    """This covers values inside and outside [0, 1], no positives, no negatives, and NaN."""
    logits = np.array(pair[0], dtype=np.float32)
    targets = np.array(pair[1], dtype=np.float32)
    expected = classification.binary_f1_score(
        torch.from_numpy(logits), torch.from_numpy(targets).long()
    ).item()
    assert f1(logits, targets) == pytest.approx(expected, abs=1e-6)


def test_the_threshold_is_where_float32_sigmoid_leaves_one_half() -> None:
    """Torch decides differently for the greatest logit that is a negative and for the next float above it."""
    edge = np.float32(SIGMOID_HALF)
    above = np.nextafter(edge, np.float32(1))
    assert torch.sigmoid(torch.tensor([edge * np.float32(0.999)])).item() <= 0.5
    assert torch.sigmoid(torch.tensor([above])).item() > 0.5


def test_quality_by_hand() -> None:
    """Folds 0.4 and 0.6: mean 0.5, population std 0.1, Q = 2 * 0.5 / 0.12."""
    summary = quality([0.4, 0.6])
    assert (summary.mean, summary.std) == (pytest.approx(0.5), pytest.approx(0.1))
    assert summary.q == pytest.approx(1.0 / 0.12)
    assert summary.failed_folds == 0


def test_failed_folds_are_counted_and_left_out() -> None:
    """NaN and infinities are no scores."""
    summary = quality([0.4, math.nan, 0.6, -math.inf])
    assert summary.q == quality([0.4, 0.6]).q
    assert summary.failed_folds == 2
    assert math.isnan(quality([math.nan]).q)


@given(st.lists(st.floats(-100, 1), min_size=1, max_size=50), st.randoms(use_true_random=False))
def test_the_order_of_folds_does_not_matter(folds: list[float], random: object) -> None:
    """Sums are rounded exactly, so any order of folds and tasks gives the same bits."""
    shuffled = folds.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert quality(folds) == quality(shuffled)
    assert mean_quality(folds) == mean_quality(shuffled)
