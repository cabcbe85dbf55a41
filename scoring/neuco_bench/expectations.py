"""Test a task's expectations: its labels, and the score of its package's baseline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from scoring.errors import NeucoError, OrganizerError
from scoring.neuco_bench.configuration import StandaloneSettings
from scoring.neuco_bench.labels import LabeledTask, read_labels
from scoring.neuco_bench.material import Material
from scoring.neuco_bench.reading import read_embeddings
from scoring.neuco_bench.run import score_run
from scoring.printable import count_of
from scoring.tasks import CHALLENGE_TYPES, TaskType, is_package, label_rows, make_task
from scoring.tasks.packages import TaskPackage, read_package

FAR = 10  # interquartile ranges
Expectation = tuple[str, bool, str]
"""What was checked (``data`` or ``baseline``), whether it is as expected, and a sentence about it."""


def check_task(source: Path, public_ids: Sequence[str] | None = None) -> tuple[str, list[Expectation]]:
    """Return the name of a task and what was checked; only its labels, if they cannot be used.

    Args:
        source: A package, or a label file, which has no baseline.
        public_ids: Ids that may have labels, if they are known.

    Raises:
        OrganizerError: If the ``task.yaml`` of a package cannot be used.
    """
    if is_package(source):
        package = read_package(source)
    else:
        name, _, kind = source.stem.rpartition("__")
        package = TaskPackage.model_construct(
            identifier=name or source.stem, version=1, type=kind, labels=source
        )
    done: list[Expectation] = []
    try:
        task, _ = read_labels(package.labels, package.identifier, package.type)
        note = ", which challenges do not score"
        if package.type.lower() in CHALLENGE_TYPES:
            allowed = frozenset(task.ids if public_ids is None else public_ids)
            rows = label_rows(package.labels)  # by the challenge's rules
            make_task(package.identifier, task.kind, rows, allowed, source=str(package.labels))
            note = ""
        done.append(
            ("data", True, f"{len(task.ids):,} labels of type {package.type}{note}. {distribution(task)}")
        )
        done.append(("baseline", True, _check_baseline(package, task)))
    except NeucoError as error:
        done.append(("baseline" if done else "data", False, error.message))
    return package.identifier, done


def distribution(task: LabeledTask) -> str:
    """Return in a sentence how the labels are distributed: the sizes of the classes, or how many labels are far from the others."""
    if task.kind is TaskType.REGRESSION:
        low, high = np.percentile(task.labels, [25, 75])
        far = np.abs(task.labels - np.clip(task.labels, low, high)) > FAR * (high - low)
        if low == high:
            return "At least half of them are equal."
        if not far.any():
            return "None is far from the others."
        count = count_of(int(far.sum()), "label is", "labels are")
        first = task.ids[int(far.argmax())]
        return f"{count} more than {FAR} interquartile ranges from the middle half, first that of {first}."
    several = task.kind is TaskType.MULTILABEL
    sizes = task.labels.sum(axis=0) if several else np.unique(task.labels, return_counts=True)[1]
    low, high = int(min(sizes)), int(max(sizes))
    return f"Its {len(sizes)} classes have {low:,} to {high:,} samples each; {low / len(task.ids):.1%} are in the smallest."


def _check_baseline(package: TaskPackage, task: LabeledTask) -> str:
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
    measured = score_run(material, settings).overall_score
    if baseline.score is None:
        raise OrganizerError(
            f"The baseline scores {measured:.6f}; write this as baseline.score into task.yaml."
        )
    sentence = f"The baseline scores {measured:.6f}, expected {baseline.score:.6f} ± {baseline.tolerance:g}."
    if abs(measured - baseline.score) > baseline.tolerance:
        raise OrganizerError(sentence)
    return sentence
