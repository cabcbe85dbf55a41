"""The complexity metrics of an embedding and its probe."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard import Entry, PhaseSnapshot, Rules
from leaderboard.exchange import neurobench_documents, rows_of_phase
from scoring.complexity import complexity, sparsity
from scoring.engines import LocalEngine
from scoring.evaluate import score_embeddings
from scoring.inputs.embeddings import Embeddings
from scoring.protocol import Protocol, Recipe, ids_hash
from scoring.scorecard import Scorecard
from scoring.tasks import TaskType, make_task


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


def test_a_challenges_scorecard_has_its_complexity(tmp_path: Path) -> None:
    """Every scorecard has its probe's complexity, survives JSON, and is exported in NeuroBench's layout; older ones are still read."""
    ids = tuple(f"s{number:02}" for number in range(40))
    generator = np.random.RandomState(0)
    matrix = np.maximum(generator.standard_normal((40, 6)), 0).astype(np.float32)
    rows = [(n, i, float(matrix[n].sum() + 0.1 * n)) for n, i in enumerate(ids)]
    task = make_task("sum", TaskType.REGRESSION, rows, frozenset(ids), source="here")
    protocol = Protocol(
        phase="dev",
        folds=2,
        embedding_dim=6,
        ids_hash=ids_hash(ids),
        secret_commitment="0" * 64,
        recipe=Recipe(epochs=1),
    )
    card = score_embeddings(
        Embeddings.from_rows(ids, matrix), [task], protocol, b"k" * 32, engine=LocalEngine(threads=1)
    )
    assert card.complexity["probe_parameters"] == 7
    assert card.complexity["activation_sparsity"] == pytest.approx(float((matrix == 0).mean()))
    assert Scorecard.from_json(card.to_json()) == card
    older = card.to_json()
    del older["complexity"]
    assert Scorecard.from_json(older).complexity == {}
    path = tmp_path / "card.json"
    path.write_text(json.dumps(card.to_json()))
    [found] = neurobench_documents(path)
    assert (found["task"], found["model"]) == ("sum", "card")
    assert found["metrics"]["complexity"]["total_parameters"] == 7
    assert found["metrics"]["correctness"]["r2"] == card.tasks[0].mean


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
