"""Published contents: check that everything promised is there, and that the scores follow from it.

Every content is recomputed, one at a time on all cores, so that only one is in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from scoring.errors import ParticipantError
from scoring.inputs.embeddings import Embeddings, canonical_bytes
from scoring.printable import count_of
from scoring.tasks import Task
from worker.fairness import disclosure
from worker.fairness.disclosure import Files, PublishedFile
from worker.fairness.documents import Malformed, read
from worker.fairness.verify.public import Contents, PublicRepository
from worker.fairness.verify.recompute import Unusable, published_tasks, recomputed
from worker.fairness.verify.revealed import RevealedPhase, read_reveals
from worker.fairness.verify.verdict import Verdict, Worth

CHECK = "files"
Progress = Callable[[int, int], None]


@dataclass
class _Plan:
    """What must be recomputed for one phase, and the verdicts before that."""

    phase: RevealedPhase
    verdicts: list[Verdict] = field(default_factory=list)
    files: list[PublishedFile] = field(default_factory=list)
    tasks: tuple[Task, ...] = ()

    @property
    def folds(self) -> int:
        return len(self.files) * len(self.tasks) * self.phase.protocol.folds if self.files else 0


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
    plans = [_plan(phase, recompute=recompute) for phase in read_reveals(repository).phases.values()]
    of = sum(plan.folds for plan in plans)
    for plan in plans:
        yield from plan.verdicts
        if plan.files:
            yield from _computed(
                plan, repository.contents, engine=engine, progress=lambda done: progress(done, of)
            )


def _plan(phase: RevealedPhase, *, recompute: bool) -> _Plan:
    plan = _Plan(phase)
    try:
        _promised(plan)
        number = len(plan.files)
        if number and not recompute:
            raise Unusable(
                f"the scores of {count_of(number, 'published file')} were not recomputed, because of --no-recompute"
            )
        plan.tasks = published_tasks(phase) if number else ()
        return plan
    except Unusable as error:
        plan.verdicts.append(error.verdict(phase, CHECK))
    except Malformed as fault:
        plan.verdicts.append(phase.contradicted(CHECK, str(fault)))
    plan.files = []
    return plan


def _promised(plan: _Plan) -> None:
    """Compare the list of published contents with the committed rule and with the register."""
    phase, path = plan.phase, disclosure.path(plan.phase.name)
    rule = disclosure.rule_of(phase.public, phase.name)
    if phase.fold.unknown_phase is not None:  # so the order of the board is not known
        rule = disclosure.BASELINES
    listed = read(Files, phase.repository.files.get(path, b""), path)
    files = {file.submission: file for file in listed.files}
    left_out = {file.submission: file.reason for file in listed.left_out}
    rows = [(row.submission, row.baseline) for row in phase.boards[-1].standings] if phase.boards else []
    baselines = {submission for submission, is_baseline in rows if is_baseline}
    for submission in disclosure.due(rule, rows):
        who = f"{'baseline, ' if submission in baselines else ''}submission {submission}"
        if submission in files:
            continue
        if submission in left_out:
            told = f"the file of {who}, is not published, and its scores are taken on trust: {left_out[submission]}"
            plan.verdicts.append(phase.believed(CHECK, told))
        else:
            told = f"the file of {who}, should have been published ({rule}), but is missing"
            plan.verdicts.append(phase.contradicted(CHECK, told))
    for submission, file in files.items():
        if file.content in {record.content for record in phase.records.get(submission, [])}:
            plan.files.append(file)
        else:
            told = f"the file published for submission {submission} is not the one in the register"
            plan.verdicts.append(phase.contradicted(CHECK, told))


def _computed(
    plan: _Plan, contents: Contents, *, engine: str, progress: Callable[[int], None]
) -> Iterator[Verdict]:
    phase, good, worst = plan.phase, set[int](), 0.0
    for file in plan.files:
        who = f"submission {file.submission}: "
        try:
            embeddings = _embeddings(phase, file, contents)
            ours, off = recomputed(phase, embeddings, plan.tasks, engine=engine, progress=progress)
        except Unusable as error:
            yield error.verdict(phase, CHECK, who)
            continue
        except (ParticipantError, ValueError) as error:
            yield phase.contradicted(CHECK, f"{who}its file cannot be scored ({type(error).__name__})")
            continue
        good |= {record.submission for record in ours}
        worst = max(worst, off)
    if good:
        yield Verdict(
            phase=phase.name,
            check=CHECK,
            worth=Worth.RECOMPUTED,
            sentence=f"The scores of {count_of(len(good), 'entry', 'entries')} were recomputed from published files,"
            f" {len(plan.tasks)} x {phase.protocol.folds} folds each; the largest difference is {worst:.1e}.",
            submissions=tuple(sorted(good)),
        )


def _embeddings(phase: RevealedPhase, file: PublishedFile, contents: Contents) -> Embeddings:
    """Join a content from its parts, and read it."""
    pieces: list[bytes] = []
    size = canonical_bytes(phase.ids, phase.protocol.embedding_dim)
    for part in file.parts:
        piece = contents.part(part.name)
        if piece is None:
            raise Unusable(
                f"part {part.name} of its file is not in the repository's branch {disclosure.BRANCH}"
                if contents.complete
                else (
                    f"its file is not in this copy, so its scores are taken on trust; the branch {disclosure.BRANCH} has it"
                    " (--files DIR)"
                ),
                is_lie=contents.complete,
            )
        if hashlib.sha256(piece).hexdigest() != part.sha256:
            raise Unusable(f"part {part.name} of its file has another hash", is_lie=contents.pushed)
        pieces.append(piece)
        if sum(map(len, pieces)) > size:
            raise Unusable("its published file is too large", is_lie=True)
    content = b"".join(pieces)
    if hashlib.sha256(content).hexdigest() != file.content:
        raise Unusable("its published file is not the one in the register", is_lie=True)
    return Embeddings.from_canonical(content, phase.ids, phase.protocol.embedding_dim)
