"""Test a task package's expectations: its data, splits, ceiling, and the score of its baseline."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scoring.errors import NeucoError
from scoring.metrics import R2_TOLERANCE
from scoring.neuco_bench.ceilings import estimate_ceiling
from scoring.neuco_bench.configuration import StandaloneSettings
from scoring.neuco_bench.labels import KINDS, LabeledTask, read_labels
from scoring.neuco_bench.reading import read_embeddings
from scoring.neuco_bench.run import SEED, Material, score_run
from scoring.probes.probe import TaskKind, splits
from scoring.tasks import MINIMUM_ROWS, TaskType, label_rows, make_task
from scoring.tasks.packages import TaskPackage

FINGERPRINT = 16  # hexadecimal digits


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


@dataclass(frozen=True, kw_only=True)
class PackageCheck:
    """The result of checking a task.

    Attributes:
        identifier: The task.
        findings: In the order of the checks; only one if the labels cannot be used.
        ceiling: The ceiling, given or estimated, or None.
        baseline_score: The measured mean score of the baseline, or None.
        fingerprint: Fingerprint of the current labels.
    """

    identifier: str
    findings: tuple[Expectation, ...]
    ceiling: float | None = None
    baseline_score: float | None = None
    fingerprint: str = ""

    @property
    def passed(self) -> bool:
        """Whether all expectations hold."""
        return all(finding.passed for finding in self.findings)


def check_package(
    package: TaskPackage,
    public_ids: Sequence[str] | None = None,
    *,
    folds: int = 40,
) -> PackageCheck:
    """Check a package, from its labels to the score of its baseline.

    Args:
        package: The package.
        public_ids: Ids that may have labels, if they are known.
        folds: Number of random splits that must be possible.
    """
    findings: list[Expectation] = []
    try:
        task = _labels(package, public_ids)
    except NeucoError as error:
        return PackageCheck(
            identifier=package.identifier,
            findings=(Expectation(check="data", passed=False, sentence=error.message),),
        )
    mark = fingerprint(task)
    findings.append(
        Expectation(
            check="data", passed=True, sentence=f"{len(task.ids):,} labels of type {task.kind.value}."
        )
    )
    if package.fingerprint and not mark.startswith(package.fingerprint):
        findings.append(
            Expectation(
                check="data",
                passed=False,
                sentence=f"The labels have the fingerprint {mark}, task.yaml says {package.fingerprint}: increase the version and"
                " write the new fingerprint down.",
            )
        )
    findings.append(check_splits(task, folds))
    ceiling, found = check_ceiling(package, task)
    findings.append(found)
    measured, expected = check_baseline(package, task)
    findings.append(expected)
    return PackageCheck(
        identifier=package.identifier,
        findings=tuple(findings),
        ceiling=ceiling,
        baseline_score=measured,
        fingerprint=mark,
    )


def check_file(path: Path, public_ids: Sequence[str] | None = None, *, folds: int = 40) -> PackageCheck:
    """Check a plain label file, which has only data and splits to check."""
    name, _, kind = path.stem.rpartition("__")
    plain = TaskPackage.model_construct(identifier=name or path.stem, version=1, type=kind, labels=path)
    checked = check_package(plain, public_ids, folds=folds)
    kept = tuple(finding for finding in checked.findings if finding.check in {"data", "splits"})
    return PackageCheck(identifier=checked.identifier, findings=kept, fingerprint=checked.fingerprint)


def fingerprint(task: LabeledTask) -> str:
    """Return 16 hexadecimal digits that identify the labels, whatever their order or formatting."""
    digest = hashlib.sha256(f"neuco-worker labels 1\0{task.kind.value}\0{';'.join(task.classes)}\0".encode())
    for identifier, label in sorted(
        zip(task.ids, task.labels.tolist(), strict=True), key=lambda pair: pair[0]
    ):
        digest.update(f"{len(identifier)}:{identifier}={label!r}\n".encode())
    return digest.hexdigest()[:FINGERPRINT]


def check_splits(task: LabeledTask, folds: int) -> Expectation:
    """Check that random splits can be scored: in every test part, regression labels must vary, and every class must occur."""
    if len(task.ids) < MINIMUM_ROWS:
        sentence = f"{len(task.ids)} labels are too few for splits; at least {MINIMUM_ROWS} are needed."
        return Expectation(check="splits", passed=False, sentence=sentence)
    if task.kind is TaskKind.REGRESSION:
        spread = float(np.ptp(task.labels)) or 1.0
        scaled = (task.labels - task.labels.min()) / spread
        poor = sum(
            float(np.sum((part - part.mean()) ** 2)) <= R2_TOLERANCE
            for part in (scaled[fold.test] for fold in splits(len(scaled), folds, SEED))
        )
        what = "labels that do not vary in their test part, where R2 says nothing"
    else:
        if task.kind is TaskKind.MULTICLASS:
            present = task.labels[:, np.newaxis] == np.arange(len(task.classes))
        else:
            present = (task.labels == task.labels.max()).reshape(len(task.ids), -1)
        poor = sum(not present[fold.test].any(axis=0).all() for fold in splits(len(present), folds, SEED))
        what = "no sample of some class in their test part; its F1 is 0 there"
    if poor:
        return Expectation(
            check="splits", passed=False, sentence=f"{poor} of {folds} random splits have {what}."
        )
    return Expectation(check="splits", passed=True, sentence=f"{folds} random splits can be scored.")


def check_ceiling(package: TaskPackage, task: LabeledTask) -> tuple[float | None, Expectation]:
    """Return the ceiling, given or estimated, and a finding about it."""
    if package.ceiling is None:
        return None, Expectation(check="ceiling", passed=True, sentence="No ceiling is given.")
    if isinstance(package.ceiling, float):
        return package.ceiling, Expectation(
            check="ceiling", passed=True, sentence=f"The ceiling is {package.ceiling:.4f}, as given."
        )
    try:
        value = estimate_ceiling(package, task)
    except NeucoError as error:
        return None, Expectation(check="ceiling", passed=False, sentence=error.message)
    if not 0 < value <= 1:
        sentence = f"The repeated labels differ so much that the estimated ceiling is {value:.4f}."
        return None, Expectation(check="ceiling", passed=False, sentence=sentence)
    return value, Expectation(
        check="ceiling", passed=True, sentence=f"The ceiling is {value:.4f}, estimated from repeated labels."
    )


def check_baseline(package: TaskPackage, task: LabeledTask) -> tuple[float | None, Expectation]:
    """Score the package's baseline embeddings and compare with the expected score; a difference shows that something has changed."""
    baseline = package.baseline
    if baseline is None:
        return None, Expectation(check="baseline", passed=True, sentence="No baseline is shipped.")
    settings = StandaloneSettings(
        k_folds=baseline.folds,
        probe_params={
            "epochs": baseline.epochs,
            "batch_size": baseline.batch_size,
            "learning_rate": baseline.learning_rate,
        },
        enable_plots=False,
    )
    try:
        embeddings = read_embeddings(baseline.embeddings, set(task.ids))
        report = score_run(
            Material(tasks=(task,), embeddings=embeddings, warnings=embeddings.warnings),
            settings,
        )
    except NeucoError as error:
        return None, Expectation(check="baseline", passed=False, sentence=error.message)
    if embeddings.warnings:
        return None, Expectation(check="baseline", passed=False, sentence=" ".join(embeddings.warnings))
    measured = report.overall_score
    if baseline.score is None:
        sentence = f"The baseline scores {measured:.6f}; write this as baseline.score into task.yaml."
        return measured, Expectation(check="baseline", passed=False, sentence=sentence)
    right = abs(measured - baseline.score) <= baseline.tolerance
    sentence = f"The baseline scores {measured:.6f}, expected {baseline.score:.6f} ± {baseline.tolerance:g}."
    return measured, Expectation(check="baseline", passed=right, sentence=sentence)


def _labels(package: TaskPackage, public_ids: Sequence[str] | None) -> LabeledTask:
    """Read labels, by the challenge's rules if a challenge supports their type."""
    task, _ = read_labels(package.labels, package.identifier, package.type)
    if package.type in {member.value for member in TaskType}:
        allowed = frozenset(task.ids if public_ids is None else public_ids)
        kind = TaskType.REGRESSION if KINDS[package.type] is TaskKind.REGRESSION else TaskType.CLASSIFICATION
        make_task(package.identifier, kind, label_rows(package.labels), allowed, source=str(package.labels))
    return task
