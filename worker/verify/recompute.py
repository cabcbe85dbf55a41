"""Recompute scores from the revealed labels, fold by fold: of published contents, and of a participant's own file.

Published contents are recomputed one at a time on all cores, so that only one is in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scoring.engines import TOLERANCE, make_engine
from scoring.errors import OrganizerError, ParticipantError
from scoring.evaluate import score_embeddings
from scoring.inputs.embeddings import Embeddings, canonical_bytes
from scoring.inputs.tables import read_submission
from scoring.printable import count_of, printable
from scoring.tasks import Task
from worker.fairness import disclosure
from worker.fairness.documents import read
from worker.fairness.events import ScoreEvent
from worker.verify.facts import compare_folds
from worker.verify.public import Contents, PublicRepository
from worker.verify.revealed import RevealedPhase, read_reveals
from worker.verify.verdict import (
    CheckEnded,
    Status,
    Verdict,
    believed,
    judged,
    require,
)

CHECK, YOURS = "files", "your submission"
EXPANDED_BYTES = 8_000_000_000
Progress = Callable[[int, int], None]


def published_verdicts(
    repository: PublicRepository,
    *,
    engine: str = "local",
    recompute: bool = True,
    progress: Progress = lambda _done, _of: None,
) -> Iterator[Verdict]:
    """Recompute the scores of the submissions whose files are published.

    Args:
        repository: The public files, open.
        engine: What recomputes them, see :func:`scoring.engines.make_engine`.
        recompute: False to recompute nothing.
        progress: Called with the number of folds done since the last call, and the total.
    """
    phases = read_reveals(repository).phases
    if disclosure.FILES_PATH in repository.files:
        yield from judged(CHECK, _reference, repository)
    due: dict[str, dict[str, list[int]]] = {name: {} for name in phases}
    for name, phase in phases.items():
        yield from judged(CHECK, _add_due, phase, due[name], phase=name)
    of = sum(len(due[name]) * _folds(phase) for name, phase in phases.items())
    for name, phase in phases.items():
        if due[name] and not recompute:
            sentence = "no score was recomputed from a published file, because of --no-recompute"
            yield from judged(CHECK, believed, sentence, phase=name)
        elif due[name]:
            what = due[name], repository.contents, engine, lambda done: progress(done, of)
            yield from judged(CHECK, _of_contents, phase, *what, phase=name)


def _folds(phase: RevealedPhase) -> int:
    """Return how many folds of one content are trained."""
    return len(phase.manifest.tasks) * phase.protocol.folds


def _reference(repository: PublicRepository) -> None:
    """Check that the file that names the published contents can be read; where it leads decides nothing."""
    read(disclosure.FilesReference, repository.files[disclosure.FILES_PATH], disclosure.FILES_PATH)


def _add_due(phase: RevealedPhase, contents: dict[str, list[int]]) -> None:
    """Add the contents that the committed rule names, each with its submissions on the last board."""
    rule = disclosure.rule_of(phase.repository.commitments, phase.name)
    if phase.replay.unknown_phase is not None:  # so the order of the board is not known
        rule = disclosure.BASELINES
    rows = [(row.submission, row.baseline) for row in phase.boards[-1].standings] if phase.boards else []
    for submission in disclosure.due(rule, rows):
        for content in {record.content for record in phase.records.get(submission, [])}:
            contents.setdefault(content, []).append(submission)


def _of_contents(
    phase: RevealedPhase,
    due: Mapping[str, Sequence[int]],
    contents: Contents,
    engine: str,
    progress: Callable[[int], None],
) -> Iterator[Verdict]:
    submissions, missing, tasks = set[int](), list[int](), published_tasks(phase)
    worst, explained = 0.0, 0
    for content, named in due.items():
        try:
            embeddings = _embeddings(phase, content, contents)
            if embeddings is None:
                missing += named
                progress(_folds(phase))
                continue
            ours, off, count = _recomputed(phase, embeddings, tasks, engine, progress)
        except CheckEnded as fault:
            who = ", ".join(map(str, named))
            yield replace(fault.verdict, sentence=f"submission {who}: {fault}")
            continue
        submissions.update(ours)
        worst, explained = max(worst, off), explained + count
    if missing:
        who = f"submission{'s' if len(missing) > 1 else ''} {', '.join(map(str, sorted(missing)))}"
        yield believed(f"no file is published now of {who}, so the scores are taken on trust")
    if submissions:
        yield Verdict(
            status=Status.RECOMPUTED,
            sentence=f"the scores of {count_of(len(submissions), 'entry', 'entries')} were recomputed from published files,"
            f" {len(tasks)} x {phase.protocol.folds} folds each; {_differences(worst, explained)}",
            submissions=tuple(sorted(submissions)),
        )


def _embeddings(phase: RevealedPhase, content: str, contents: Contents) -> Embeddings | None:
    """Join a content from its parts, and read it; None if a part is missing, or not a part of it.

    Raises:
        CheckEnded: If it is not the embeddings of a submission to this phase.
    """
    size = canonical_bytes(phase.ids, phase.protocol.embedding_dim)
    joined = b"".join(map(contents, disclosure.part_names(content, size)))
    if hashlib.sha256(joined).hexdigest() != content:
        return None
    try:
        return Embeddings.from_canonical(joined, phase.ids, phase.protocol.embedding_dim)
    except ValueError as error:
        raise CheckEnded(f"its file cannot be scored ({error})") from None


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
        engine: What recomputes them, see :func:`scoring.engines.make_engine`.
        progress: Called with the number of folds done since the last call, and the total.
        scored: The entries of the receipts that were given with it.
        check: Name of the verdicts.

    Raises:
        OrganizerError: If the file cannot be read in any revealed phase.
    """
    phases = read_reveals(repository).phases
    refused: dict[str, ParticipantError] = {}
    readable: list[tuple[RevealedPhase, Embeddings]] = []
    for name, phase in phases.items():
        columns = phase.protocol.embedding_dim
        try:
            embeddings = read_submission(file, phase.ids, columns, max_expanded_bytes=EXPANDED_BYTES)
            readable.append((phase, embeddings))
        except ParticipantError as error:
            refused[name] = error
    if refused and not readable:
        reasons = "\n".join(f"Phase {printable(name)}: {error.message}" for name, error in refused.items())
        raise OrganizerError(f"{file} belongs to no revealed phase.\n{reasons}", code="verify.submission")
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
    submissions, worst, explained = _recomputed(
        phase, embeddings, tasks, engine, lambda done: progress(done, of)
    )
    yield Verdict(
        status=Status.RECOMPUTED,
        sentence=f"all {len(tasks)} x {phase.protocol.folds} fold scores were recomputed; {_differences(worst, explained)}",
        submissions=submissions,
    )


def _recomputed(
    phase: RevealedPhase,
    embeddings: Embeddings,
    tasks: Sequence[Task],
    engine: str,
    progress: Callable[[int], None],
) -> tuple[tuple[int, ...], float, int]:
    """Recompute the scores of a content; return the submissions that have them, and the differences as :func:`compare_folds` does.

    Raises:
        CheckEnded: If no record has this content, these tasks and the phase's protocol, or the scores differ.
    """
    versions = {task.name: task.version for task in tasks}
    records = [
        record
        for record in phase.records_of(embeddings.content_hash)
        if record.versions == versions and record.protocol == phase.protocol.hash
    ]
    if not records:
        raise CheckEnded(
            "it was scored on tasks that have since changed, and their labels are not published: its scores cannot be recomputed",
            Status.BELIEVED,
        )
    device, promise = make_engine(engine), phase.latest
    try:
        card = score_embeddings(
            embeddings, tasks, promise.protocol, promise.key, engine=device, progress=progress
        )
    except ParticipantError as error:
        raise CheckEnded(f"its file cannot be scored ({error.sentence})") from None
    found = [
        compare_folds(phase, task.version, record.protocol, task.folds, record.cells[task.task].folds)
        for record in records
        for task in card.tasks
    ]
    worst = max(off for off, _ in found)
    require(worst <= TOLERANCE, f"the published scores do not follow from this file (off by {worst:.2g})")
    return tuple(sorted({record.submission for record in records})), worst, sum(count for _, count in found)


def _differences(worst: float, explained: int) -> str:
    if not explained:
        return f"the largest difference is {worst:.1e}"
    scores = count_of(explained, "score")
    return f"in {scores} of F1, one sample at the threshold counts differently, and the largest other difference is {worst:.1e}"


def published_tasks(phase: RevealedPhase) -> tuple[Task, ...]:
    """Return the tasks of the published labels, which are those of the last board.

    Raises:
        CheckEnded: If there are no labels, or the board was closed before the tasks or the protocol changed.
    """
    if not phase.with_labels:
        raise CheckEnded(
            "only hashes of the labels are published: the scores cannot be recomputed", Status.BELIEVED
        )
    shown = phase.replay.decisions.at(phase.replay.ends_at)
    if shown is None or (shown.protocol, shown.tasks) != (phase.protocol.hash, phase.manifest.versions):
        raise CheckEnded(
            "the board was closed before its tasks or its protocol changed: its scores cannot be recomputed",
            Status.BELIEVED,
        )
    return phase.tasks
