"""Checks of what was committed to: the commitments themselves, and that the reveal of a phase opens them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scoring.printable import all_of, count_of
from scoring.protocol import ids_hash
from worker.fairness import id_lists, manifests
from worker.fairness.published_format import FORMAT
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.revealed import UNREADABLE, RevealedPhase, label_rows
from worker.fairness.verify.verdict import Verdict, consistent, contradicted
from worker.participant.layout import announced, list_path


def sequence(entries: list[Any]) -> Verdict:
    """Check that the commitments are in order, and report how often they were renewed."""
    numbers = [(entry.get("sequence"), entry.get("format")) for entry in entries]
    times = [str(entry.get("made_at")) for entry in entries]
    if numbers != [(number, FORMAT) for number in range(1, len(entries) + 1)] or times != sorted(times):
        return contradicted("commitment", "The commitments are not in order, or one is missing.")
    reasons = "; ".join(str(entry.get("reason")) for entry in entries[1:])
    changed = (
        f" They renewed it {count_of(len(entries) - 1, 'time')}: {reasons}."
        if reasons
        else " It was never changed."
    )
    return consistent("commitment", f"The organizers made their commitment on {times[0]}.{changed}")


def commitment(phase: RevealedPhase) -> Verdict:
    """Check that the revealed manifests are those that were committed to, and that the protocol is the announced one."""
    spoken, later = False, 0
    for promise in phase.promises:
        number, opening, manifest = promise.sequence, promise.opening, promise.manifest
        if opening is None and promise.made_at >= phase.revealed_at:
            later = promise.sequence
            continue
        if opening is None or manifests.commitment_of(opening) != promise.public["commitment"]:
            return phase.contradicted("commitment", f"what was revealed does not match commitment {number}")
        promised = opening["phases"].get(phase.name)
        if promised is None and manifest is None and phase.name not in promise.public["phases"]:
            continue  # the phase was added later
        if manifest is None or manifests.phase_commitment(manifest) != promised:
            return phase.contradicted("commitment", f"the tasks are not those of commitment {number}")
        announced = promise.public["phases"].get(phase.name)
        if announced != manifests.announced_protocol(manifest["protocol"]):
            return phase.contradicted(
                "commitment", f"the protocol announced with commitment {number} is not the one committed to"
            )
        spoken = True
    if not spoken:
        return phase.contradicted("commitment", "there is no commitment to its tasks")
    if later:
        return phase.not_revealed(
            "commitment",
            f"commitment {later} was made after the reveal, and can be checked after another reveal",
        )
    tasks = count_of(len(phase.manifest["tasks"]), "task is the one", "tasks are the ones")
    return phase.consistent("commitment", f"its {tasks} committed to")


def splits(phase: RevealedPhase) -> Verdict:
    """Check that the seeds were fixed from the start."""
    if not phase.latest.is_opened_by(phase.key):
        return phase.contradicted(
            "splits", "the revealed key is not the one committed to: the splits may have been chosen"
        )
    if phase.protocol.hash != phase.manifest["protocol_hash"]:
        return phase.contradicted("splits", "the protocol is not the one committed to")
    for promise in phase.promises:
        if promise.manifest is not None and not promise.is_opened_by(phase.key):
            return phase.believed(
                "splits",
                f"the key of its random splits was changed after commitment {promise.sequence}; that the earlier splits"
                " were not chosen is taken on trust",
            )
    return phase.consistent(
        "splits", "the key of its random splits and its protocol were fixed from the start"
    )


def labels(phase: RevealedPhase) -> Verdict:
    """Check that the published labels are those that were committed to, task by task."""
    if not phase.with_labels:
        return phase.believed(
            "labels", "only hashes of the labels were released: the scores cannot be recomputed"
        )
    names = {f"{task['identifier']}__{task['type']}.csv": task for task in phase.manifest["tasks"]}
    found = phase.label_files
    if set(found) != set(names):
        return phase.contradicted("labels", "there is not exactly one label file for each task committed to")
    for name, task in names.items():
        if not same_labels(found[name], task):
            return phase.contradicted(
                "labels", f"the labels of task {task['identifier']} are not the ones committed to"
            )
    return phase.consistent("labels", f"the labels of {all_of(len(names), 'task')} are the ones committed to")


def same_labels(content: bytes, task: Mapping[str, Any]) -> bool:
    """Return whether a published label file is the one that was committed to."""
    return manifests.labels_hash(label_rows(content), bytes.fromhex(task["salt"])) == str(task["labels"])


def ids(phase: RevealedPhase) -> Verdict:
    """Check that the id list is the public one."""
    if ids_hash(phase.ids) != phase.manifest["protocol"]["ids_hash"]:
        return phase.contradicted("ids", "the id list is not the one committed to")
    return phase.consistent("ids", "the id list is the one committed to")


def id_list(repository: PublicRepository, entries: list[dict[str, Any]], phase: str) -> Verdict | None:
    """Check that the id list offered to participants is the one that was committed to; None if there is none."""
    content = repository.files.get(list_path(phase))
    if content is None:
        return None
    try:
        is_it = ids_hash(id_lists.read(content)) == announced(entries)[phase]["ids_hash"]
    except UNREADABLE:
        is_it = False
    if not is_it:
        told = f"{list_path(phase)}: the id list is not the one committed to."
        return contradicted("ids", told, phase=phase)
    told = f"{list_path(phase)}: the id list is the one committed to."
    return consistent("ids", told, phase=phase)
