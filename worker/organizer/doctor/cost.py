"""Checks of what a submission costs on this machine: random embeddings are scored on the real tasks with a few folds."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from scoring.inputs.limits import MEGABYTE
from scoring.printable import count_of
from worker.organizer.doctor.check import Checks, Finding, fail, note, warn
from worker.organizer.doctor.examination import Examination
from worker.runtime.limits import GIGABYTE

READ_ROWS = 200  # of a CSV, from which the time to read all of it is estimated
LEAST_FOLDS = 2
HALF = 0.5
CHECKS = Checks()


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of one submission to a phase.

    Attributes:
        seconds: From its file to its score, estimated for all folds.
        measured_folds: How many were actually trained.
        csv_bytes: Size as plain CSV with all digits of a float32.
        memory_bytes: Peak resident size of this process while it scored, with the file.
    """

    seconds: float
    measured_folds: int
    csv_bytes: int
    memory_bytes: int


@CHECKS.add("cost.seconds", "A submission is scored well within its deadline")
def _seconds(exam: Examination) -> Iterator[Finding]:
    deadline = exam.configuration.submission.deadline
    for codename, cost in exam.costs.items():
        folds = exam.configuration.phases[codename].folds
        sentence = (
            f"Phase {codename}: a submission takes about {cost.seconds:.1f} s"
            f" ({cost.measured_folds} of {folds} folds were measured)"
        )
        if cost.seconds > deadline:
            yield fail(
                f"{sentence}; submission.deadline is {deadline:g} s.",
                "Raise submission.deadline, use fewer folds, or use a larger machine.",
            )
        elif cost.seconds > HALF * deadline:
            yield warn(
                f"{sentence}; submission.deadline is {deadline:g} s, which leaves little margin for a busy machine.",
                "Set submission.deadline to several times the estimate.",
            )


@CHECKS.add("cost.answer_grid", "The time of an answer does not show how much was scored")
def _answer_grid(exam: Examination) -> Iterator[Finding]:
    grid = exam.configuration.submission.answer_grid
    for codename, cost in exam.costs.items():
        if grid == 0:
            yield warn(
                f"Phase {codename}: results are sent as soon as they are ready, and EvalAI shows execution times to the second."
                f" From the time, here about {cost.seconds:.0f} s, participants could estimate how many tasks and folds there are.",
                f"Set submission.answer_grid to {_next_grid(cost.seconds)}.",
            )
        elif cost.seconds > grid:
            yield warn(
                f"Phase {codename}: scoring takes about {cost.seconds:.0f} s, longer than submission.answer_grid ({grid:g} s)."
                " Participants could then estimate the scoring time, and from it the number of tasks and folds.",
                f"Set submission.answer_grid to {_next_grid(cost.seconds)}.",
            )


@CHECKS.add("cost.size", "A plain CSV of honest embeddings is within the size limit")
def _size(exam: Examination) -> Iterator[Finding]:
    limit = exam.configuration.submission.max_megabytes
    for codename, cost in exam.costs.items():
        size = cost.csv_bytes / MEGABYTE
        if size > limit:
            yield fail(
                f"Phase {codename}: a plain CSV file is about {size:.1f} MB, more than submission.max_megabytes ({limit:g}).",
                "Raise submission.max_megabytes, or ask participants to submit Parquet or NPZ.",
            )


@CHECKS.add("cost.disk", "The disk holds the submissions of the whole challenge")
def _disk(exam: Examination) -> Iterator[Finding]:
    import shutil

    from worker.organizer.doctor.machine import existing

    few = 200
    free = shutil.disk_usage(existing(exam.configuration.state_dir)).free
    usable = free - exam.configuration.submission.disk_reserve_gigabytes * GIGABYTE
    largest = max(cost.csv_bytes for cost in exam.costs.values())
    fit = int(usable / largest)
    room = f"Apart from the reserve, the disk has room for about {count_of(fit, 'submission')} as plain CSV."
    if fit < few:
        yield warn(
            room, "Use a larger disk, or lower submission.keep_days or submission.disk_reserve_gigabytes."
        )
    else:
        yield note(room, always=True)


@CHECKS.add("cost.memory", "A submission is scored well within its memory limit")
def _memory(exam: Examination) -> Iterator[Finding]:
    limit = exam.configuration.submission.memory_gigabytes * GIGABYTE
    for codename, cost in exam.costs.items():
        if cost.memory_bytes > limit:
            yield fail(
                f"Phase {codename}: a submission takes about {cost.memory_bytes / GIGABYTE:.2f} GB of memory,"
                f" more than submission.memory_gigabytes ({limit / GIGABYTE:g}).",
                "Raise submission.memory_gigabytes.",
            )


def measure(exam: Examination, codename: str) -> Cost:
    """Score random embeddings on the phase's tasks with a few folds, and read a part of a CSV.

    All folds cost the same, so the total time can be estimated. At least as many folds are measured as there are threads.

    Raises:
        NeucoError: If the embeddings cannot be scored, so that the tasks or settings are wrong.
    """
    import numpy as np

    from scoring.engines import make_engine
    from scoring.evaluate import score_embeddings
    from scoring.inputs.embeddings import Embeddings
    from scoring.inputs.submission import read_submission
    from scoring.warm import warm
    from worker.organizer.rehearsal.files import csv_of

    warm()
    setup, settings = exam.setups[codename], exam.configuration.scoring
    ids, dim = setup.ids, setup.protocol.embedding_dim
    matrix = np.random.default_rng(0).standard_normal((len(ids), dim), dtype=np.float32)
    some = ids[: max(LEAST_FOLDS, READ_ROWS)]
    with tempfile.TemporaryDirectory(prefix="neuco-doctor-") as folder:
        file = Path(folder) / "embeddings.csv"
        file.write_bytes(csv_of(some, matrix[: len(some)]))
        size = file.stat().st_size * len(ids) // len(some)
        begun = time.perf_counter()
        read_submission(file, some, dim, max_expanded_bytes=10 * file.stat().st_size)
        reading_s = (time.perf_counter() - begun) * len(ids) / len(some)
    threads = len(os.sched_getaffinity(0)) if settings.threads == "auto" else settings.threads
    folds = min(setup.protocol.folds, max(LEAST_FOLDS, threads))
    card = score_embeddings(
        Embeddings.from_rows(ids, matrix),
        tuple(exam.tasks[codename]),
        replace(setup.protocol, folds=folds),
        setup.key,
        engine=make_engine(settings.engine, **settings.engine_options()),
    )
    training_s = sum(task.seconds for task in card.tasks)
    return Cost(
        seconds=reading_s + card.seconds + training_s * (setup.protocol.folds / folds - 1),
        measured_folds=folds,
        csv_bytes=size,
        # the file is still in memory while it is turned into a matrix
        memory_bytes=card.peak_memory_bytes + size,
    )


def _next_grid(seconds: float) -> int:
    """Return a round value for the answer grid that exceeds the estimate."""
    return max(30, int(-(-seconds * 1.5 // 30) * 30))
