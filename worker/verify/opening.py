"""Checks of what was committed to: the commitments themselves, that the reveal of a phase opens them, and what decided its splits.

Organizers who can still change the secret or the tasks when a public value is known can try many, as if there were no value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from scoring.inputs.tables import LabelRow
from scoring.printable import all_of, count_of
from scoring.protocol import ids_hash
from scoring.tasks import TaskType, task_version
from worker.challenge.secrets import value_of
from worker.fairness import commitments, id_lists, manifests
from worker.fairness.drand import QUICKNET, is_signed
from worker.participant.challenge import list_path
from worker.verify.public import PublicRepository
from worker.verify.revealed import Promise, RevealedPhase
from worker.verify.verdict import CheckEnded, Status, Verdict, believed, consistent, not_revealed, require


def sequence(repository: PublicRepository) -> Verdict:
    """Check that the commitments are in order, and report how often they were renewed."""
    if commitments.PATH not in repository.files:  # so the challenge has not signed this, either
        raise CheckEnded(
            "there is no commitment.json: this is no challenge's repository, or somebody else has removed it",
            Status.CHANGED,
        )
    entries = commitments.read_commitments(repository.files[commitments.PATH])
    times = [entry.made_at for entry in entries]
    require(
        [entry.sequence for entry in entries] == list(range(1, len(entries) + 1)) and times == sorted(times),
        "the commitments are not in order, or one is missing",
    )
    for before, entry in zip([entries[0], *entries], entries, strict=False):
        body = entry.model_dump(mode="json", exclude={"commitment", "signature"})
        require(
            entry.commitment == manifests.commitment_of(body),
            f"commitment {entry.sequence} does not have the hash of its content",
        )
        require(
            (entry.access, entry.receipts_every, entry.key)
            == (entries[0].access, entries[0].receipts_every, entries[0].key)
            and {*entry.draws, *entry.drawn, *before.phases} <= entry.phases.keys()
            and (entry.publish_files == before.publish_files or entry.phases.keys() - before.phases.keys()),
            f"commitment {entry.sequence} states something that only the first one may, or the first one to a phase, or lacks a phase that"
            " has a value or was there before",
        )
    changed = f"They renewed it {count_of(len(entries) - 1, 'time')}: {'; '.join(entry.reason for entry in entries[1:])}"
    return consistent(
        f"the organizers made their commitment on {times[0].isoformat()}. {changed if entries[1:] else 'It was never changed'}"
    )


def commitment(phase: RevealedPhase) -> Verdict:
    """Check that the revealed manifests are those that were committed to."""
    numbers = {str(entry.sequence) for entry in phase.repository.commitments if phase.name in entry.phases}
    require(
        phase.document.manifests.keys() == numbers,
        "what was revealed does not open exactly the commitments to this phase",
    )
    for promise in phase.promises:
        require(
            promise.manifest.hash == promise.announced.manifest,
            f"the tasks are not those of commitment {promise.public.sequence}",
        )
    tasks = count_of(len(phase.manifest.tasks), "task is the one", "tasks are the ones")
    return consistent(f"its {tasks} committed to")


def splits(phase: RevealedPhase) -> Verdict:
    """Check that the seeds were fixed before the first score, with the value that was mixed in."""
    require(
        phase.latest.is_opened,
        "the revealed key is not the one committed to: the splits may have been chosen",
    )
    scored_at = phase.scored_at
    for earlier, later in pairwise(phase.promises):
        is_same = earlier.manifest.secret_commitment == later.manifest.secret_commitment
        require(
            is_same or scored_at is None or later.public.made_at <= scored_at,
            f"its random splits were changed in commitment {later.public.sequence}, after submissions had been scored",
        )
    others = [promise.public.sequence for promise in phase.promises if not promise.is_opened]
    if not others:
        return consistent("the key of its random splits was fixed from the start")
    return believed(
        f"the key of its random splits was changed after commitment {others[-1]}, before the first score; that it was not chosen is taken"
        " on trust"
    )


def fixed(phase: RevealedPhase) -> Verdict:
    """Check that each change of tasks and protocol is a registered decision, and say what was changed, when and why."""
    decided = [(event.protocol, event.tasks) for event in phase.replay.decisions.events]
    committed = [(promise.protocol.hash, promise.manifest.versions) for promise in phase.promises]
    for event, what in zip(phase.replay.decisions.events, decided, strict=True):
        require(
            what in committed,
            f"the tasks or the protocol registered on {event.at.isoformat()[:16]} have no commitment",
        )
        require(
            event.epsilon == phase.promised[event.protocol].protocol.recipe.epsilon,
            f"the epsilon registered on {event.at.isoformat()[:16]} is not the one of the protocol",
        )
    scored_at = phase.scored_at
    for promise, what in zip(phase.promises, committed, strict=True):
        entry = promise.public
        before_scores = scored_at is None or entry.made_at <= scored_at
        require(
            what == decided[-1] if promise is phase.latest else before_scores or what in decided,
            f"the tasks or the protocol of commitment {entry.sequence} were never registered as a decision",
        )
    changes = list(_changes(phase))
    if not changes:
        return consistent("its tasks and its protocol were fixed from the start")
    return consistent(f"changes of its tasks and its protocol: {'; '.join(changes)}")


def _changes(phase: RevealedPhase) -> Iterator[str]:
    """Yield what each commitment changed, from what to what, when and why."""
    for earlier, promise in pairwise(phase.promises):
        changed = [*_of_protocol(earlier, promise), *_of_tasks(earlier.manifest, promise.manifest)]
        if changed:
            when = f"commitment {promise.public.sequence} on {promise.public.made_at.isoformat()[:16]}"
            yield f"{', '.join(changed)} ({when}: {promise.public.reason})"


def _of_protocol(earlier: Promise, later: Promise) -> Iterator[str]:
    before, after = (
        {**dict(promise.announced.recipe), **dict(promise.announced)} for promise in (earlier, later)
    )
    for name in before.keys() - {"recipe", "manifest"}:
        if before[name] != after[name]:
            yield f"{name} changed from {before[name]} to {after[name]}"


def _of_tasks(earlier: manifests.Manifest, later: manifests.Manifest) -> Iterator[str]:
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
    files = [task.file for task in phase.manifest.tasks]
    if not phase.with_labels:
        repository = phase.repository
        versions = (repository.versions(f"reveal/{phase.name}/labels/{file}") for file in files)
        step = next((step for found in versions for step, _ in found), None)
        require(
            step is None or repository.is_restored_since(step),
            f"{step} published its labels, and they were withdrawn",
        )
        return believed("only hashes of the labels are published: the scores cannot be recomputed")
    require(
        sorted(phase.labels) == sorted(files),
        "there is not exactly one label file for each task committed to",
    )
    for task in phase.manifest.tasks:
        require(
            _are_committed(phase.labels[task.file], task),
            f"the labels of task {task.identifier} are not the ones committed to",
        )
    for promise in phase.promises:
        for task in promise.manifest.tasks:
            rows = phase.labels.get(task.file, [])
            require(
                _are_committed(rows, task) == (task.version == _version(rows, task)),
                f"the version of task {task.identifier} in commitment {promise.public.sequence} is not the hash of its labels",
            )
    return consistent(
        f"the labels of {all_of(len(files), 'task')} are the ones committed to, with the versions that are their hashes"
    )


def _are_committed(rows: Sequence[LabelRow], task: manifests.CommittedTask) -> bool:
    """Return whether published rows are those that were committed to."""
    return manifests.labels_hash(rows, bytes.fromhex(task.salt)) == task.labels


def _version(rows: Sequence[LabelRow], task: manifests.CommittedTask) -> str:
    """Return the version of published rows."""
    ids, labels, groups = (
        [row.identifier for row in rows],
        [row.label for row in rows],
        [row.group for row in rows if row.group],
    )
    return task_version(TaskType(task.type), ids, np.array(labels), groups, package=task.package)


def ids(repository: PublicRepository, phase: str) -> Iterator[Verdict]:
    """Check that the id lists, those offered to participants and the one of the reveal, are those that were committed to."""
    committed, offered = [entry.ids_hash for entry in repository.announced(phase)], list_path(phase)
    for step, content in repository.versions(offered):
        is_one = ids_hash(id_lists.read(content)) in committed
        require(is_one, f"the id list in {step} is not one committed to")
        if offered not in repository.files:
            sentence = f"{offered} was published in {step}, and is not published now"
            yield not_revealed(sentence, check="earlier")
    for path in (offered, f"reveal/{phase}/ids.txt"):
        if path in repository.files:
            is_it = ids_hash(id_lists.read(repository.files[path])) in committed[-1:]
            require(is_it, f"{path}: the id list is not the one committed to")
            yield consistent(f"{path}: the id list is the one committed to")


def drawn(phase: RevealedPhase) -> Verdict:
    """Report what decided the splits of a phase, and whether anybody could have chosen it."""
    name, missed = phase.name, 0
    naming: manifests.Commitment | None = None
    # Pairs of the commitment that announces a value, and the one that mixes it in.
    values = list[tuple[manifests.Commitment, manifests.Commitment]]()
    for entry in phase.repository.commitments:
        if name in entry.draws:
            missed += naming is not None and naming.draws[name].at <= entry.made_at
            naming = entry
        if name in entry.drawn:
            if naming is None:
                raise CheckEnded("a value was mixed into its splits that no commitment had announced")
            values.append((naming, entry))
            naming = None
    require(
        naming is None,
        f"the value that commitment {naming and naming.sequence} announced was never mixed into its splits",
    )
    if not values:
        return believed(
            "no public random value was mixed into its splits, so the organizers could have tried many and chosen some; that they did"
            " not is taken on trust"
        )
    for announcing, mixing in values:
        _check_value(phase, announcing, mixing)
    return _of_draw(phase, *values[-1], times=len(values) + missed)


def _check_value(phase: RevealedPhase, naming: manifests.Commitment, mixing: manifests.Commitment) -> None:
    """Check that a value was named before it existed, is the one that was named, and that nothing else changed with it."""
    draw, number = naming.draws[phase.name], mixing.sequence
    round_of = f"round {draw.round} of {draw.chain.name}"
    require(
        naming.made_at < draw.at,
        f"commitment {naming.sequence} announced {round_of}, which was already known",
    )
    require(
        draw.chain.name != QUICKNET.name or draw.chain == QUICKNET,
        f"commitment {naming.sequence} names {draw.chain.name}, but gives the key of another chain",
    )
    require(
        is_signed(draw.chain, draw.round, mixing.drawn[phase.name]),
        f"the value that was mixed into its splits is not the one of {round_of}",
    )
    require(mixing.made_at >= draw.at, f"commitment {number} mixed in {round_of}, which did not exist yet")
    pairs = pairwise(phase.promises)
    changed = next((_changed(before, now) for before, now in pairs if now.public.sequence == number), "")
    require(
        not changed, f"its {changed} changed in commitment {number}, together with the value of {round_of}"
    )


def _of_draw(
    phase: RevealedPhase, naming: manifests.Commitment, mixing: manifests.Commitment, *, times: int
) -> Verdict:
    """Return the verdict on a draw that nothing contradicts."""
    draw, value = naming.draws[phase.name], value_of(mixing.drawn[phase.name])
    sentence = (
        f"its splits follow from round {draw.round} of {draw.chain.name} (value {value[:16]}…), made at {draw.at:%Y-%m-%d %H:%M:%S}"
        f" UTC and announced before that, by the organizers' clock, in commitment {naming.sequence}"
    )
    doubts = []
    if draw.chain != QUICKNET:
        doubts.append("that nobody could choose the values of this chain is taken on trust")
    if times > 1:
        doubts.append(
            f"another round had been named {count_of(times - 1, 'time')} before, as happens after an interruption or a change; that none"
            " was dropped because of its value is taken on trust"
        )
    doubts += [
        f"its {changed} changed in commitment {later.public.sequence}, when the value was known, so these splits could"
        " have been chosen; that they were not is taken on trust"
        for earlier, later in pairwise(phase.promises)
        if later.public.made_at >= draw.at and (changed := _changed(earlier, later))
    ]
    return believed("; ".join([sentence, *doubts])) if doubts else consistent(sentence)


def _changed(earlier: Promise, later: Promise) -> str:
    """Name what a commitment changes from an earlier one about the same phase."""
    before, after = (replace(promise.protocol, secret_commitment="") for promise in (earlier, later))
    changed = {
        "secret": earlier.is_opened != later.is_opened,
        "protocol": before != after,
        "tasks": earlier.manifest.versions != later.manifest.versions,
    }
    return " and ".join(name for name, differs in changed.items() if differs)
