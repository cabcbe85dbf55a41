"""Recompute scores from the revealed labels, fold by fold: of published contents, and of a participant's own file.

Published contents are recomputed one at a time on all cores, so that only one is in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from scoring.engines import TOLERANCE, make_engine
from scoring.errors import OrganizerError, ParticipantError
from scoring.evaluate import score_embeddings
from scoring.inputs.embeddings import Embeddings, canonical_bytes
from scoring.inputs.tables import read_submission
from scoring.printable import count_of
from scoring.tasks import Task, TaskType, make_task
from worker.fairness import disclosure
from worker.fairness.disclosure import Files, PublishedFile
from worker.fairness.documents import read
from worker.fairness.events import ScoreEvent
from worker.fairness.verify.facts import largest_difference
from worker.fairness.verify.public import Contents, PublicRepository
from worker.fairness.verify.revealed import RevealedPhase, read_reveals
from worker.fairness.verify.verdict import (
    Fault,
    Verdict,
    Worth,
    believed,
    contradicted,
    judged,
    must,
)

CHECK, YOURS = "files", "your submission"
EXPANDED_BYTES = 8_000_000_000
ENGINES = {"default": "local", "pytorch": "torch"}
Progress = Callable[[int, int], None]


def published_verdicts(
    repository: PublicRepository,
    *,
    engine: str = "default",
    recompute: bool = True,
    progress: Progress = lambda _done, _of: None,
) -> Iterator[Verdict]:
    """Check what the reveals published of submissions, and recompute all of it.

    Args:
        repository: The public files, open.
        engine: ``default`` or ``pytorch`` (the engine ``torch``).
        recompute: False to check only that everything promised is there.
        progress: Called with the number of folds done since the last call, and the total.
    """
    phases = read_reveals(repository).phases
    files: dict[str, list[PublishedFile]] = {name: [] for name in phases}
    for name, phase in phases.items():
        yield from judged(CHECK, _promised, phase, files[name], phase=name)
    of = sum(len(files[name]) * _folds(phase) for name, phase in phases.items())
    for name, phase in phases.items():
        if files[name] and not recompute:
            sentence = f"the scores of {count_of(len(files[name]), 'published file')} were not recomputed, because of --no-recompute"
            yield from judged(CHECK, believed, sentence, phase=name)
        elif files[name]:
            what = files[name], repository.contents, engine, lambda done: progress(done, of)
            yield from judged(CHECK, _of_contents, phase, *what, phase=name)


def _folds(phase: RevealedPhase) -> int:
    """Return how many folds of one content are trained."""
    return len(phase.manifest.tasks) * phase.protocol.folds


def _promised(phase: RevealedPhase, good: list[PublishedFile]) -> Iterator[Verdict]:
    """Compare the list of published contents with the committed rule and with the register; add the good ones to a list."""
    repository, path = phase.repository, disclosure.files_path(phase.name)
    rule = disclosure.rule_of(repository.commitments, phase.name)
    if phase.fold.unknown_phase is not None:  # so the order of the board is not known
        rule = disclosure.BASELINES
    listed = read(Files, repository.files.get(path, b""), path)
    left_out = {file.submission: file.reason for file in listed.left_out}
    rows = [(row.submission, row.baseline) for row in phase.boards[-1].standings] if phase.boards else []
    published = {file.submission: file for file in listed.files}
    for submission in disclosure.due(rule, rows):
        who = f"{'baseline, ' if (submission, True) in rows else ''}submission {submission}"
        if submission in left_out and submission not in published:
            yield believed(
                f"the file of {who}, is not published, and its scores are taken on trust: {left_out[submission]}"
            )
        elif submission not in published:
            yield contradicted(f"the file of {who}, should have been published ({rule}), but is missing")
    for file in published.values():
        if file.content in {record.content for record in phase.records.get(file.submission, [])}:
            good.append(file)
        else:
            yield contradicted(
                f"the file published for submission {file.submission} is not the one in the register"
            )


def _of_contents(
    phase: RevealedPhase,
    files: Sequence[PublishedFile],
    contents: Contents,
    engine: str,
    progress: Callable[[int], None],
) -> Iterator[Verdict]:
    submissions, worst, tasks = set[int](), 0.0, published_tasks(phase)
    for file in files:
        try:
            embeddings = _embeddings(phase, file, contents)
            ours, difference = _recomputed(phase, embeddings, tasks, engine, progress)
        except Fault as fault:
            yield replace(fault.verdict, sentence=f"submission {file.submission}: {fault}")
            continue
        submissions.update(ours)
        worst = max(worst, difference)
    if submissions:
        yield Verdict(
            worth=Worth.RECOMPUTED,
            sentence=f"the scores of {count_of(len(submissions), 'entry', 'entries')} were recomputed from published files,"
            f" {len(tasks)} x {phase.protocol.folds} folds each; the largest difference is {worst:.1e}",
            submissions=tuple(sorted(submissions)),
        )


def _embeddings(phase: RevealedPhase, file: PublishedFile, contents: Contents) -> Embeddings:
    """Join a content from its parts, and read it.

    Raises:
        Fault: If a part is missing or wrong, which counts against the organizers only if everything that they published is here.
    """
    content, size = b"", canonical_bytes(phase.ids, phase.protocol.embedding_dim)
    for part in file.parts:
        piece, what = contents.part(part.name), f"part {part.name} of its file"
        if piece is None and contents.complete:
            raise Fault(f"{what} is not in the repository's branch {disclosure.BRANCH}")
        if piece is None:
            raise Fault(
                f"its file is not in this copy, so its scores are taken on trust; the branch {disclosure.BRANCH} has it (--files"
                " DIR)",
                Worth.BELIEVED,
            )
        if hashlib.sha256(piece).hexdigest() != part.sha256:
            raise Fault(f"{what} has another hash", Worth.CONTRADICTED if contents.pushed else Worth.BELIEVED)
        content += piece
        must(len(content) <= size, "its published file is too large")
    must(
        hashlib.sha256(content).hexdigest() == file.content,
        "its published file is not the one in the register",
    )
    try:
        return Embeddings.from_canonical(content, phase.ids, phase.protocol.embedding_dim)
    except ValueError as error:
        raise Fault(f"its file cannot be scored ({error})") from None


def submission_verdicts(
    repository: PublicRepository,
    file: Path,
    *,
    engine: str,
    progress: Progress = lambda _done, _of: None,
    scored: Sequence[ScoreEvent] = (),
    check: str = YOURS,
) -> Iterator[Verdict]:
    """Score a submission file again in every revealed phase to which it belongs.

    A file belongs to a phase if it has the phase's public ids; phases that cannot read it are skipped.

    Args:
        repository: The public files.
        file: The submission as it was sent to EvalAI.
        engine: ``default`` or ``pytorch`` (the engine ``torch``).
        progress: Called with the number of folds done since the last call, and the total.
        scored: The entries of the receipts that were given with it.
        check: Name of the verdicts.

    Raises:
        ParticipantError: If the file cannot be read in any revealed phase.
    """
    phases = read_reveals(repository).phases
    refused: list[ParticipantError] = []
    readable: list[tuple[RevealedPhase, Embeddings]] = []
    for phase in phases.values():
        columns = phase.protocol.embedding_dim
        try:
            embeddings = read_submission(file, phase.ids, columns, max_expanded_bytes=EXPANDED_BYTES)
            readable.append((phase, embeddings))
        except ParticipantError as error:
            refused.append(error)
    if refused and not readable:
        raise refused[0]
    if not phases:
        sentence = "no phase has been revealed yet, so the file cannot be judged"
        yield from judged(check, believed, sentence)
    registered = [pair for pair in readable if pair[0].records_of(pair[1].content_hash)]
    for phase, embeddings in registered or readable:
        receipts = [entry for entry in scored if entry.phase == phase.name]
        yield from judged(check, _of_file, phase, embeddings, receipts, engine, progress, phase=phase.name)


def _of_file(
    phase: RevealedPhase,
    embeddings: Embeddings,
    receipts: Sequence[ScoreEvent],
    engine: str,
    progress: Progress,
) -> Iterator[Verdict]:
    records = phase.records_of(embeddings.content_hash)
    if receipts and embeddings.content_hash not in {entry.content for entry in receipts}:
        promised = ", ".join(str(entry.submission) for entry in receipts)
        held = ", ".join(str(record.submission) for record in records)
        has = f"it has the content of submission {held}" if held else "no published entry has its content"
        yield believed(
            f"the receipt and the file do not belong together: the receipt is of submission {promised}; as for the file, {has}"
        )
    if not records:
        yield believed(
            "the file is valid, but no open entry of the register has its content: either the submission is private, or nothing about it"
            " was registered. If EvalAI lists it as public and finished, show that to the organizers"
        )
        return
    tasks, of = published_tasks(phase), _folds(phase)
    submissions, worst = _recomputed(phase, embeddings, tasks, engine, lambda done: progress(done, of))
    yield Verdict(
        worth=Worth.RECOMPUTED,
        sentence=f"all {len(tasks)} x {phase.protocol.folds} fold scores were recomputed; the largest difference is {worst:.1e}",
        submissions=submissions,
    )


def _recomputed(
    phase: RevealedPhase,
    embeddings: Embeddings,
    tasks: Sequence[Task],
    engine: str,
    progress: Callable[[int], None],
) -> tuple[tuple[int, ...], float]:
    """Recompute the scores of a content; return the submissions that have them, and the largest difference.

    Raises:
        Fault: If no record has this content, these tasks and the phase's protocol, or the scores differ.
    """
    versions = {task.name: task.version for task in tasks}
    records = [
        record
        for record in phase.records_of(embeddings.content_hash)
        if record.versions == versions and record.protocol == phase.protocol.hash
    ]
    if not records:
        raise Fault(
            "it was scored on tasks that have since changed, and their labels are not published: its scores cannot be recomputed",
            Worth.BELIEVED,
        )
    key, device = phase.latest.splits_key(phase.key), make_engine(ENGINES[engine])
    try:
        card = score_embeddings(embeddings, tasks, phase.protocol, key, engine=device, progress=progress)
    except ParticipantError as error:
        raise Fault(f"its file cannot be scored ({error.sentence})") from None
    worst = max(
        largest_difference(task.folds, record.cells[task.task].folds)
        for record in records
        for task in card.tasks
    )
    must(worst <= TOLERANCE, f"the published scores do not follow from this file (off by {worst:.2g})")
    return tuple(sorted({record.submission for record in records})), worst


def published_tasks(phase: RevealedPhase) -> tuple[Task, ...]:
    """Return the tasks of the published labels, with the version numbers of their packages.

    Raises:
        Fault: If there are no labels, or they are not valid tasks.
    """
    if not phase.with_labels:
        raise Fault(
            "only hashes of the labels were released: the scores cannot be recomputed", Worth.BELIEVED
        )
    ids, tasks = frozenset(phase.ids), []
    for task in sorted(phase.manifest.tasks, key=lambda task: task.identifier):
        rows = [(line, *row) for line, row in enumerate(phase.labels.get(task.file, []), 2)]
        try:
            plain = make_task(task.identifier, TaskType(task.type), rows, ids, source=task.file)
        except OrganizerError as error:
            raise Fault(f"the published labels cannot be read: {error.sentence}") from None
        tasks.append(plain.of_package(task.package))
    return tuple(tasks)
