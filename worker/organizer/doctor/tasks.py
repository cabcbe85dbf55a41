"""Checks of id lists and label files: whether they can be scored, and whether they reveal something.

Labels are never shown, only lines, counts and names, which are the organizer's own.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import ceil, comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scoring.errors import InfrastructureError
from scoring.inputs.columns import by_number
from scoring.inputs.formats import listed
from scoring.inputs.limits import MEGABYTE
from scoring.printable import count_of, name_some
from scoring.randomness import held_out
from scoring.tasks import Task, TaskType
from scoring.training_length import training_length
from worker.challenge.configuration import Configuration
from worker.challenge.setups import read_phase, read_secret
from worker.organizer.doctor.check import Finding, fail, note, warn
from worker.organizer.doctor.subjects import CheckedFiles

FEW_TESTED = 5  # samples of the held-out part
COMMON = 20  # ids that two tasks must share for their labels to be compared
SAME = 0.9999  # correlation from which two tasks count as the same
# rank correlation with an order; number of its standard deviations
SUSPICIOUS, CERTAIN, BEYOND_CHANCE = 0.3, 0.98, 6.0
MOST_PREFIXES, LEAST_PER_PREFIX = 12, 5
SHORTEST_NAME = 3
SQUEEZED = 1000.0  # range of the labels, in units of the interquartile range
COST_FOLDS = 2  # from which the time for all folds is estimated
CSV_BYTES = 12  # of one value with all digits of a float32, and its comma
GRID_S = 30


def in_order(files: CheckedFiles) -> Iterator[Finding]:
    """Look for id lists whose order tells something."""
    for codename, ids in files.ids.items():
        if list(ids) != sorted(ids, key=str.encode):
            path = files.configuration.path(files.configuration.phases[codename].ids)
            quoted = shlex.quote(str(path))
            yield fail(
                f"{path} is not sorted. Ids in the order of the label files show participants which samples belong to one task.",
                f"Run: LC_ALL=C sort -u -o {quoted} {quoted}",
            )


def neutral(files: CheckedFiles) -> Iterator[Finding]:
    """Look for ids that name a task, or differ from task to task."""
    for codename, tasks in files.tasks.items():
        ids = files.ids[codename]
        # Whole words, except for a number at their end, because three letters of a hash are not a name.
        words = {
            word.rstrip("0123456789").casefold()
            for identifier in ids
            for word in re.findall(r"[^\W_]+", identifier)
        }
        for name in (task.name for task in tasks):
            if len(name) >= SHORTEST_NAME and name.casefold() in words:
                yield fail(f"Public ids of phase {codename} contain the name of the hidden task {name}.")
        if _grouped(ids, tasks):
            yield warn(
                f"Public ids of phase {codename} begin with words that differ from task to task,"
                " so participants can see how many kinds of tasks there are."
            )


def separate(files: CheckedFiles) -> Iterator[Finding]:
    """Look for ids that two phases share."""
    for (first, ids), (second, others) in combinations(files.ids.items(), 2):
        if shared := len({*ids} & {*others}):
            yield warn(
                f"The phases {first} and {second} share {count_of(shared, 'public id')}."
                " Teams can tune embeddings for one phase in the other.",
                "Publish other samples for the last phase.",
            )


def labeled(files: CheckedFiles) -> Iterator[Finding]:
    """Look for ids that not all tasks label, which participants can find out."""
    for codename, tasks in files.tasks.items():
        ids = files.ids[codename]
        if spare := len(set(ids).difference(*(task.ids for task in tasks))):
            yield warn(
                f"Phase {codename} has public ids without a label in any task ({spare:,} of {len(ids):,}). Participants embed them,"
                " and they count in the standardization. A participant who swaps rows between ids can find out which ids they are.",
                "Keep them if that is intended. Otherwise remove them from the list.",
            )
        if partial := sum(len(task.ids) < len(ids) for task in tasks) * (not spare):
            yield warn(
                f"Phase {codename} has tasks ({partial} of {len(tasks)}) that label only some of its {len(ids):,} public ids. A participant"
                " who swaps rows between ids and submits again sees whether mean Q changed. That shows which ids are labeled together, but"
                " not their labels.",
                "Label the missing samples, or remove from the list the ids that only some tasks label. If you can do neither, let EvalAI"
                " accept only a few submissions per team.",
            )


def enough(files: CheckedFiles) -> Iterator[Finding]:
    """Look for tasks with too few samples, or too few that differ, in the part that is tested on."""
    for codename, task in files.each_task():
        folds, samples = files.configuration.phases[codename].folds, len(task.ids)
        tested = held_out(samples, files.configuration.scoring.test_size)
        if tested < FEW_TESTED:
            yield warn(
                f"{task.name} in phase {codename}: each fold is tested on only {count_of(tested, 'sample')}, so its score depends"
                " largely on chance."
            )
            continue
        missing, equal = "two different labels", int(np.unique(task.labels, return_counts=True)[1].max())
        if task.type is TaskType.CLASSIFICATION:
            missing, equal = "positive sample", samples - int(task.labels.sum())
        if (empty := folds * comb(equal, tested) / comb(samples, tested)) >= 1:
            yield warn(
                f"{task.name} in phase {codename}: about {empty:.0f} of {folds} folds will have no {missing} in their test part, and"
                " score 0 for nearly every team.",
                "Label more samples with the rare value. Of two classes, the rarer one should be the positive one.",
            )


def distinct(files: CheckedFiles) -> Iterator[Finding]:
    """Look for labels that occur twice, in one phase or in two."""
    for (phase, first), (other_phase, second) in combinations(files.each_task(), 2):
        if _alike(first, second) and phase == other_phase:
            yield fail(
                f"{first.name} and {second.name} in phase {phase} have the same labels, up to scale. The same task would count twice.",
                "Remove one of them.",
            )
        elif _alike(first, second):
            yield warn(
                f"{first.name} of phase {phase} and {second.name} of phase {other_phase} have the same labels on the same samples."
                " What a team learns in one phase helps it in the other.",
                "Use other samples in the last phase.",
            )


def order(files: CheckedFiles) -> Iterator[Finding]:
    """Look for labels that follow from the order of the ids."""
    import pandas as pd

    for codename, task in files.each_task():
        ranks = pd.Series(task.labels).rank().to_numpy()
        strength = max(abs(_correlation(ranks, order)) for order in _orders(task))
        if strength >= CERTAIN:
            yield fail(
                f"{task.name} in phase {codename}: the labels follow the order of the ids. Anybody who sorts the ids knows the labels."
            )
        elif strength >= SUSPICIOUS and strength * (len(task.ids) - 1) ** 0.5 >= BEYOND_CHANCE:
            yield warn(
                f"{task.name} in phase {codename}: the labels correlate with the order of the ids (rank correlation {strength:.2f}).",
                "If the ids hold a date or a place, rename the samples.",
            )


def spread(files: CheckedFiles) -> Iterator[Finding]:
    """Look for outliers, such as a code for missing values, that make all other labels nearly equal."""
    for codename, task in files.each_task():
        low, high = np.percentile(task.labels, [25, 75])
        scaled = task.type is TaskType.REGRESSION and files.configuration.scoring.normalize_labels
        if scaled and high > low and np.ptp(task.labels) > SQUEEZED * (high - low):
            yield warn(
                f"{task.name} in phase {codename}: a few labels are so far from the others that scaling to [0, 1] makes all others"
                " nearly equal."
            )


def steps(files: CheckedFiles) -> Iterator[Finding]:
    """Look for tasks whose probes cannot forget their random initial weights."""
    scoring, dim = files.configuration.scoring, files.configuration.submission.embedding_dim
    lengths = {
        f"{task.name} in phase {codename}": training_length(
            len(task.ids),
            dim,
            epochs=scoring.epochs,
            batch_size=scoring.batch_size,
            learning_rate=scoring.learning_rate,
            test_size=scoring.test_size,
        )
        for codename, task in files.each_task()
    }
    short = {name: length for name, length in lengths.items() if not length.is_enough}
    if short:
        task, *others = sorted(short, key=lambda name: short[name].epochs, reverse=True)
        most, rest = short[task].epochs, max([scoring.epochs, *(short[name].epochs for name in others)])
        alternative = (
            f" Or drop {task}, or label more of its samples; {rest} epochs are enough for the other tasks."
        )
        yield warn(
            f"The probes of {name_some([task, *others])} train for too few steps to learn much. Those of {task} train for"
            f" {short[task].reason}.",
            f"Set scoring.epochs to {most} or more, which is enough for all phases, or use a smaller scoring.batch_size."
            f"{alternative if rest < most else ''}",
        )


def cost(files: CheckedFiles) -> Iterator[Finding]:
    """Score random embeddings, and compare time and size with the limits of a submission."""
    limits, secret = files.configuration.submission, read_secret(files.configuration)
    for codename in files.tasks:
        seconds, csv_bytes = measure(files.configuration, codename, secret)
        takes = f"Phase {codename}: scoring a submission takes about {seconds:.1f} s"
        yield note(
            f"{takes} on this machine ({3600 / seconds:,.0f} an hour); as plain CSV, it has {csv_bytes / MEGABYTE:.1f} MB."
        )
        if seconds > limits.deadline / 2:
            yield (fail if seconds > limits.deadline else warn)(
                f"{takes}; submission.deadline is {limits.deadline:g} s.",
                "Set submission.deadline to several times the estimate, use fewer folds, or use a larger machine.",
            )
        if seconds > limits.answer_grid:
            yield warn(
                f"{takes}, longer than submission.answer_grid ({limits.answer_grid:g} s). EvalAI shows execution times to the second:"
                " from them, participants could estimate how many tasks and folds there are.",
                f"Set submission.answer_grid to {ceil((1.5 * seconds) / GRID_S) * GRID_S}.",
            )
        if csv_bytes > limits.max_megabytes * MEGABYTE:
            yield fail(
                f"Phase {codename}: a plain CSV file is about {csv_bytes / MEGABYTE:.1f} MB, more than submission.max_megabytes"
                f" ({limits.max_megabytes:g}).",
                f"Raise submission.max_megabytes, or ask participants to submit {listed(text=False)}.",
            )


def measure(configuration: Configuration, codename: str, secret: bytes) -> tuple[float, int]:
    """Score random embeddings on the phase's tasks; return the seconds for all folds, estimated from two, and the bytes as plain CSV.

    Raises:
        NeucoError: If the embeddings cannot be scored, so that the tasks or settings are wrong.
    """
    from scoring.engines import make_engine
    from scoring.engines.registry import warm
    from scoring.evaluate import score_embeddings
    from scoring.inputs.embeddings import Embeddings

    warm()
    setup, settings = read_phase(configuration, codename, secret), configuration.scoring
    if settings.engine == "ray":
        try_ray(settings.ray_address)
    ids = tuple(sorted(setup.record.ids, key=str.encode))
    dim, folds = setup.record.protocol.embedding_dim, setup.record.protocol.folds
    matrix = np.random.default_rng(0).standard_normal((len(ids), dim), dtype=np.float32)
    few = min(folds, COST_FOLDS)
    card = score_embeddings(
        Embeddings(ids=ids, matrix=matrix, content_hash=""),
        setup.record.tasks,
        replace(setup.record.protocol, folds=few),
        setup.key,
        engine=make_engine(settings.engine, **settings.engine_options()),
    )
    training_s = sum(task.seconds for task in card.tasks)
    return card.seconds + training_s * (folds / few - 1), CSV_BYTES * dim * len(ids)


def try_ray(address: str) -> None:
    """Connect to a Ray cluster in another process, because Ray may abort the one that connects.

    Raises:
        InfrastructureError: If it does.
    """
    code = f"from scoring.engines import make_engine; make_engine('ray', ray_address={address!r})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode
    if ended < 0:
        raise InfrastructureError(
            f"Ray ended the process that connected to the cluster at {address!r} ({signal.Signals(-ended).name}).",
            hint="Install deploy/ray/neuco-worker.conf, so that the service and Ray's processes see the same /tmp/ray.",
            code="engine.ray_unreachable",
        )


def examined(files: CheckedFiles) -> Iterator[Finding]:
    """Say what was loaded."""
    for codename, tasks in files.tasks.items():
        yield note(
            f"Phase {codename}: {count_of(len(files.ids[codename]), 'public id')}, {count_of(len(tasks), 'task')}.",
        )


def _alike(first: Task, second: Task) -> bool:
    """Return whether two tasks agree on the samples they share, except for scale and sign."""
    labels = dict(zip(second.ids, second.labels.tolist(), strict=True))
    pairs = [(x, labels[i]) for i, x in zip(first.ids, first.labels.tolist(), strict=True) if i in labels]
    return len(pairs) >= COMMON and abs(_correlation(*np.array(pairs).T)) >= SAME


def _correlation(first: NDArray[Any], second: NDArray[Any]) -> float:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _orders(task: Task) -> Iterator[NDArray[np.float64]]:
    """Yield the ranks of the ids in the orders in which a participant may sort them: by their characters, and by the numbers in them."""
    yield np.arange(len(task.ids), dtype=np.float64)
    natural = [
        [by_number(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]
        for name in task.ids
    ]
    yield np.argsort(sorted(range(len(natural)), key=natural.__getitem__)).astype(np.float64)


def _grouped(ids: tuple[str, ...], tasks: list[Task]) -> bool:
    """Return whether prefixes of the ids separate row sets."""
    prefixes = Counter(map(_prefix, ids))
    few = 1 < len(prefixes) <= MOST_PREFIXES and min(prefixes.values()) >= LEAST_PER_PREFIX
    return few and any(set(map(_prefix, task.ids)) != set(prefixes) for task in tasks)


def _prefix(identifier: str) -> str:
    return re.split(r"[\W\d_]", identifier, maxsplit=1)[0]
