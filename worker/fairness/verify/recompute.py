"""Recompute a submission from the revealed labels, and compare it fold by fold."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from scoring.engines import TOLERANCE, make_engine
from scoring.errors import NeucoError, ParticipantError
from scoring.evaluate import score_embeddings
from scoring.inputs.embeddings import Embeddings
from scoring.inputs.submission import read_submission
from scoring.tasks import Task, load_tasks
from worker.fairness.events import ScoreEvent
from worker.fairness.verify.facts import largest_difference
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.revealed import RevealedPhase, read_reveals
from worker.fairness.verify.verdict import Verdict, Worth, believed
from worker.fairness.verify.witness import Scored

EXPANDED_BYTES = 8_000_000_000
ENGINES = {"default": "local", "pytorch": "torch"}
YOURS = "your submission"
Progress = Callable[[int, int], None]


class Unusable(Exception):
    """Scores cannot be recomputed, or differ; the message says why.

    Attributes:
        is_lie: Whether that counts against the organizers.
    """

    def __init__(self, sentence: str, *, is_lie: bool = False) -> None:
        super().__init__(sentence)
        self.is_lie = is_lie

    def verdict(self, phase: RevealedPhase, check: str, who: str = "") -> Verdict:
        """Return it as the verdict on somebody's file."""
        return (phase.contradicted if self.is_lie else phase.believed)(check, f"{who}{self}")


def submission_verdicts(
    repository: PublicRepository,
    file: Path,
    *,
    engine: str,
    progress: Progress = lambda _done, _of: None,
    scored: Sequence[Scored] = (),
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
    refused: list[ParticipantError] = []
    valid: list[RevealedPhase] = []
    known, phases = False, list(read_reveals(repository).phases.values())
    for phase in phases:
        try:
            embeddings = read_submission(
                file, phase.ids, phase.protocol.embedding_dim, max_expanded_bytes=EXPANDED_BYTES
            )
            records = phase.records_of(embeddings.content_hash)
            if other := _other_entry(
                embeddings, records, [entry for entry in scored if entry.phase == phase.name]
            ):
                yield phase.believed(check, other)
            if not records:
                valid.append(phase)
                continue
            known = True
            yield _recomputed(phase, embeddings, check, engine=engine, progress=progress)
        except Unusable as error:
            yield error.verdict(phase, check)
        except ParticipantError as error:
            refused.append(error)
    if refused and len(refused) == len(phases):
        raise refused[0]
    for phase in valid if not known else ():
        yield phase.believed(
            check,
            "the file is valid, but no open entry of the register has its content: either the submission is private, or nothing about it"
            " was registered. If EvalAI lists it as public and finished, show that to the organizers",
        )
    if not phases:
        yield believed(check, "No phase has been revealed yet, so the file cannot be judged.")


def _other_entry(
    embeddings: Embeddings, records: Sequence[ScoreEvent], scored: Sequence[Scored]
) -> str | None:
    """Report if none of the receipts that were given with a file belongs to its content."""
    if not scored or any(one.content_hash == embeddings.content_hash for one in scored):
        return None
    promised = ", ".join(str(one.submission) for one in scored)
    held = ", ".join(str(record.submission) for record in records)
    has = f"it has the content of submission {held}" if held else "no published entry has its content"
    return (
        f"the receipt and the file do not belong together: the receipt is of submission {promised}; as for the file,"
        f" {has}"
    )


def _recomputed(
    phase: RevealedPhase, embeddings: Embeddings, check: str, *, engine: str, progress: Progress
) -> Verdict:
    tasks = published_tasks(phase)
    of = len(tasks) * phase.protocol.folds
    records, worst = recomputed(
        phase, embeddings, tasks, engine=engine, progress=lambda done: progress(done, of)
    )
    return Verdict(
        phase=phase.name,
        check=check,
        worth=Worth.RECOMPUTED,
        sentence=f"All {len(tasks)} x {phase.protocol.folds} fold scores were recomputed; the largest difference is {worst:.1e}.",
        submissions=tuple(sorted({record.submission for record in records})),
    )


def recomputed(
    phase: RevealedPhase,
    embeddings: Embeddings,
    tasks: Sequence[Task],
    *,
    engine: str,
    progress: Callable[[int], None],
) -> tuple[list[ScoreEvent], float]:
    """Recompute scores; return the records of this content, these tasks and the phase's protocol, and the largest difference from them.

    Raises:
        Unusable: If there is no such record, or the scores differ.
        ParticipantError: If these embeddings cannot be scored.
    """
    versions = {task.name: task.version for task in tasks}
    records = [
        record
        for record in phase.records_of(embeddings.content_hash)
        if record.versions == versions and record.protocol == phase.protocol.hash
    ]
    if not records:
        raise Unusable(
            "it was scored on tasks that have since changed, and their labels are not published: its scores cannot be recomputed"
        )
    key, device = phase.latest.splits_key(phase.key), make_engine(ENGINES[engine])
    card = score_embeddings(embeddings, tasks, phase.protocol, key, engine=device, progress=progress)
    worst = max(
        largest_difference(task.folds, record.cells[task.task].folds)
        for record in records
        for task in card.tasks
    )
    if worst > TOLERANCE:
        raise Unusable(f"the published scores do not follow from this file (off by {worst:.2g})", is_lie=True)
    return records, worst


def published_tasks(phase: RevealedPhase) -> tuple[Task, ...]:
    """Read the tasks from the published labels, with the version numbers of their packages.

    Raises:
        Unusable: If there are no labels, or they are not valid tasks.
    """
    if not phase.with_labels:
        raise Unusable("only hashes of the labels were released: the scores cannot be recomputed")
    with tempfile.TemporaryDirectory() as temporary:
        for name, content in phase.label_files.items():
            (Path(temporary) / Path(name).name).write_bytes(content)
        try:
            tasks = load_tasks(Path(temporary), phase.ids)
        except NeucoError:
            raise Unusable("the published labels cannot be read", is_lie=True) from None
    packages = {task.identifier: task.package for task in phase.manifest.tasks}
    return tuple(task.of_package(packages[task.name]) for task in tasks)
