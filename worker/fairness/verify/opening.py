"""Checks of what was committed to: the commitments themselves, and that the reveal of a phase opens them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np

from scoring.printable import all_of, count_of
from scoring.protocol import ids_hash
from scoring.tasks import TaskType, task_version
from worker.fairness import id_lists, manifests
from worker.fairness.manifests import CommittedTask, Manifest
from worker.fairness.receipts import made_at
from worker.fairness.verify.ledger import A_DAY
from worker.fairness.verify.promises import Promise
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict, consistent, contradicted
from worker.participant.challenge import announced, list_path


def sequence(entries: list[dict[str, Any]], now: datetime) -> Verdict:
    """Check that the commitments are in order, and report how often they were renewed."""
    times = [made_at(entry) for entry in entries]
    if [entry["sequence"] for entry in entries] != list(range(1, len(entries) + 1)) or times != sorted(times):
        return contradicted("commitment", "The commitments are not in order, or one is missing.")
    if times[-1] > now + A_DAY:
        return contradicted("commitment", f"Commitment {len(entries)} is dated in the future.")
    reasons = "; ".join(str(entry["reason"]) for entry in entries[1:])
    changed = (
        f" They renewed it {count_of(len(entries) - 1, 'time')}: {reasons}."
        if reasons
        else " It was never changed."
    )
    return consistent(
        "commitment", f"The organizers made their commitment on {times[0].isoformat()}.{changed}"
    )


def commitment(phase: RevealedPhase) -> Verdict:
    """Check that the revealed manifests are those that were committed to, and that the protocol is the announced one."""
    later, opened = 0, [item.sequence for item in phase.document.commitments]
    if opened != sorted(set(opened)):
        return phase.contradicted("commitment", "the opened commitments are not in order, or one is repeated")
    for promise in phase.promises:
        number, opening, manifest = promise.sequence, promise.opening, promise.manifest
        if opening is None and promise.made_at >= phase.revealed_at:
            later = promise.sequence
            continue
        if opening is None or manifests.commitment_of(opening) != promise.public["commitment"]:
            return phase.contradicted("commitment", f"what was revealed does not match commitment {number}")
        promised, announced_ = opening.phases.get(phase.name), promise.public["phases"].get(phase.name)
        if promised is None and manifest is None and announced_ is None:
            continue  # the phase was added later
        if manifest is None or manifests.phase_commitment(manifest) != promised:
            return phase.contradicted("commitment", f"the tasks are not those of commitment {number}")
        if announced_ != manifest.protocol.announced.to_json() or phase.name != manifest.phase:
            return phase.contradicted(
                "commitment", f"the protocol announced with commitment {number} is not the one committed to"
            )
        if manifest.protocol_hash != manifest.protocol.protocol.hash or phase.name != manifest.protocol.phase:
            return phase.contradicted(
                "commitment", f"the protocol of commitment {number} does not have the hash that it names"
            )
    if later:
        return phase.not_revealed(
            "commitment",
            f"commitment {later} was made after the reveal, and can be checked after another reveal",
        )
    tasks = count_of(len(phase.manifest.tasks), "task is the one", "tasks are the ones")
    return phase.consistent("commitment", f"its {tasks} committed to")


def splits(phase: RevealedPhase) -> Verdict:
    """Check that the seeds were fixed from the start."""
    if not phase.latest.is_opened_by(phase.key):
        return phase.contradicted(
            "splits", "the revealed key is not the one committed to: the splits may have been chosen"
        )
    for promise in phase.promises:
        if promise.manifest is not None and not promise.is_opened_by(phase.key):
            return phase.believed(
                "splits",
                f"the key of its random splits was changed after commitment {promise.sequence}; that the earlier splits"
                " were not chosen is taken on trust",
            )
    return phase.consistent("splits", "the key of its random splits was fixed from the start")


def fixed(phase: RevealedPhase) -> Verdict:
    """Check that each change of tasks and protocol is a registered decision, and say what was changed, when and why."""
    decided = [(event.protocol, event.tasks) for event in phase.fold.decisions.events]
    committed = [(manifest.protocol_hash, manifest.versions) for manifest in phase.manifests]
    for event in phase.fold.decisions.events:
        if (event.protocol, event.tasks) not in committed:
            return phase.contradicted(
                "fixed",
                f"the tasks or the protocol registered on {event.at.isoformat()[:16]} have no commitment",
            )
    scored = min((history.moments[0] for history in phase.fold.scores.values()), default=None)
    for promise, what in zip(_about(phase), committed, strict=True):
        is_last = promise is phase.latest
        if what != decided[-1] if is_last else scored and promise.made_at > scored and what not in decided:
            return phase.contradicted(
                "fixed",
                f"the tasks or the protocol of commitment {promise.sequence} were never registered as a decision",
            )
    changes = [change for earlier, later in pairwise(_about(phase)) for change in _changed(earlier, later)]
    if not changes:
        return phase.consistent("fixed", "its tasks and its protocol were fixed from the start")
    return phase.consistent("fixed", f"changes of its tasks and its protocol: {'; '.join(changes)}")


def _about(phase: RevealedPhase) -> list[Promise]:
    return [promise for promise in phase.promises if promise.manifest is not None]


def _changed(earlier: Promise, later: Promise) -> Iterator[str]:
    """Yield what a commitment changed, from what to what, when and why."""
    if earlier.manifest is None or later.manifest is None:
        return
    changes = [*_of_protocol(earlier.manifest, later.manifest), *_of_tasks(earlier.manifest, later.manifest)]
    if changes:
        when = f"commitment {later.sequence} on {later.made_at.isoformat()[:16]}"
        yield f"{', '.join(changes)} ({when}: {later.reason})"


def _of_protocol(earlier: Manifest, later: Manifest) -> Iterator[str]:
    before, after = (
        {**announced_.to_json(), **announced_.recipe.to_json()}
        for announced_ in (earlier.protocol.announced, later.protocol.announced)
    )
    for name in before.keys() - {"recipe"}:
        if before[name] != after[name]:
            yield f"{name} changed from {before[name]} to {after[name]}"


def _of_tasks(earlier: Manifest, later: Manifest) -> Iterator[str]:
    before, after = earlier.versions, later.versions
    for task in sorted({*before, *after}):
        if task not in after:
            yield f"task {task} was dropped"
        elif task not in before:
            yield f"task {task} was added"
        elif before[task] != after[task]:
            yield f"task {task} changed from version {before[task][:8]} to {after[task][:8]}"


def labels(phase: RevealedPhase) -> Verdict:
    """Check that the published labels and their versions are those that were committed to, task by task."""
    if not phase.with_labels:
        return phase.believed(
            "labels", "only hashes of the labels were released: the scores cannot be recomputed"
        )
    names = {task.file: task for task in phase.manifest.tasks}
    if set(phase.labels) != set(names) or len(names) != len(phase.manifest.tasks):
        return phase.contradicted("labels", "there is not exactly one label file for each task committed to")
    for name, task in names.items():
        if not same_labels(phase.labels[name], task):
            return phase.contradicted(
                "labels", f"the labels of task {task.identifier} are not the ones committed to"
            )
    for promise in _about(phase):
        for task in promise.manifest.tasks if promise.manifest else ():
            rows = phase.labels.get(task.file, [])
            if same_labels(rows, task) != (task.version == _version(rows, task)):
                return phase.contradicted(
                    "labels",
                    f"the version of task {task.identifier} in commitment {promise.sequence} is not the hash of its labels",
                )
    return phase.consistent(
        "labels",
        f"the labels of {all_of(len(names), 'task')} are the ones committed to, with the versions that are their hashes",
    )


def same_labels(rows: list[tuple[str, float]], task: CommittedTask) -> bool:
    """Return whether published rows are those that were committed to."""
    return manifests.labels_hash(rows, bytes.fromhex(task.salt)) == task.labels


def _version(rows: list[tuple[str, float]], task: CommittedTask) -> str:
    """Return the version of published rows."""
    values = np.array([label for _, label in rows])
    return task_version(TaskType(task.type), [identifier for identifier, _ in rows], values, task.package)


def ids(phase: RevealedPhase) -> Verdict:
    """Check that the id list is the public one."""
    if ids_hash(phase.ids) != phase.manifest.protocol.ids_hash:
        return phase.contradicted("ids", "the id list is not the one committed to")
    return phase.consistent("ids", "the id list is the one committed to")


def id_list(repository: PublicRepository, entries: list[dict[str, Any]], phase: str) -> Verdict | None:
    """Check that the id list offered to participants is the one that was committed to; None if there is none."""
    content, protocol = repository.files.get(list_path(phase)), announced(entries).get(phase)
    if content is None:
        return None
    try:
        is_it = protocol is not None and ids_hash(id_lists.read(content)) == protocol["ids_hash"]
    except UnicodeDecodeError:
        is_it = False
    if not is_it:
        return contradicted(
            "ids", f"{list_path(phase)}: the id list is not the one committed to.", phase=phase
        )
    return consistent("ids", f"{list_path(phase)}: the id list is the one committed to.", phase=phase)
