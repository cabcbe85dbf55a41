"""The check of groups of samples: how they divide the samples, and what they change in the scores of a baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from scoring.engines import make_engine
from scoring.errors import ParticipantError
from scoring.evaluate import score_embeddings, tested
from scoring.inputs.tables import read_submission
from scoring.metrics import mean_quality
from scoring.printable import count_of, name_some
from scoring.protocol import ids_hash
from scoring.randomness import never_tested, test_parts
from scoring.tasks import Task, TaskType
from worker.challenge.setups import PhaseSetup, read_phase, read_secret
from worker.organizer.doctor.check import Finding, note, warn
from worker.organizer.doctor.subjects import CheckedFiles

COMPARED_FOLDS = 20
LEAK = 0.05  # of a mean score, from which groups change a result
SHOWN = 3


def grouped(files: CheckedFiles) -> Iterator[Finding]:
    """Look at the groups of each row set, and at the scores of the baseline with and without them."""
    for codename, tasks in files.tasks.items():
        if not any(task.groups for task in tasks):
            continue
        setup = read_phase(files.configuration, codename, read_secret(files.configuration))
        row_sets: dict[str, list[Task]] = {}
        for task in setup.record.tasks:
            if task.groups:
                row_sets.setdefault(task.row_set, []).append(task)
        for sharing in row_sets.values():
            yield from _divided(setup, sharing)
        if files.challenge.baseline is None:
            yield note(
                f"Phase {codename}: to see how much random splits would flatter embeddings, run"
                " `neuco-worker doctor --baseline FILE` with the embeddings of a baseline."
            )
        else:
            yield _compared(files, setup, files.challenge.baseline)


def _divided(setup: PhaseSetup, sharing: Sequence[Task]) -> Iterator[Finding]:
    """Say how the groups of one row set divide its samples."""
    protocol, first, total = setup.record.protocol, sharing[0], len(sharing[0].ids)
    test_size = protocol.recipe.test_size
    sizes = sorted(Counter(first.groups).values())
    tests = tested(first.row_set, first.groups, protocol, setup.key)
    different, numbers = len({*test_parts(tests)}) or len(tests), [len(test) for test in tests]
    begin = f"Phase {setup.record.codename}, {name_some([task.name for task in sharing], SHOWN)}"
    parts = count_of(different, "different test part")
    yield note(
        f"{begin}: {len(sizes):,} groups of {total:,} samples, the largest with {sizes[-1]:,}; {count_of(len(tests), 'fold')} with {parts}"
        f" of {min(numbers):,} to {max(numbers):,} samples."
    )
    if len(sizes) < 2 / test_size:
        yield warn(
            f"{begin}: there are only {len(sizes)} groups, so {count_of(len(tests), 'fold')} have {parts}.",
            "Make smaller groups.",
        )
    if large := never_tested(sizes, test_size):
        yield warn(
            f"{begin}: {sum(large) / total:.0%} of the samples are never tested on, because their groups ({len(large)}) have at least"
            f" {2 * test_size:.0%} of all each.",
            "Divide large groups.",
        )
    for task in sharing:
        empty = sum(not task.labels[test].any() for test in tests)
        if task.type is TaskType.CLASSIFICATION and empty:
            yield warn(
                f"{begin}: {empty} of {count_of(len(tests), 'fold')} of {task.name} have no positive sample in their test part, and score 0"
                " for every team.",
                "Make smaller groups, or label more positive samples.",
            )


def _compared(files: CheckedFiles, setup: PhaseSetup, baseline: Path) -> Finding:
    """Score the baseline with groups and without them."""
    record, settings = setup.record, files.configuration.scoring
    begin = f"Phase {record.codename}"
    try:
        embeddings = read_submission(baseline, record.ids, record.protocol.embedding_dim)
    except ParticipantError as error:
        return note(
            f"{begin}: {baseline} is not a submission to this phase, so it was not scored. {error.sentence}"
        )
    with_groups = tuple(task for task in record.tasks if task.groups)
    without = tuple(replace(task, groups=(), row_set=ids_hash(task.ids)) for task in with_groups)
    protocol = replace(record.protocol, folds=min(record.protocol.folds, COMPARED_FOLDS))
    random, by_group = (
        score_embeddings(
            embeddings,
            tasks,
            protocol,
            setup.key,
            engine=make_engine(settings.engine, **settings.engine_options()),
        ).tasks
        for tasks in (without, with_groups)
    )
    drops = {old.task: old.mean - new.mean for old, new in zip(random, by_group, strict=True)}
    worst = max(drops, key=lambda name: drops[name])
    means = [mean_quality([score.mean for score in scores]) for scores in (random, by_group)]
    verdict = f"neighbours leak, most in {worst}" if max(drops.values()) > LEAK else "neighbours hardly leak"
    return note(
        f"{begin}: the baseline's mean score is {means[0]:.2f} with random splits and {means[1]:.2f} by group: {verdict}"
        f" ({drops[worst]:+.2f})."
    )
