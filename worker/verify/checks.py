"""The checks in their order: whether everything in a public repository follows from what was committed to.

Nothing is trusted because it is written there; what has to be trusted is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from worker.verify import earlier, facts, opening, registered, timeline
from worker.verify.decisions import decisions
from worker.verify.pages import page
from worker.verify.public import PublicRepository
from worker.verify.revealed import RevealedPhase, read_reveals
from worker.verify.verdict import Status, Verdict, contradicted, judged, not_revealed

_CHECKS: Mapping[str, Callable[[RevealedPhase], Verdict | Iterator[Verdict] | None]] = {
    "commitment": opening.commitment,
    "splits": opening.splits,
    "fixed": opening.fixed,
    "labels": opening.labels,
    "scores": facts.scores,
    "possible": facts.possible,
    "boards": registered.boards_follow,
    "decisions": decisions,
    "register": registered.in_the_log,
    "facts": facts.belong,
    "received": facts.received,
    "places": facts.placed,
    "private": registered.private,
    "beacon": opening.drawn,
}
"""The checks of a revealed phase, in the order of what was promised."""


def verdicts(repository: PublicRepository, now: datetime | None = None) -> Iterator[Verdict]:
    """Yield everything that can be checked with the repository alone: the challenge first, then each phase.

    In a repository without a signed commit, nothing shows who has published what contradicts itself.
    """
    is_unsigned = repository.commit is not None and repository.history.key is None
    for verdict in _verdicts(repository, now or datetime.now(UTC)):
        is_anybodys = is_unsigned and verdict.status is Status.CONTRADICTED
        yield replace(verdict, status=Status.CHANGED) if is_anybodys else verdict


def _verdicts(repository: PublicRepository, now: datetime) -> Iterator[Verdict]:
    yield from judged("signed", timeline.signature, repository)
    yield from judged("tip", timeline.tip, repository)
    yield from judged("history", timeline.history, repository)
    yield from judged("commitment", opening.sequence, repository)
    if not repository.commitments:
        return
    yield from judged("order", timeline.order, repository)
    yield from judged("receipts", timeline.log, repository)
    yield from judged("signatures", timeline.signatures, repository)
    reveals = read_reveals(repository)
    yield from judged("times", timeline.times, repository, now)
    if reveals.phases:
        yield from judged("register", registered.nothing_left_out, repository, reveals.phases.values())
    for name in repository.phases:
        yield from judged("ids", opening.ids, repository, name, phase=name)
        yield from judged(
            "earlier", earlier.documents, repository, name, reveals.phases.get(name), phase=name
        )
        for check, look in _CHECKS.items() if name in reveals.phases else ():
            yield from judged(check, look, reveals.phases[name], phase=name)
        if name in reveals.malformed:
            yield from judged("reveal", contradicted, reveals.malformed[name], phase=name)
        elif name not in reveals.phases:
            sentence = "not revealed: tasks, splits, scores and ranks cannot be checked"
            yield from judged("reveal", not_revealed, sentence, phase=name)
    if not reveals.malformed:
        yield from judged("page", page, repository, reveals.phases)
