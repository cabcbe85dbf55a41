"""Checks of id lists and label files: whether they can be scored, and whether they reveal something.

Labels are never shown, only lines, counts and names, which are the organizer's own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from scoring.errors import OrganizerError
from scoring.printable import count_of
from scoring.randomness import held_out
from scoring.tasks import Task, TaskType
from worker.organizer.doctor.check import Checks, Finding, fail, note, warn
from worker.organizer.doctor.examination import Examination

FEW_TESTED = 5  # samples of the held-out part
COMMON = 20  # ids that two tasks must share for their labels to be compared
SAME = 0.9999  # correlation from which two tasks count as the same
# rank correlation with an order; number of its standard deviations
SUSPICIOUS, CERTAIN, BEYOND_CHANCE = 0.3, 0.98, 6.0
MOST_PREFIXES, LEAST_PER_PREFIX = 12, 5
SHORTEST_NAME = 3
SQUEEZED = 1000.0  # range of the labels, in units of the interquartile range
CHECKS = Checks()


@CHECKS.add("ids.file", "Every phase has a list of distinct public ids")
def _ids(exam: Examination) -> Iterator[Finding]:
    for codename, ids in exam.ids.items():
        yield note(f"Phase {codename}: {len(ids):,} public ids.")


@CHECKS.add("ids.sorted", "The id lists are sorted, so that their order tells nothing")
def _sorted(exam: Examination) -> Iterator[Finding]:
    for codename, ids in exam.ids.items():
        if list(ids) != sorted(ids, key=str.encode):
            path = exam.configuration.path(exam.configuration.phases[codename].ids)
            yield fail(
                f"{path} is not sorted. Ids in the order of the label files show participants which samples belong to one task.",
                f"Run: LC_ALL=C sort -u -o {path} {path}",
            )


@CHECKS.add("labels.files", "The worker can load every hidden task")
def _files(exam: Examination) -> Iterator[Finding]:
    for loaded in exam.loaded.values():
        for task in loaded.values():
            if isinstance(task, OrganizerError):
                yield fail(task.sentence, task.cure)


@CHECKS.add("labels.enough", "Every task has enough samples to test on")
def _enough(exam: Examination) -> Iterator[Finding]:
    share = exam.configuration.scoring.test_size
    for codename, task in _each_task(exam):
        if (tested := held_out(len(task.ids), share)) < FEW_TESTED:
            yield warn(
                f"{task.name} in phase {codename}: each fold is tested on only {count_of(tested, 'sample')}, so its score depends"
                " largely on chance.",
                "Label more samples, or raise scoring.test_size.",
            )


@CHECKS.add("ids.neutral", "The ids name no task and do not fall into one group per task")
def _neutral(exam: Examination) -> Iterator[Finding]:
    for codename, tasks in exam.tasks.items():
        ids = exam.ids[codename]
        # Whole words, except for a number at their end, because three letters of a hash are not a name.
        words = {
            word.rstrip("0123456789").casefold()
            for identifier in ids
            for word in re.findall(r"[^\W_]+", identifier)
        }
        for name in (task.name for task in tasks):
            if len(name) >= SHORTEST_NAME and name.casefold() in words:
                yield fail(
                    f"Public ids of phase {codename} contain the name of the hidden task {name}.",
                    "Rename the samples, for example to hashes, before anything is published.",
                )
        if _grouped(ids, tasks):
            yield warn(
                f"Public ids of phase {codename} begin with words that differ from task to task,"
                " so participants can see how many kinds of tasks there are.",
                "Rename the samples so that all ids look alike.",
            )


@CHECKS.add("ids.labelled", "Every public id is labeled by some task")
def _labeled(exam: Examination) -> Iterator[Finding]:
    for codename, tasks in exam.tasks.items():
        ids = exam.ids[codename]
        used = {identifier for task in tasks for identifier in task.ids}
        spare = len(set(ids) - used)
        if spare:
            yield warn(
                f"Phase {codename} has public ids without a label in any task ({spare:,} of {len(ids):,}). Participants embed them,"
                " and they count in the standardization. A participant who swaps rows between ids can find out which ids they are.",
                "Keep them if that is intended. Otherwise remove them from the list.",
            )
        else:
            yield note(
                f"Phase {codename}: the list contains exactly the labeled ids. It shows which samples are used, but not for which task."
            )


@CHECKS.add("labels.everywhere", "Every task labels every public id")
def _everywhere(exam: Examination) -> Iterator[Finding]:
    for codename, tasks in exam.tasks.items():
        ids = exam.ids[codename]
        if partial := sum(len(task.ids) < len(ids) for task in tasks):
            yield warn(
                f"Phase {codename} has tasks ({partial} of {len(tasks)}) that label only some of its {len(ids):,} public ids. A participant"
                " who swaps rows between ids and submits again sees whether mean Q changed. That shows which ids are labeled together, but"
                " not their labels.",
                "Label the missing samples, or remove from the list the ids that only some tasks label. If you can do neither, let EvalAI"
                " accept only a few submissions per team.",
            )


@CHECKS.add("labels.positives", "Nearly every fold has a positive sample to test on")
def _positives(exam: Examination) -> Iterator[Finding]:
    share = exam.configuration.scoring.test_size
    for codename, task in _each_task(exam):
        if task.type is not TaskType.CLASSIFICATION:
            continue
        folds = exam.configuration.phases[codename].folds
        samples, positives = len(task.ids), int(task.labels.sum())
        tested = held_out(samples, share)
        empty = folds * comb(samples - positives, tested) / comb(samples, tested)
        if empty >= 1:
            yield warn(
                f"{task.name} in phase {codename}: about {empty:.0f} of {folds} folds will have no positive sample in"
                " their test part, and score 0 for every team.",
                "Label more positive samples, or swap the classes if the other one is rarer.",
            )


@CHECKS.add("labels.distinct", "No two tasks of a phase are the same")
def _distinct(exam: Examination) -> Iterator[Finding]:
    for codename, tasks in exam.tasks.items():
        for one, other in combinations(tasks, 2):
            if _alike(one, other):
                yield fail(
                    f"{one.name} and {other.name} in phase {codename} have the same labels, up to scale. The same task would count twice.",
                    "Remove one of them.",
                )


@CHECKS.add("labels.fresh", "No phase repeats the labels of another")
def _fresh(exam: Examination) -> Iterator[Finding]:
    for first, second in combinations(exam.tasks, 2):
        if exam.configuration.path(exam.configuration.phases[first].tasks) == exam.configuration.path(
            exam.configuration.phases[second].tasks
        ):
            continue  # reported by configuration.phases
        for one in exam.tasks[first]:
            for other in exam.tasks[second]:
                if _alike(one, other):
                    yield warn(
                        f"{one.name} of phase {first} and {other.name} of phase {second} have the same labels on the same samples."
                        " What a team learns in one phase helps it in the other.",
                        "Use other samples in the last phase.",
                    )


@CHECKS.add("labels.order", "No label follows from the order of the ids")
def _order(exam: Examination) -> Iterator[Finding]:
    for codename, task in _each_task(exam):
        strength = max(abs(_rank_correlation(task.labels, order)) for order in _orders(task))
        if strength >= CERTAIN:
            yield fail(
                f"{task.name} in phase {codename}: the labels follow the order of the ids. Anybody who sorts the ids knows the labels.",
                "Rename the samples, for example to hashes, before anything is published.",
            )
        elif strength >= SUSPICIOUS and strength * (len(task.ids) - 1) ** 0.5 >= BEYOND_CHANCE:
            yield warn(
                f"{task.name} in phase {codename}: the labels correlate with the order of the ids (rank correlation {strength:.2f}).",
                "If the ids hold a date or a place, rename the samples.",
            )


@CHECKS.add("labels.row_number", "No label is the number of its row")
def _row_number(exam: Examination) -> Iterator[Finding]:
    for codename, task in _each_task(exam):
        steps = np.diff(np.sort(task.labels))
        if bool(np.all(np.abs(steps - steps[0]) <= 1e-9 * abs(steps[0]))) and steps[0] != 0:
            yield fail(
                f"{task.name} in phase {codename}: each label occurs once, and all are the same step apart, as row numbers are.",
                "Check whether the wrong column was exported.",
            )


@CHECKS.add("labels.spread", "No outlier squeezes the labels of a regression")
def _spread(exam: Examination) -> Iterator[Finding]:
    if not exam.configuration.scoring.normalize_labels:
        return
    for codename, task in _each_task(exam):
        low, high = np.percentile(task.labels, [25, 75])
        if task.type is TaskType.REGRESSION and high > low and np.ptp(task.labels) > SQUEEZED * (high - low):
            yield warn(
                f"{task.name} in phase {codename}: a few labels are so far from the others that scaling to [0, 1] makes all others"
                " nearly equal.",
                "Look for a missing-value code such as -9999, clip the labels, or take their logarithm.",
            )


@CHECKS.add("labels.several", "Every phase has several tasks")
def _several(exam: Examination) -> Iterator[Finding]:
    for codename, tasks in exam.tasks.items():
        if len(tasks) == 1:
            yield warn(
                f"Phase {codename} has only one task. Mean Q is then its quality score, and the dynamic rank has nothing to weight.",
                "Add tasks of other kinds.",
            )


def _each_task(exam: Examination) -> Iterator[tuple[str, Task]]:
    """Yield the tasks with the codenames of their phases; those of a folder that serves two phases twice."""
    return ((codename, task) for codename, tasks in exam.tasks.items() for task in tasks)


def _alike(one: Task, other: Task) -> bool:
    """Return whether two tasks agree on the samples they share, except for scale and sign."""
    if one.row_set == other.row_set:
        first, second = one.labels, other.labels
    else:
        known = dict(zip(other.ids, other.labels.tolist(), strict=True))
        pairs = [(x, known[i]) for i, x in zip(one.ids, one.labels.tolist(), strict=True) if i in known]
        if len(pairs) < COMMON:
            return False
        first, second = np.array(pairs).T
    return abs(_correlation(first, second)) >= SAME


def _correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _rank_correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return Spearman's correlation; ties get their mean rank."""
    return _correlation(_ranks(first), _ranks(second))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[places])


def _orders(task: Task) -> Iterator[NDArray[np.float64]]:
    """Yield the orders in which a participant may sort the ids: by their characters, and by the numbers in them."""
    yield np.arange(len(task.ids), dtype=np.float64)
    natural = [
        [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", identifier)]
        for identifier in task.ids
    ]
    try:
        order = sorted(range(len(natural)), key=natural.__getitem__)
    except TypeError:  # an id that begins with a number next to one that does not
        return
    places = np.empty(len(order))
    places[order] = np.arange(len(order))
    yield places


def _grouped(ids: tuple[str, ...], tasks: list[Task]) -> bool:
    """Return whether prefixes of the ids separate row sets."""
    prefixes = Counter(_prefix(identifier) for identifier in ids)
    few = 1 < len(prefixes) <= MOST_PREFIXES and min(prefixes.values()) >= LEAST_PER_PREFIX
    if not few:
        return False
    row_sets = {task.row_set: {_prefix(identifier) for identifier in task.ids} for task in tasks}
    return any(found != set(prefixes) for found in row_sets.values())


def _prefix(identifier: str) -> str:
    found = re.match(r"[^\W\d_]*", identifier)
    return found.group() if found else ""
