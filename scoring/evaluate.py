"""Score one submission: embeddings, hidden tasks and protocol to a scorecard."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from scoring.engines import Engine, Unit, ignore, make_engine
from scoring.errors import OrganizerError, ParticipantError
from scoring.inputs.embeddings import Embeddings
from scoring.kernel import NEUTRAL, Moments, gather, moments
from scoring.metrics import mean_quality, quality
from scoring.protocol import Protocol
from scoring.randomness import Splitter, fold_seeds, group_numbers, test_parts
from scoring.scorecard import Scorecard, TaskScore, machine, peak_memory_bytes, versions
from scoring.tasks import Task, TaskType


def score_embeddings(
    embeddings: Embeddings,
    tasks: Sequence[Task],
    protocol: Protocol,
    phase_key: bytes,
    *,
    engine: Engine | None = None,
    progress: Callable[[int], None] = ignore,
) -> Scorecard:
    """Train and score probes on every task and summarize the folds.

    A task's scores depend on the embeddings, its own labels and the protocol only: other tasks, their order and the engine's threads change
    nothing.

    Args:
        embeddings: Embeddings of exactly the phase's public ids.
        tasks: Hidden tasks on some of these ids, in any order; at least one.
        protocol: The phase's protocol.
        phase_key: See :func:`scoring.randomness.seeds.phase_key`.
        engine: Trains the probes; None for the compiled kernel on all cores.
        progress: Called with the number of probes (a fold of a task) finished since the last call.

    Returns:
        The scorecard, with the tasks sorted by name.

    Raises:
        ParticipantError: If more than ``max_failed_folds`` folds of a task are not finite.
        OrganizerError: If there are no tasks.
    """
    started = time.perf_counter()
    if not tasks:
        raise OrganizerError(
            f"Phase {protocol.phase} has no tasks.",
            hint="Add label files to its tasks folder.",
            code="tasks.none",
        )
    engine = engine or make_engine("local")
    scale = moments(embeddings.matrix) if protocol.recipe.standardize_embeddings else NEUTRAL
    row_sets = list(_row_sets(tasks))
    units = (_unit(embeddings, scale, sharing, protocol, phase_key) for sharing in row_sets)
    fold_scores = engine.score_all(units, progress=progress)
    parts = [test_parts(tested(first.row_set, first.groups, protocol, phase_key)) for first, *_ in row_sets]
    scores = sorted(
        _task_scores(row_sets, fold_scores, parts, protocol),
        key=lambda score: score.task,
    )
    _check_failed_folds(scores, protocol)
    return Scorecard(
        tasks=tuple(scores),
        q_mean=mean_quality([score.q for score in scores]),
        versions={"engine": engine.name, **versions(*engine.libraries)},
        machine=machine(),
        seconds=time.perf_counter() - started,
        peak_memory_bytes=peak_memory_bytes(),
    )


def training_labels(labels: NDArray[np.float64], kind: TaskType, *, normalize: bool) -> NDArray[np.float32]:
    """Return labels as float32; regression labels are scaled to [0, 1] if ``normalize`` is true (paper A.1)."""
    if kind is TaskType.REGRESSION and normalize:
        low, high = labels.min(), labels.max()
        labels = (labels - low) / (high - low)
    return labels.astype(np.float32)


def tested(
    row_set: str, groups: Sequence[str], protocol: Protocol, phase_key: bytes
) -> list[NDArray[np.int32]]:
    """Return the rows that each fold of a row set tests; none without groups, because no two folds then test the same ones."""
    return _test_rows(row_set, len(groups), groups, protocol, phase_key) if groups else []


def tested_positives(task: Task, protocol: Protocol, phase_key: bytes) -> NDArray[np.int64]:
    """Return how many positive samples each fold of a classification tests."""
    rows = _test_rows(task.row_set, len(task.ids), task.groups, protocol, phase_key)
    return np.array([np.count_nonzero(task.labels[of_fold]) for of_fold in rows])


def _test_rows(
    row_set: str, samples: int, groups: Sequence[str], protocol: Protocol, phase_key: bytes
) -> list[NDArray[np.int32]]:
    seeds, _ = fold_seeds(phase_key, row_set, protocol.folds, derivation=protocol.derivation)
    splitter = Splitter(samples, protocol.recipe.test_size, group_numbers(groups) if groups else None)
    return [splitter.split(seed).test for seed in seeds.tolist()]


def _row_sets(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Yield the tasks of each row set, whose rows are gathered once, in the order of their first task's name."""
    sharing: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: task.name):
        sharing.setdefault(task.row_set, []).append(task)
    yield from sharing.values()


def _unit(
    embeddings: Embeddings,
    scale: Moments,
    sharing: list[Task],
    protocol: Protocol,
    phase_key: bytes,
) -> Unit:
    split_seeds, training_seeds = fold_seeds(
        phase_key, sharing[0].row_set, protocol.folds, derivation=protocol.derivation
    )
    position = {identifier: row for row, identifier in enumerate(embeddings.ids)}
    index = np.array([position[identifier] for identifier in sharing[0].ids], dtype=np.intp)
    normalize = protocol.recipe.normalize_labels
    return Unit(
        rows=gather(embeddings.matrix, index, scale),
        targets=np.stack([training_labels(task.labels, task.type, normalize=normalize) for task in sharing]),
        classification=np.array([task.type is TaskType.CLASSIFICATION for task in sharing]),
        split_seeds=split_seeds,
        training_seeds=training_seeds,
        recipe=protocol.recipe,
        groups=group_numbers(sharing[0].groups) if sharing[0].groups else None,
    )


def _task_scores(
    row_sets: Sequence[list[Task]],
    fold_scores: Iterable[NDArray[np.float64]],
    parts: Sequence[tuple[int, ...]],
    protocol: Protocol,
) -> Iterator[TaskScore]:
    """Summarize each row set as soon as it is scored; its tasks share the time since the previous one."""
    begun = time.perf_counter()
    for sharing, folds, of_folds in zip(row_sets, fold_scores, parts, strict=True):
        ended = time.perf_counter()
        seconds, begun = (ended - begun) / len(sharing), ended
        for task, of_task in zip(sharing, folds.tolist(), strict=True):
            yield TaskScore(
                task=task.name,
                version=task.version,
                type=task.type.value,
                row_set=task.row_set,
                folds=tuple(of_task),
                test_parts=of_folds,
                **vars(quality(of_task, protocol.recipe.epsilon)),
                seconds=seconds,
            )


def _check_failed_folds(scores: Sequence[TaskScore], protocol: Protocol) -> None:
    allowed = min(protocol.recipe.max_failed_folds, protocol.folds - 1)
    if any(score.failed_folds > allowed for score in scores):
        raise ParticipantError(
            "Training on these embeddings gives scores that are not finite.",
            hint="Check the scale of the embeddings: this happens when a few values are many orders of magnitude larger than the rest.",
            code="scores.not_finite",
        )
