"""NeuCo-Bench's own numbers: its random stream, replayed.

The standalone benchmark seeds everything with 42 once and then lets one stream run through all tasks and folds, so a fold's draws depend on
all that came before. They can be counted, though (see :func:`scoring.kernel.draws_per_fold`): the stream is moved past a fold without
training it, and folds are trained in parallel. Splits are those of ``ShuffleSplit(random_state=42)``, the same for each task of a size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.engine import ignore, never
from scoring.evaluate import training_labels
from scoring.local import FoldJob, available_cores, train_folds
from scoring.protocol import Recipe
from scoring.rows import NEUTRAL, gather, reference_moments
from scoring.tasks import TaskType

SEED = 42


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayTask:
    """A task as its label file has it.

    Attributes:
        name: Identifier; tasks run in sorted order of their names.
        type: Regression or classification.
        rows: For each label, in the order of the file, the row of the matrix that has its embedding.
        labels: float64, in the order of the file.
    """

    name: str
    type: TaskType
    rows: NDArray[np.intp]
    labels: NDArray[np.float64]


def replay_scores(
    matrix: NDArray[np.float32],
    tasks: Sequence[ReplayTask],
    *,
    folds: int,
    recipe: Recipe,
    embedding_dim: int | None = None,
    threads: int | None = None,
    progress: Callable[[int], None] = ignore,
    cancelled: Callable[[], bool] = never,
) -> dict[str, tuple[float, ...]]:
    """Score embeddings as NeuCo-Bench's ``main.py`` does, to about 1e-5 per fold.

    Args:
        matrix: float32, one row for each id that occurs in any label file, tasks that are not scored included: all of them count for the
            standardisation. Values that are not numbers are 0 here, as there.
        tasks: Tasks to score. Another set of tasks is another stream for the later ones, here as there.
        folds: Number K of random splits.
        recipe: Hyper-parameters; NeuCo-Bench's ``test_size`` is 0.1.
        embedding_dim: Narrower embeddings are padded with zeros to it, before they are standardised.
        threads: Folds trained at once; None takes all cores that this process may use.
        progress: Called with the number of folds finished since the last call.
        cancelled: Asked at least once a second whether to stop.

    Returns:
        The K scores of each task by name, in sorted order; NaN where NeuCo-Bench would have minus infinity.

    Raises:
        ValueError: If the embeddings are wider than ``embedding_dim``.
        Cancelled: If ``cancelled`` said so.
    """
    from scoring.torch_stream import STATE_SIZE, start

    matrix = _zero_padded(matrix, embedding_dim)
    scale = reference_moments(matrix) if recipe.standardize_embeddings else NEUTRAL
    stream = np.empty(STATE_SIZE, dtype=np.uint32)
    start(stream, SEED)
    scores: dict[str, tuple[float, ...]] = {}
    for task in sorted(tasks, key=lambda task: task.name):
        labels = _labels(task, normalize=recipe.normalize_labels)
        result = train_folds(
            gather(matrix, task.rows, scale),
            labels.reshape(1, -1),
            np.array([task.type is TaskType.CLASSIFICATION]),
            recipe,
            _jobs(stream, len(labels), matrix.shape[1], recipe, folds),
            folds=folds,
            threads=threads or available_cores(),
            progress=progress,
            cancelled=cancelled,
        )
        scores[task.name] = tuple(result[0].tolist())
    return scores


def _jobs(stream: NDArray[np.uint32], rows: int, dim: int, recipe: Recipe, folds: int) -> Iterator[FoldJob]:
    """Hand out each fold with a copy of the stream and move the stream past it."""
    from scoring.kernel import draws_per_fold
    from scoring.torch_stream import skip

    splits = np.random.RandomState(SEED)
    for fold in range(folds):
        split = splits.permutation(rows).astype(np.int32)
        yield FoldJob(tasks=(0,), fold=fold, split=split, stream=stream.copy())
        skip(stream, draws_per_fold(dim, rows, recipe.epochs))


def _labels(task: ReplayTask, *, normalize: bool) -> NDArray[np.float32]:
    """NeuCo-Bench scales the labels of classifications too, so -1 and 1 become 0 and 1."""
    with np.errstate(invalid="ignore"):  # constant labels become NaN there, and the folds fail
        return training_labels(task.labels, TaskType.REGRESSION, normalize=normalize)


def _zero_padded(matrix: NDArray[np.float32], embedding_dim: int | None) -> NDArray[np.float32]:
    missing = 0 if embedding_dim is None else embedding_dim - matrix.shape[1]
    if missing < 0:
        raise ValueError(
            f"the embeddings have {matrix.shape[1]} dimensions, expected at most {embedding_dim}"
        )
    return np.pad(matrix, ((0, 0), (0, missing))) if missing else matrix
