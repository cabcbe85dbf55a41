"""Test a task package's expectations: its data, splits, ceiling, and the score of its baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scoring.errors import NeucoError, OrganizerError
from scoring.metrics import R2_TOLERANCE
from scoring.neuco_bench.configuration import StandaloneSettings
from scoring.neuco_bench.labels import LabeledTask, estimate_ceiling, read_labels
from scoring.neuco_bench.reading import read_embeddings
from scoring.neuco_bench.run import SEED, Material, score_run
from scoring.probes.probe import TaskKind, splits
from scoring.tasks import MINIMUM_ROWS, TaskType, label_rows, make_task
from scoring.tasks.packages import TaskPackage


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """One expectation of a package, and whether it holds.

    Attributes:
        check: ``data``, ``splits``, ``ceiling`` or ``baseline``.
        passed: Whether it holds.
        sentence: What was found.
    """

    check: str
    passed: bool
    sentence: str


@dataclass(kw_only=True)
class PackageCheck:
    """The result of checking a task.

    Attributes:
        identifier: The task.
        findings: In the order of the checks; only one if the labels cannot be used.
        ceiling: The ceiling, given or estimated, or None.
        baseline_score: The measured mean score of the baseline, or None.
    """

    identifier: str
    findings: list[Expectation] = field(default_factory=list)
    ceiling: float | None = None
    baseline_score: float | None = None

    @property
    def passed(self) -> bool:
        """Whether all expectations hold."""
        return all(finding.passed for finding in self.findings)

    def expect(self, check: str, sentence: Callable[[], str]) -> None:
        """Add what a check returns, or the error that it raises."""
        try:
            self.findings.append(Expectation(check=check, passed=True, sentence=sentence()))
        except NeucoError as error:
            self.findings.append(Expectation(check=check, passed=False, sentence=error.message))


def check_package(
    package: TaskPackage, public_ids: Sequence[str] | None = None, *, folds: int = 40
) -> PackageCheck:
    """Check a package, from its labels to the score of its baseline.

    Args:
        package: The package.
        public_ids: Ids that may have labels, if they are known.
        folds: Number of random splits that must be possible.
    """
    result = PackageCheck(identifier=package.identifier)
    try:
        task = _labels(package, public_ids)
    except NeucoError as error:
        result.findings.append(Expectation(check="data", passed=False, sentence=error.message))
        return result
    result.expect("data", lambda: f"{len(task.ids):,} labels of type {task.kind.value}.")
    result.expect("splits", lambda: _check_splits(task, folds))
    result.expect("ceiling", lambda: _check_ceiling(package, task, result))
    result.expect("baseline", lambda: _check_baseline(package, task, result))
    return result


def check_file(path: Path, public_ids: Sequence[str] | None = None, *, folds: int = 40) -> PackageCheck:
    """Check a plain label file, which has neither a ceiling nor a baseline."""
    name, _, kind = path.stem.rpartition("__")
    plain = TaskPackage.model_construct(identifier=name or path.stem, version=1, type=kind, labels=path)
    return check_package(plain, public_ids, folds=folds)


def _labels(package: TaskPackage, public_ids: Sequence[str] | None) -> LabeledTask:
    """Read labels, by the challenge's rules if a challenge supports their type."""
    task, _ = read_labels(package.labels, package.identifier, package.type)
    if package.type in {member.value for member in TaskType}:
        allowed = frozenset(task.ids if public_ids is None else public_ids)
        rows = label_rows(package.labels)
        make_task(package.identifier, TaskType(package.type), rows, allowed, source=str(package.labels))
    return task


def _check_splits(task: LabeledTask, folds: int) -> str:
    """Check that random splits can be scored: in every test part, regression labels must vary, and every class must occur."""
    if len(task.ids) < MINIMUM_ROWS:
        raise OrganizerError(
            f"{len(task.ids)} labels are too few for splits; at least {MINIMUM_ROWS} are needed."
        )
    tests = [fold.test for fold in splits(len(task.ids), folds, SEED)]
    if task.kind is TaskKind.REGRESSION:
        scaled = task.labels / (float(np.ptp(task.labels)) or 1.0)
        poor = sum(float(scaled[test].var()) * len(test) <= R2_TOLERANCE for test in tests)
        what = "labels that do not vary in their test part, where R2 says nothing"
    else:
        if task.kind is TaskKind.MULTICLASS:
            present = task.labels[:, np.newaxis] == np.arange(len(task.classes))
        else:
            present = (task.labels == task.labels.max()).reshape(len(task.ids), -1)
        poor = sum(not present[test].any(axis=0).all() for test in tests)
        what = "no sample of some class in their test part; its F1 is 0 there"
    if poor:
        raise OrganizerError(f"{poor} of {folds} random splits have {what}.")
    return f"{folds} random splits can be scored."


def _check_ceiling(package: TaskPackage, task: LabeledTask, result: PackageCheck) -> str:
    if package.ceiling is None:
        return "No ceiling is given."
    if isinstance(package.ceiling, float):
        result.ceiling = package.ceiling
        return f"The ceiling is {package.ceiling:.4f}, as given."
    value = estimate_ceiling(package, task)
    if not 0 < value <= 1:
        raise OrganizerError(f"The repeated labels differ so much that the estimated ceiling is {value:.4f}.")
    result.ceiling = value
    return f"The ceiling is {value:.4f}, estimated from repeated labels."


def _check_baseline(package: TaskPackage, task: LabeledTask, result: PackageCheck) -> str:
    """Score the package's baseline embeddings and compare with the expected score; a difference shows that something has changed."""
    baseline = package.baseline
    if baseline is None:
        return "No baseline is shipped."
    recipe = baseline.model_dump(include={"epochs", "batch_size", "learning_rate"})
    settings = StandaloneSettings(k_folds=baseline.folds, probe_params=recipe, enable_plots=False)
    embeddings = read_embeddings(baseline.embeddings, set(task.ids))
    if embeddings.warnings:
        raise OrganizerError(" ".join(embeddings.warnings))
    material = Material(tasks=(task,), embeddings=embeddings, warnings=())
    result.baseline_score = measured = score_run(material, settings).overall_score
    if baseline.score is None:
        raise OrganizerError(
            f"The baseline scores {measured:.6f}; write this as baseline.score into task.yaml."
        )
    sentence = f"The baseline scores {measured:.6f}, expected {baseline.score:.6f} ± {baseline.tolerance:g}."
    if abs(measured - baseline.score) > baseline.tolerance:
        raise OrganizerError(sentence)
    return sentence
