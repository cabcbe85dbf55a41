"""Ceilings: the score that a perfect model can reach, given the noise of the labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean

import numpy as np
import pandas as pd

from scoring.errors import OrganizerError
from scoring.neuco_bench.labels import LabeledTask, Labels
from scoring.probes.measures import score
from scoring.probes.probe import TaskKind
from scoring.tasks import TaskPlace, label_rows
from scoring.tasks.packages import TaskPackage


def places_of(labels: Labels) -> tuple[TaskPlace, ...]:
    """Return the places of task packages in the tree of groups, with their ceilings, estimated ones included.

    Raises:
        OrganizerError: If a ceiling cannot be estimated.
    """
    tasks = {task.name: task for task in labels.tasks}
    return tuple(
        TaskPlace(
            identifier=package.identifier,
            parent=package.parent,
            ceiling=estimate_ceiling(package, tasks[package.identifier])
            if package.ceiling == "estimate"
            else package.ceiling,
        )
        for package in labels.packages
    )


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
    labels = dict(zip(task.ids, task.labels.tolist(), strict=True))
    rows = pd.DataFrame(label_rows(package.repeats), columns=["line", "id", "label"])
    repeated = {
        str(identifier): measured.tolist()
        for identifier, measured in rows[rows["id"].isin(labels)].groupby("id")["label"]
        if len(measured) > 1
    }
    if len(repeated) < 2:
        raise OrganizerError(
            f"{package.repeats} has repeated measurements of fewer than two samples.",
            cure="Add at least two measurements of at least two samples.",
            code="package.no_repeats",
        )
    if task.kind is TaskKind.REGRESSION:
        return _reliability(repeated, labels)
    return _agreement(repeated, labels)


def _reliability(repeated: Mapping[str, list[float]], labels: Mapping[str, float]) -> float:
    freedom = sum(len(measured) - 1 for measured in repeated.values())
    within = (
        math.fsum((x - fmean(measured)) ** 2 for measured in repeated.values() for x in measured) / freedom
    )
    noise = within * fmean(1 / len(measured) for measured in repeated.values())
    return 1.0 - noise / float(np.var(list(labels.values())))


def _agreement(repeated: Mapping[str, list[float]], labels: Mapping[str, float]) -> float:
    positive = max(labels.values())
    scores = []
    for turn in range(max(map(len, repeated.values()))):
        answers, truth = [], []
        for identifier, measured in repeated.items():
            if turn < len(measured):
                share = fmean(label == positive for label in measured[:turn] + measured[turn + 1 :])
                truth.append(labels[identifier] == positive if share == 0.5 else share > 0.5)
                answers.append(measured[turn] == positive)
        if any(truth):
            outputs = np.where(np.array(answers), 1.0, -1.0)
            scores.append(score(TaskKind.BINARY, outputs, np.array(truth, dtype=np.float32)))
    return fmean(scores) if scores else 0.0
