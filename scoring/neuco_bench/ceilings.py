"""Ceilings: the score that a perfect model can reach, given the noise of the labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from scoring.errors import OrganizerError
from scoring.neuco_bench.labels import LabeledTask, read_labels
from scoring.probes.measures import score
from scoring.probes.probe import TaskKind
from scoring.tasks import TaskPlace, label_rows
from scoring.tasks.packages import TaskPackage, find_packages


def task_places(packages: Sequence[TaskPackage], tasks: Sequence[LabeledTask]) -> tuple[TaskPlace, ...]:
    """Return the places of packages in the tree of groups, with their ceilings, estimated ones included.

    Raises:
        OrganizerError: If a ceiling cannot be estimated.
    """
    labeled = {task.name: task for task in tasks}
    return tuple(
        TaskPlace(
            identifier=package.identifier,
            parent=package.parent,
            ceiling=package.ceiling
            if not isinstance(package.ceiling, str)
            else estimate_ceiling(package, labeled[package.identifier]),
        )
        for package in packages
        if package.identifier in labeled
    )


def places_of(folder: Path) -> tuple[TaskPlace, ...]:
    """Return the places of the packages in a tasks folder; plain label files have none.

    Raises:
        OrganizerError: If a package cannot be read, or its ceiling cannot be estimated.
    """
    packages = find_packages(folder)
    tasks = [read_labels(package.labels, package.identifier, package.type)[0] for package in packages]
    return task_places(packages, tasks)


def estimate_ceiling(package: TaskPackage, task: LabeledTask) -> float:
    """Estimate the score of a perfect model from repeated measurements of the labels.

    Regression: R2 cannot exceed one minus the share of noise in the labels' variance. The noise of one measurement is the variance within
    the samples. A sample's label is the mean of its measurements, so its noise is divided by their number. Classification: the mean F1 of
    each annotator in turn against the majority of the others (the task's own label decides a tie).

    Raises:
        OrganizerError: If the file cannot be read or holds no repeated label.
    """
    if package.repeats is None or task.kind not in {TaskKind.REGRESSION, TaskKind.BINARY}:
        raise OrganizerError(
            "A ceiling can only be estimated for a regression or a binary classification task with repeated measurements.",
            cure="Write a number as the ceiling.",
            code="package.no_repeats",
        )
    known = dict(zip(task.ids, task.labels.tolist(), strict=True))
    repeated: dict[str, list[float]] = {}
    for _, identifier, label in label_rows(package.repeats):
        if identifier in known:
            repeated.setdefault(identifier, []).append(label)
    repeated = {identifier: labels for identifier, labels in repeated.items() if len(labels) > 1}
    if len(repeated) < 2:
        raise OrganizerError(
            f"{package.repeats} has repeated measurements of fewer than two samples.",
            cure="Add at least two measurements of at least two samples.",
            code="package.no_repeats",
        )
    if task.kind is TaskKind.REGRESSION:
        return _reliability(repeated, known)
    return _agreement(repeated, known)


def _reliability(repeated: Mapping[str, list[float]], known: Mapping[str, float]) -> float:
    freedom = sum(len(labels) - 1 for labels in repeated.values())
    within = math.fsum((x - fmean(labels)) ** 2 for labels in repeated.values() for x in labels) / freedom
    noise = within * fmean(1 / len(labels) for labels in repeated.values())
    return 1.0 - noise / float(np.var(list(known.values())))


def _agreement(repeated: Mapping[str, list[float]], known: Mapping[str, float]) -> float:
    positive = max(known.values())
    turns = max(len(labels) for labels in repeated.values())
    values = []
    for turn in range(turns):
        said, truth = [], []
        for identifier, labels in repeated.items():
            if turn < len(labels):
                votes = [label == positive for number, label in enumerate(labels) if number != turn]
                share = fmean(votes)
                truth.append(known[identifier] == positive if share == 0.5 else share > 0.5)
                said.append(labels[turn] == positive)
        if any(truth):
            outputs = np.where(np.array(said), 1.0, -1.0)
            values.append(score(TaskKind.BINARY, outputs, np.array(truth, dtype=np.float32)))
    return fmean(values) if values else 0.0
