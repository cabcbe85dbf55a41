"""Scoring one submission, from embeddings and tasks to a scorecard."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from scoring.engines import Engine, EngineName, make_engine
from scoring.errors import OrganizerError, ParticipantError
from scoring.evaluate import score_embeddings
from scoring.inputs.embeddings import Embeddings
from scoring.metrics import quality
from scoring.protocol import Protocol, Recipe, ids_hash
from scoring.randomness import phase_key, secret_commitment
from scoring.scorecard import Scorecard
from scoring.tasks import Task, TaskType
from tests.scoring.inputs.reading_tables import embeddings_of

IDS = tuple(f"sample_{number:03d}" for number in range(90))
KEY = phase_key(b"s" * 32, "dev")
LOCAL = make_engine("local", threads=2)


def embeddings(scale: float = 1.0, shift: float = 0.0) -> Embeddings:
    """Make embeddings of 90 ids in 7 dimensions."""
    matrix = np.random.RandomState(1).standard_normal((len(IDS), 7)) * scale + shift
    return embeddings_of(IDS, matrix.astype(np.float32))


def task(name: str, kind: str, chosen: slice = slice(None), seed: int = 0) -> Task:
    """Make a task that depends on the embeddings."""
    source = embeddings().matrix[chosen].astype(np.float64)
    signal = source @ np.random.RandomState(seed).standard_normal(7)
    labels = signal * 50 + 300 if kind == "regr" else (signal > 0).astype(np.float64)
    ids = IDS[chosen]
    return Task(
        name=name, type=TaskType(kind), ids=ids, labels=labels, version="v" + name, row_set=ids_hash(ids)
    )


def protocol(**changes: object) -> Protocol:
    """Make a protocol of four folds and three epochs."""
    recipe = Recipe(**{"epochs": 3, "learning_rate": 0.05, **changes})
    return Protocol(
        phase="dev",
        folds=4,
        embedding_dim=7,
        ids_hash=ids_hash(IDS),
        secret_commitment=secret_commitment(KEY),
        recipe=recipe,
    )


TASKS = (
    task("b", "regr"),
    task("a", "cls", seed=2),
    task("c", "regr", slice(10, 80)),
    task("d", "cls", slice(10, 80)),
)


def folds(card: Scorecard) -> dict[str, tuple[float, ...]]:
    """Fold scores by task."""
    return {score.task: score.folds for score in card.tasks}


def test_a_scorecard_summarizes_its_folds() -> None:
    """Q and mean Q follow from the folds; each probe is reported once; the JSON document reads back."""
    progress: list[int] = []
    card = score_embeddings(embeddings(), TASKS, protocol(), KEY, engine=LOCAL, progress=progress.append)
    assert sum(progress) == 16
    assert [score.q for score in card.tasks] == [quality(score.folds).q for score in card.tasks]
    assert {len(score.folds) for score in card.tasks} == {4}
    assert card.q_mean == math.fsum(score.q for score in card.tasks) / 4
    assert {"numpy", "numba", "python", "engine"} <= set(card.versions)
    assert card.peak_memory_bytes > 10**7
    assert Scorecard.from_json(json.loads(json.dumps(card.to_json()))) == card


def test_other_tasks_and_their_order_change_nothing() -> None:
    """A task's scores have the same bits alone, among others, and in any order."""
    whole = folds(score_embeddings(embeddings(), TASKS, protocol(), KEY, engine=LOCAL))
    assert folds(score_embeddings(embeddings(), TASKS[::-1], protocol(), KEY, engine=LOCAL)) == whole
    for task_alone in TASKS:
        alone = score_embeddings(
            embeddings(), [task_alone], protocol(), KEY, engine=make_engine("local", threads=1)
        )
        assert folds(alone) == {task_alone.name: whole[task_alone.name]}


def test_tasks_on_the_same_ids_share_their_splits_and_other_secrets_do_not() -> None:
    """The same labels under two names score the same; under another key they do not."""
    twins = (TASKS[0], replace(TASKS[0], name="twin"))
    card = folds(score_embeddings(embeddings(), twins, protocol(), KEY, engine=LOCAL))
    assert card["b"] == card["twin"]
    other = score_embeddings(embeddings(), twins, protocol(), phase_key(b"t" * 32, "dev"), engine=LOCAL)
    assert folds(other)["b"] != card["b"]


def test_scale_and_shift_of_embeddings_and_labels_do_not_matter() -> None:
    """Both are normalized, unless the protocol says otherwise."""
    plain = folds(score_embeddings(embeddings(), TASKS, protocol(), KEY, engine=LOCAL))
    moved = folds(score_embeddings(embeddings(1000, -500), TASKS, protocol(), KEY, engine=LOCAL))
    for name, scores in plain.items():
        assert scores == pytest.approx(moved[name], abs=1e-3)
    raw = protocol(standardize_embeddings=False)
    assert folds(score_embeddings(embeddings(3.0), TASKS, raw, KEY, engine=LOCAL)) != plain
    labels = protocol(normalize_labels=False)
    assert folds(score_embeddings(embeddings(), TASKS, labels, KEY, engine=LOCAL))["b"] != plain["b"]


def test_too_many_failed_folds_are_a_participant_error_without_task_names() -> None:
    """These embeddings overflow without standardization; the message is only about their scale."""
    raw = protocol(standardize_embeddings=False)
    with pytest.raises(ParticipantError) as fault:
        score_embeddings(embeddings(1e37), TASKS, raw, KEY, engine=LOCAL)
    assert fault.value.code == "scores.not_finite"
    assert "scale" in fault.value.message
    assert "task" not in fault.value.message.lower()
    assert "fold" not in fault.value.message.lower()


def test_a_few_failed_folds_are_allowed() -> None:
    """Up to max_failed_folds are left out of mean and standard deviation and counted."""

    class Flawed(Engine):
        name = "flawed"

        def score(self, unit: object, **_: object) -> np.ndarray:
            return np.array([[0.5, math.nan, 0.5, 0.5], [0.25, 0.25, 0.25, 0.25]])

    card = score_embeddings(embeddings(), TASKS[:2], protocol(max_failed_folds=1), KEY, engine=Flawed())
    assert [score.failed_folds for score in card.tasks] == [1, 0]
    assert [score.q for score in card.tasks] == pytest.approx([50, 25])
    with pytest.raises(ParticipantError):
        score_embeddings(embeddings(), TASKS[:2], protocol(max_failed_folds=0), KEY, engine=Flawed())


def test_a_phase_without_tasks_and_an_unknown_engine_are_refused() -> None:
    """Without tasks there is no mean; the hint lists the engines."""
    with pytest.raises(OrganizerError):
        score_embeddings(embeddings(), [], protocol(), KEY, engine=LOCAL)
    with pytest.raises(OrganizerError) as refusal:
        make_engine("abacus")
    assert "local" in refusal.value.hint


@pytest.mark.parametrize("name", sorted({*get_args(EngineName)} - {"ray"}))
def test_every_engine_that_the_configuration_accepts_can_be_made(name: str) -> None:
    """Under the name by which a scorecard shows it; an engine of a cluster has tests of its own."""
    assert make_engine(name).name == name
