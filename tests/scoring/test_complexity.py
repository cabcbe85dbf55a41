"""The complexity metrics of an embedding and its probe."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard import Entry, PhaseSnapshot, Rules
from leaderboard.exchange import rows_of_phase
from scoring.metrics import complexity, sparsity
from scoring.protocol import Recipe


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0, 1))
def test_sparsity_is_the_share_of_zeros(rows: int, columns: int, share: float) -> None:
    """This holds for any shape; dense and effective operations differ by this share."""
    matrix = (np.random.RandomState(rows).random_sample((rows, columns)) >= share).astype(np.float32)
    assert sparsity(matrix) == pytest.approx(float((matrix == 0).mean()))
    cost = complexity(matrix, (columns, 1), 0.5)
    assert cost.effective_multiply_accumulates == pytest.approx(
        float((matrix != 0).mean()) * columns, abs=0.501
    )
    assert cost.embedding_bytes == 4 * columns
    assert cost.latency_ms == 500.0


def test_only_public_submissions_are_exported() -> None:
    """The export of a phase has the first five folds with a score of each public entry and task."""
    entries = tuple(
        Entry(
            submission=number,
            team_key=number,
            team="Team",
            method="mine",
            submitted_at=datetime(2026, 1, 1, tzinfo=UTC),
            public=number == 1,
            baseline=False,
            scores={"a": (0.5, 0.6, 0.5, 0.6, 0.5, 0.1), "b": (0.1, 0.2, 0.1, float("nan"), 0.1, 0.2)},
        )
        for number in (1, 2)
    )
    phase = PhaseSnapshot(
        codename="dev", title="dev", rules=Rules(), row_sets={"a": "x", "b": "y"}, entries=entries
    )
    rows = rows_of_phase(phase, {"a": "regr", "b": "cls"}, vars(Recipe()))
    shown = rows[["backbone", "dataset", "Metric", "Seed", "batch_size", "test metric"]].to_numpy().tolist()
    assert shown == [
        ["Team – mine (1)", task, metric, fold, 64, score]
        for task, metric, scores in (
            ("a", "R2_Score", {0: 0.5, 1: 0.6, 2: 0.5, 3: 0.6, 4: 0.5}),
            ("b", "F1_Score", {0: 0.1, 1: 0.2, 2: 0.1, 4: 0.1, 5: 0.2}),
        )
        for fold, score in scores.items()
    ]
