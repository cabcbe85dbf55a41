"""Checks of id lists and label files: whether they can be scored, and whether they reveal something.

Labels are never shown, only lines, counts and names, which are the organizer's own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from scoring.errors import OrganizerError
from scoring.inputs.identifiers import read_ids
from scoring.printable import count_of
from scoring.randomness import held_out
from scoring.tasks import Task, TaskType
from worker.organizer.doctor.check import Checks, Finding, fail, note, skipped, warn
from worker.organizer.doctor.examination import Examination
from worker.organizer.doctor.labels import LabelFile, LabelRow

SHOWN = 3
IDS = ("configuration.file", "ids.file")
FILES = (*IDS, "labels.files")
# Kinds of faults that have a check of their own; labels.files reports all others.
_OWN_CHECK = {
    "tasks.bad_label": "labels.numbers",
    "tasks.unknown_ids": "labels.public",
    "tasks.duplicate_ids": "labels.once",
    "tasks.constant_labels": "labels.varied",
    "tasks.not_binary": "labels.binary",
    "tasks.one_class": "labels.classes",
    "tasks.too_few_rows": "labels.enough",
}
LABELS = (*FILES, *_OWN_CHECK.values())
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
    for codename, phase in exam.configuration.phases.items():
        try:
            ids = read_ids(exam.configuration.path(phase.ids))
        except OrganizerError as error:
            yield fail(error.sentence, error.cure)
        else:
            yield note(f"Phase {codename}: {len(ids):,} public ids.")


@CHECKS.add("ids.sorted", "The id lists are sorted, so that their order tells nothing", needs=IDS)
def _sorted(exam: Examination) -> Iterator[Finding]:
    for codename, ids in exam.ids.items():
        if list(ids) != sorted(ids, key=str.encode):
            path = exam.configuration.path(exam.configuration.phases[codename].ids)
            yield fail(
                f"{path} is not sorted. Ids in the order of the label files show participants which samples belong to one task.",
                f"Run: LC_ALL=C sort -u -o {path} {path}",
            )


@CHECKS.add("labels.files", "The tasks folders hold readable label files and nothing else", needs=IDS)
def _files(exam: Examination) -> Iterator[Finding]:
    if not exam.labels:
        yield skipped("Every phase still has example tasks or ids.")
    for file in exam.label_files():
        if file.fault is not None and file.fault.code not in _OWN_CHECK:
            # The fault quotes the file's first line, which holds a label if the header is missing.
            if file.fault.code == "tasks.missing_columns":
                yield fail(
                    f"{file.path} must begin with a header that has one column id and one column label.",
                    "Begin the file with the line id,label and separate with commas.",
                )
            else:
                yield _told(file)


@CHECKS.add("labels.numbers", "Every label is a finite number", needs=FILES)
def _numbers(exam: Examination) -> Iterator[Finding]:
    for file in _faulty(exam, "tasks.bad_label"):
        lines = _lines(file, lambda row: not row.id or bool(np.isnan(row.label)))
        yield fail(
            f"{file.path} has rows without an id or without a finite number{lines}.",
            "Correct or remove these rows. Leave samples without a label out of the file.",
        )


@CHECKS.add("labels.public", "Every labeled id is in the public list", needs=FILES)
def _public(exam: Examination) -> Iterator[Finding]:
    for file in _faulty(exam, "tasks.unknown_ids"):
        yield _told(file)


@CHECKS.add("labels.once", "No task labels an id twice", needs=FILES)
def _once(exam: Examination) -> Iterator[Finding]:
    for file in _faulty(exam, "tasks.duplicate_ids"):
        yield _told(file)


@CHECKS.add("labels.varied", "No task is constant", needs=FILES)
def _varied(exam: Examination) -> Iterator[Finding]:
    for file in _faulty(exam, "tasks.constant_labels"):
        yield fail(f"All labels in {file.path} are equal.", "Use other labels, or remove the task.")


@CHECKS.add("labels.binary", "Classification tasks have two classes, 0 and 1", needs=FILES)
def _binary(exam: Examination) -> Iterator[Finding]:
    for file in _faulty(exam, "tasks.not_binary"):
        pair = (-1.0, 1.0) if any(row.label == -1.0 for row in file.rows) else (0.0, 1.0)
        lines = _lines(file, lambda row, pair=pair: row.label not in pair)  # type: ignore[misc]
        yield fail(
            f"{file.path} is a classification task with labels other than 0 and 1 (or -1 and 1){lines}.",
            "Use two classes, or name the file <task>__regr.csv if it is a regression.",
        )


@CHECKS.add("labels.classes", "Classification tasks have samples of both classes", needs=FILES)
def _classes(exam: Examination) -> Iterator[Finding]:
    for file in _faulty(exam, "tasks.one_class"):
        yield fail(
            f"{file.path} contains samples of only one class.",
            "Add samples of the other class, or remove the task.",
        )


@CHECKS.add("labels.enough", "Every task has enough samples to test on", needs=FILES)
def _enough(exam: Examination) -> Iterator[Finding]:
    for file in _faulty(exam, "tasks.too_few_rows"):
        yield _told(file)
    share = exam.configuration.scoring.test_size
    for file in exam.label_files():
        if file.task is not None and (tested := held_out(len(file.task.ids), share)) < FEW_TESTED:
            yield warn(
                f"{file.path}: each fold is tested on only {count_of(tested, 'sample')}, so its score depends largely on chance.",
                "Label more samples, or raise scoring.test_size.",
            )


@CHECKS.add("ids.neutral", "The ids name no task and do not fall into one group per task", needs=FILES)
def _neutral(exam: Examination) -> Iterator[Finding]:
    for codename, ids in exam.ids.items():
        tasks = exam.tasks(codename)
        # Whole words, except for a number at their end, because three letters of a hash are not a name.
        words = {
            word.rstrip("0123456789").casefold()
            for identifier in ids
            for word in re.findall(r"[^\W_]+", identifier)
        }
        for name in tasks:
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


@CHECKS.add("ids.labelled", "Every public id is labeled by some task", needs=LABELS)
def _labeled(exam: Examination) -> Iterator[Finding]:
    for codename in exam.labels:
        ids = exam.ids[codename]
        used = {identifier for task in exam.tasks(codename).values() for identifier in task.ids}
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


@CHECKS.add("labels.everywhere", "Every task labels every public id", needs=LABELS)
def _everywhere(exam: Examination) -> Iterator[Finding]:
    for codename in exam.labels:
        ids, tasks = exam.ids[codename], exam.tasks(codename).values()
        if partial := sum(len(task.ids) < len(ids) for task in tasks):
            yield warn(
                f"Phase {codename} has tasks ({partial} of {len(tasks)}) that label only some of its {len(ids):,} public ids. A participant"
                " who swaps rows between ids and submits again sees whether mean Q changed. That shows which ids are labeled together, but"
                " not their labels.",
                "Label the missing samples, or remove from the list the ids that only some tasks label. If you can do neither, let EvalAI"
                " accept only a few submissions per team.",
            )


@CHECKS.add("labels.positives", "Nearly every fold has a positive sample to test on", needs=LABELS)
def _positives(exam: Examination) -> Iterator[Finding]:
    share = exam.configuration.scoring.test_size
    for codename, phase in exam.configuration.phases.items():
        for task in exam.tasks(codename).values():
            if task.type is not TaskType.CLASSIFICATION:
                continue
            samples, positives = len(task.ids), int(task.labels.sum())
            tested = held_out(samples, share)
            empty = phase.folds * comb(samples - positives, tested) / comb(samples, tested)
            if empty >= 1:
                yield warn(
                    f"{task.name} in phase {codename}: about {empty:.0f} of {phase.folds} folds will have no positive sample in"
                    " their test part, and score 0 for every team.",
                    "Label more positive samples, or swap the classes if the other one is rarer.",
                )


@CHECKS.add("labels.distinct", "No two tasks of a phase are the same", needs=LABELS)
def _distinct(exam: Examination) -> Iterator[Finding]:
    for codename in exam.labels:
        for one, other in combinations(exam.tasks(codename).values(), 2):
            if _alike(one, other):
                yield fail(
                    f"{one.name} and {other.name} in phase {codename} have the same labels, up to scale. The same task would count twice.",
                    "Remove one of them.",
                )


@CHECKS.add("labels.fresh", "No phase repeats the labels of another", needs=LABELS)
def _fresh(exam: Examination) -> Iterator[Finding]:
    for first, second in combinations(exam.labels, 2):
        if exam.configuration.path(exam.configuration.phases[first].tasks) == exam.configuration.path(
            exam.configuration.phases[second].tasks
        ):
            continue  # reported by configuration.phases
        for one in exam.tasks(first).values():
            for other in exam.tasks(second).values():
                if _alike(one, other):
                    yield warn(
                        f"{one.name} of phase {first} and {other.name} of phase {second} have the same labels on the same samples."
                        " What a team learns in one phase helps it in the other.",
                        "Use other samples in the last phase.",
                    )


@CHECKS.add("labels.order", "No label follows from the order of the ids", needs=LABELS)
def _order(exam: Examination) -> Iterator[Finding]:
    for codename in exam.labels:
        for task in exam.tasks(codename).values():
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


@CHECKS.add("labels.row_number", "No label is the number of its row", needs=LABELS)
def _row_number(exam: Examination) -> Iterator[Finding]:
    for file in exam.label_files():
        labels = np.array([row.label for row in file.rows])
        steps = np.diff(labels)
        if len(steps) and steps[0] != 0 and bool(np.all(np.abs(steps - steps[0]) <= 1e-9 * abs(steps[0]))):
            yield fail(
                f"The labels in {file.path} increase by the same step in every row, as row numbers do.",
                "Check whether the wrong column was exported.",
            )


@CHECKS.add("labels.spread", "No outlier squeezes the labels of a regression", needs=LABELS)
def _spread(exam: Examination) -> Iterator[Finding]:
    if not exam.configuration.scoring.normalize_labels:
        return
    for file in exam.label_files():
        if file.task is None or file.task.type is not TaskType.REGRESSION:
            continue
        low, high = np.percentile(file.task.labels, [25, 75])
        if high > low and float(np.ptp(file.task.labels)) > SQUEEZED * (high - low):
            yield warn(
                f"A few labels in {file.path} are so far from the others that scaling to [0, 1] makes all others nearly equal.",
                "Look for a missing-value code such as -9999, clip the labels, or take their logarithm.",
            )


@CHECKS.add("labels.several", "Every phase has several tasks", needs=LABELS)
def _several(exam: Examination) -> Iterator[Finding]:
    for codename in exam.labels:
        if len(exam.tasks(codename)) == 1:
            yield warn(
                f"Phase {codename} has only one task. Mean Q is then its quality score, and the dynamic rank has nothing to weight.",
                "Add tasks of other kinds.",
            )


def _faulty(exam: Examination, code: str) -> Iterator[LabelFile]:
    return (file for file in exam.label_files() if file.fault is not None and file.fault.code == code)


def _told(file: LabelFile) -> Finding:
    """Repeat the reader's message if it contains only ids and counts."""
    if file.fault is None:
        raise ValueError("nothing to tell")
    return fail(file.fault.sentence, file.fault.cure)


def _lines(file: LabelFile, faulty: Callable[[LabelRow], bool]) -> str:
    lines = [row.line for row in file.rows if faulty(row)]
    if not lines:
        return ""
    first = ", ".join(map(str, lines[:SHOWN]))
    return f" ({len(lines)} in all; {'line' if len(lines) == 1 else 'lines'} {first}{' …' if len(lines) > SHOWN else ''})"


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


def _grouped(ids: tuple[str, ...], tasks: dict[str, Task]) -> bool:
    """Return whether prefixes of the ids separate row sets."""
    prefixes = Counter(_prefix(identifier) for identifier in ids)
    few = 1 < len(prefixes) <= MOST_PREFIXES and min(prefixes.values()) >= LEAST_PER_PREFIX
    if not few:
        return False
    row_sets = {task.row_set: {_prefix(identifier) for identifier in task.ids} for task in tasks.values()}
    return any(found != set(prefixes) for found in row_sets.values())


def _prefix(identifier: str) -> str:
    found = re.match(r"[^\W\d_]*", identifier)
    return found.group() if found else ""
