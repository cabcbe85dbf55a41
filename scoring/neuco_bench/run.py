"""One run of the standalone benchmark: score and report every task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scoring.errors import OrganizerError
from scoring.evaluate import training_labels
from scoring.inputs.matrix_builder import has_equal_rows
from scoring.kernel import NEUTRAL, Moments, column_sums, gather, reference_moments
from scoring.metrics import R2_TOLERANCE, Complexity, Quality, complexity, mean_quality, quality
from scoring.neuco_bench.configuration import StandaloneSettings
from scoring.neuco_bench.labels import LabeledTask
from scoring.neuco_bench.material import Material
from scoring.neuco_bench.reading import LenientEmbeddings
from scoring.printable import count_of, name_some
from scoring.probes.measures import measures
from scoring.probes.probe import TEST_SIZE, FoldResult, ProbeInput, make_probe
from scoring.randomness import group_numbers, never_tested, test_parts
from scoring.scorecard import machine, versions
from scoring.tasks import MINIMUM_ROWS, TaskType, check_sizes
from scoring.tasks.packages import TaskPackage
from scoring.training_length import LEAST_MOVE, LEAST_MOVE_OF_CLASSES, TrainingLength, training_length

SEED = 42  # NeuCo-Bench's
DOMINANT = 0.99  # a share of the variance
GAP = 1e-6  # one column's variance as a share of another's


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskReport:
    """The results of one task.

    Attributes:
        data: The data that was trained on.
        folds: Every fold's result.
        hyperparameters: The values that the probes were trained with.
        quality: Mean, standard deviation and Q of the fold scores.
        metrics: Values over the folds for each metric of the paper.
        complexity: What the probe costs.
        seconds: Wall time.
        length: How long each fold trained; None unless the probe is linear, and embeddings are standardized.
    """

    data: ProbeInput
    folds: Sequence[FoldResult]
    hyperparameters: Mapping[str, object]
    quality: Quality
    metrics: Mapping[str, tuple[float, ...]]
    complexity: Complexity
    seconds: float
    length: TrainingLength | None = None

    @property
    def test_parts(self) -> tuple[int, ...]:
        """The number of each fold's test part; empty if no two folds have the same one."""
        return test_parts(fold.test for fold in self.folds)

    @property
    def trained_enough(self) -> bool:
        """Whether the probe trained for enough steps for its score to say something about the embeddings."""
        return self.length is None or self.length.is_enough


@dataclass(frozen=True, kw_only=True, eq=False)
class RunReport:
    """The results of a run.

    Attributes:
        tasks: In order of their names.
        overall_q: Mean Q, NaN unless every task has one.
        overall_score: Mean of the tasks' mean scores, NaN unless every task has one.
        seed: Seed of splits and training.
        embedding_dim: Dimension N of the trained embeddings.
        versions: Those of Python and of the libraries that it was computed with.
        machine: The machine that it was computed on.
        warnings: What a challenge would have refused, and what went wrong.
        packages: The task packages, with ceilings and groups.
        scale: Mean and standard deviation of the standardization.
        notes: What was chosen, although something else could have been meant.
    """

    tasks: tuple[TaskReport, ...]
    overall_q: float
    overall_score: float
    seed: int
    embedding_dim: int
    versions: Mapping[str, str]
    machine: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    packages: tuple[TaskPackage, ...] = ()
    scale: Moments = NEUTRAL
    notes: tuple[str, ...] = ()


def score_run(
    material: Material,
    settings: StandaloneSettings,
    *,
    seed: int = SEED,
    threads: int | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> RunReport:
    """Score all tasks, in order of their names.

    As in NeuCo-Bench, embeddings are standardized over the ids of all label files together, even those of tasks that are not scored.
    ``progress`` is called with the folds that were trained since its last call, and with the number of all.

    Raises:
        OrganizerError: If the probe or its parameters are wrong.
    """
    matrix = material.embeddings.matrix
    scale = reference_moments(matrix) if settings.standardize_embeddings else NEUTRAL
    probe = make_probe(settings.probe_type, settings.probe_params, seed=seed, threads=threads)
    rows = {identifier: row for row, identifier in enumerate(material.embeddings.ids)}
    tasks, small = _large_enough(material.tasks, rows)
    tasks, unused = _with_used_labels(tasks, rows)

    @cache
    def gathered(index: bytes) -> NDArray[np.float32]:
        return gather(matrix, np.frombuffer(index, dtype=np.intp), scale)

    # All tasks are checked before the first is trained.
    joined = [_join(task, rows, matrix, gathered, normalize=settings.normalize_labels) for task in tasks]
    reports: list[TaskReport] = []
    warnings = [*material.warnings, *small, *unused]
    if scale is not NEUTRAL:
        warnings.extend(_dominant(material.embeddings, scale))
    is_judged = settings.probe_type == "linear" and scale is not NEUTRAL
    for sharing in _sharing(joined, together=probe.shares_folds):
        begun = time.perf_counter()
        trained = probe.train(
            *sharing,
            folds=settings.k_folds,
            details=settings.enable_plots,
            progress=lambda finished: progress(finished, len(joined) * settings.k_folds),
        )
        seconds = (time.perf_counter() - begun) / len(sharing)
        for data, results in zip(sharing, trained, strict=True):
            layers = None if probe.hidden is None else (matrix.shape[1], *probe.hidden, data.outputs)
            cost = complexity(matrix, layers, seconds / settings.k_folds)
            used = probe.hyperparameters(results)
            reports.append(_report(data, results, used, seconds, cost, is_judged=is_judged))
    names = [task.name for task in tasks]
    reports.sort(key=lambda report: names.index(report.data.name))
    for report in reports:
        for remarks in (_remarks, _untested_labels, _few_groups, _equal_labels):
            warnings.extend(remarks(report))
    warnings.extend(_short(reports))
    return RunReport(
        tasks=tuple(reports),
        overall_q=mean_quality([report.quality.q for report in reports]),
        overall_score=mean_quality([report.quality.mean for report in reports]),
        seed=seed,
        embedding_dim=matrix.shape[1],
        versions=versions(*probe.computed_with(task.kind for task in tasks)),
        machine=machine(),
        warnings=tuple(warnings),
        packages=material.packages,
        scale=scale,
        notes=material.notes,
    )


def _sharing(joined: Sequence[ProbeInput], *, together: bool) -> list[list[ProbeInput]]:
    """Return the inputs of one task after the other, or ``together``, of all tasks with the same samples and splits."""
    sharing: dict[object, list[ProbeInput]] = {}
    for place, data in enumerate(joined):
        samples = id(data.rows), None if data.groups is None else data.groups.tobytes()
        sharing.setdefault(samples if together else place, []).append(data)
    return list(sharing.values())


def _large_enough(
    tasks: Sequence[LabeledTask], rows: Mapping[str, int]
) -> tuple[list[LabeledTask], list[str]]:
    """Return the tasks with enough samples, and a warning for each of the others.

    Raises:
        OrganizerError: If there are others only.
    """
    counts = {task.name: sum(identifier in rows for identifier in task.ids) for task in tasks}
    small = [
        f"The task {name} has {count_of(count, 'sample')} with an embedding, but at least {MINIMUM_ROWS} are needed"
        for name, count in counts.items()
        if count < MINIMUM_ROWS
    ]
    if small and len(small) == len(tasks):
        raise OrganizerError(
            f"{small[0]}.", hint="Embed or label more samples.", code="standalone.too_few_samples"
        )
    enough = [task for task in tasks if counts[task.name] >= MINIMUM_ROWS]
    return enough, [f"{sentence}. It is left out." for sentence in small]


def _with_used_labels(
    tasks: Sequence[LabeledTask], rows: Mapping[str, int]
) -> tuple[list[LabeledTask], list[str]]:
    """Leave out the labels that no sample with an embedding has, each of which would count as an F1 of 0; also return warnings."""
    kept, warnings = [], []
    for task in tasks:
        if task.kind is not TaskType.MULTILABEL:
            kept.append(task)
            continue
        used = task.labels[[identifier in rows for identifier in task.ids]].max(axis=0) > 0
        kept.append(replace(task, labels=task.labels[:, used], classes=tuple(compress(task.classes, used))))
        if unused := [*compress(task.classes, ~used)]:
            warnings.append(
                f"{task.name}: {count_of(len(unused), 'label was', 'labels were')} left out, because no sample with an embedding has"
                f" {'it' if len(unused) == 1 else 'one'}: {name_some(unused, 3)}."
            )
    return kept, warnings


def _dominant(embeddings: LenientEmbeddings, scale: Moments) -> Iterator[str]:
    """Warn if few columns, or their means, hold nearly all the variance, because one mean and one deviation scale all of them."""
    used = np.flatnonzero(embeddings.matrix.any(axis=0))
    scaling = "As in NeuCo-Bench, one mean and one standard deviation scale all values, so"
    squares = column_sums(embeddings.matrix, scale.mean, squared=True)[used]
    means = embeddings.matrix.mean(axis=0, dtype=np.float64)[used] - scale.mean
    within = squares - len(embeddings.matrix) * means**2  # around each column's own mean
    order = np.argsort(-within, kind="stable")
    shares = np.cumsum(squares[order]) / max(squares.sum(), np.finfo(np.float64).tiny)
    gaps = np.flatnonzero(within[order[1:]] < GAP * within[order[:-1]]) + 1
    far_apart = len(gaps) > 0 and gaps[0] <= len(used) // 2
    few = int(gaps[0] if far_apart else np.searchsorted(shares, DOMINANT) + 1)
    if len(used) > 1 and (far_apart or few <= max(1, len(used) // 10)):
        names = [embeddings.dimension(int(used[place])) for place in order[:few]]
        yield (
            f"{count_of(few, 'column')} of {len(used):,} {'holds' if few == 1 else 'hold'} {shares[few - 1]:.2%} of the variance of the"
            f" embeddings: {name_some(names, 3)}. {scaling} the others hardly count. Standardize each column before scoring."
        )
    if len(embeddings.matrix) * (means**2).sum() > DOMINANT * squares.sum():
        yield (
            f"The columns have means that are much farther apart than the values in a column. {scaling} differences between samples hardly"
            " count. Standardize each column before scoring."
        )


def _join(
    task: LabeledTask,
    rows: Mapping[str, int],
    matrix: NDArray[np.float32],
    gathered: Callable[[bytes], NDArray[np.float32]],
    *,
    normalize: bool,
) -> ProbeInput:
    """Return the input of a task, in the order of the label file and without ids that have no embedding.

    ``gathered`` returns the rows at an index; tasks with the same samples share them.
    """
    labeled = [place for place, identifier in enumerate(task.ids) if identifier in rows]
    groups = [task.groups[place] for place in labeled] if task.groups else []
    check_sizes(groups, f"The task {task.name}")
    labels = task.labels[labeled]
    is_scaled = normalize and task.kind is TaskType.REGRESSION
    index = np.array([rows[task.ids[place]] for place in labeled], dtype=np.intp)
    if has_equal_rows(matrix[row] for row in index):
        raise OrganizerError(
            f"All {len(index)} samples of the task {task.name} have the same embedding of {count_of(matrix.shape[1], 'value')}.",
            hint="Check how the embeddings were computed, or exclude the task with task_filter.",
            code="standalone.equal_rows",
        )
    return ProbeInput(
        name=task.name,
        kind=task.kind,
        rows=gathered(index.tobytes()),
        targets=_targets(task, labels, normalize=normalize),
        classes=task.classes,
        groups=group_numbers(groups) if groups else None,
        label_low=float(labels.min()) if is_scaled else 0.0,
        label_range=float(np.ptp(labels)) if is_scaled else 1.0,
    )


def _targets(task: LabeledTask, labels: NDArray[Any], *, normalize: bool) -> NDArray[Any]:
    """Scale labels to [0, 1], also those of two classes, so that -1 and 1 become 0 and 1."""
    if (labels == labels[0]).all():
        what = "the same" if task.kind.has_columns else f"{labels[0]:.15g}"
        raise OrganizerError(
            f"All {len(labels)} labels of the task {task.name} are {what}.",
            hint="Exclude the task with task_filter, because predictions of a constant cannot be compared.",
            code="standalone.constant_labels",
        )
    if task.kind.has_columns:
        return labels
    low, high = labels.min(), labels.max()
    if task.kind is TaskType.CLASSIFICATION and not normalize and set(labels.tolist()) != {0.0, 1.0}:
        raise OrganizerError(
            f"The classes of the task {task.name} are {low:.15g} and {high:.15g}.",
            hint="Use the labels 0 and 1, or turn normalize_labels on.",
            code="standalone.bad_classes",
        )
    return training_labels(labels, TaskType.REGRESSION, normalize=normalize)


def _report(
    data: ProbeInput,
    folds: Sequence[FoldResult],
    hyperparameters: Mapping[str, Any],
    seconds: float,
    cost: Complexity,
    *,
    is_judged: bool,
) -> TaskReport:
    """Sum up a task; ``is_judged`` says whether the probe is linear and its embeddings are standardized."""
    values = pd.DataFrame([measures(data.kind, fold.predictions, data.targets[fold.test]) for fold in folds])
    length = None
    if is_judged:
        least = LEAST_MOVE_OF_CLASSES if data.kind is TaskType.MULTICLASS else LEAST_MOVE
        length = training_length(*data.rows.shape, test_size=TEST_SIZE, least_move=least, **hyperparameters)
    return TaskReport(
        data=data,
        folds=folds,
        hyperparameters=hyperparameters,
        quality=quality([fold.score for fold in folds]),
        metrics={str(name): tuple(values[name].tolist()) for name in values},
        complexity=cost,
        seconds=seconds,
        length=length,
    )


def _short(reports: Sequence[TaskReport]) -> Iterator[str]:
    """Warn of probes that train for too few steps, with the hint."""
    short = [
        (report.length, report.data) for report in reports if report.length and not report.length.is_enough
    ]
    if short:
        length, worst = max(short, key=lambda pair: pair[0].epochs)
        names = ", ".join(data.name for _, data in short)
        # Ridge predicts 0 and 1 as numbers, so of a rare class it hardly finds a sample.
        are_numbers = all(data.kind is TaskType.REGRESSION for _, data in short)
        also = ", or the probe to ridge" if are_numbers else ""
        yield (
            f"{names}: probes train for too few steps to learn much, so these scores say little about the embeddings. Those of"
            f" {worst.name} train for {length.reason}. Set epochs to {length.epochs} or more{also}."
        )


def _few_groups(report: TaskReport) -> Iterator[str]:
    """Warn of groups that are too few for different folds, or too large to be tested on."""
    if report.data.groups is None:
        return
    name, sizes = report.data.name, np.bincount(report.data.groups).tolist()
    different = len({*report.test_parts}) or len(report.folds)
    parts = f"{count_of(len(report.folds), 'fold has', 'folds have')} {count_of(different, 'different test part')}"
    if len(sizes) < 2 / TEST_SIZE:
        yield f"{name}: there are only {len(sizes)} groups, so {parts}."
    if large := never_tested(sizes, TEST_SIZE):
        yield (
            f"{name}: {sum(large) / sum(sizes):.0%} of the samples are never tested on, because their groups ({len(large)}) have at least"
            f" {2 * TEST_SIZE:.0%} of all each; {parts}. Divide large groups."
        )


def _equal_labels(report: TaskReport) -> Iterator[str]:
    """Warn of folds whose R2 is decided by its tolerance."""
    if report.data.kind is not TaskType.REGRESSION:
        return
    decided = [report.data.targets[fold.test] for fold in report.folds if fold.score in {0, 1}]
    equal = sum(np.var(labels, dtype=np.float64) * len(labels) < 100 * R2_TOLERANCE for labels in decided)
    if equal:
        yield (
            f"{report.data.name}: in {equal} of {count_of(len(report.folds), 'fold')}, the labels of the test part are equal or nearly so,"
            " which makes an R2 of 1 or 0. Look for labels that are far from the others, such as -9999 for missing ones, and keep"
            " normalize_labels on."
        )


def _remarks(report: TaskReport) -> Iterator[str]:
    name, failed = report.data.name, report.quality.failed_folds
    if failed:
        yield f"{name}: {count_of(failed, 'fold')} gave no finite score and {'is' if failed == 1 else 'are'} left out."
    empty = sum(not report.data.targets[fold.test].any() for fold in report.folds)
    missed = sum(fold.score == 0 for fold in report.folds) - empty
    if (
        2 * missed > len(report.folds)
        and report.data.kind is TaskType.CLASSIFICATION
        and report.length is None
    ):
        yield (
            f"{name}: in {missed} of {count_of(len(report.folds), 'fold')}, the probe finds none of the positive samples, which are"
            f" {np.count_nonzero(report.data.targets):,} of {len(report.data.targets):,}. For a rare class, use the probe linear with more"
            " epochs, such as 200."
        )
    if empty and report.data.kind is TaskType.CLASSIFICATION:
        yield f"{name}: {count_of(empty, 'fold has', 'folds have')} no positive sample to test on, which makes an F1 of 0."


def _untested_labels(report: TaskReport) -> Iterator[str]:
    """Warn of folds whose test part lacks one of several labels, whose F1 is then 0 whatever the embeddings are."""
    if report.data.kind is not TaskType.MULTILABEL:
        return
    tested = [report.data.targets[fold.test].max(axis=0).tolist() for fold in report.folds]
    if number := sum(not all(of_fold) for of_fold in tested):
        by_label = zip(report.data.classes, zip(*tested, strict=True), strict=True)
        names = name_some([name for name, of_label in by_label if not all(of_label)], 3)
        yield (
            f"{report.data.name}: in {number} of {count_of(len(tested), 'fold')}, no sample to test on has one of the labels, which"
            f" makes the F1 of this label 0: {names}."
        )
