"""The checks in their order: whether everything in a public repository follows from what was committed to.

Nothing is trusted because it is written there; what has to be trusted is named. A document that cannot be read counts as a contradiction,
because its publisher has the software that writes it correctly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from scoring.printable import count_of
from worker.fairness import commitments, receipts
from worker.fairness.documents import Malformed
from worker.fairness.receipts import Line
from worker.fairness.verify import (
    facts,
    ledger,
    opening,
    registered,
    timeline,
)
from worker.fairness.verify.decisions import decisions
from worker.fairness.verify.drawn import drawn
from worker.fairness.verify.pages import page_verdicts
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.registered import boards_follow
from worker.fairness.verify.revealed import (
    UNREADABLE,
    RevealedPhase,
    phases,
    public_log,
    read_reveals,
)
from worker.fairness.verify.verdict import Verdict, believed, consistent, contradicted, not_revealed

_CHECKS: Mapping[str, Callable[[RevealedPhase], Verdict | None]] = {
    "commitment": opening.commitment,
    "splits": opening.splits,
    "fixed": opening.fixed,
    "labels": opening.labels,
    "ids": opening.ids,
    "scores": ledger.scores,
    "possible": facts.possible,
    "boards": boards_follow,
    "decisions": decisions,
    "register": registered.in_the_log,
    "facts": facts.belong,
    "unscored": facts.unscored,
    "private": registered.private,
    "beacon": drawn,
}
"""The checks of a revealed phase, in the order of what was promised."""


def verdicts(repository: PublicRepository, now: datetime | None = None) -> Iterator[Verdict]:
    """Yield everything that can be checked with the repository alone: the challenge first, then each phase."""
    now = now or datetime.now(UTC)
    yield timeline.signature(repository)
    yield from timeline.tip(repository)
    yield from ledger.history(repository)
    try:
        entries = commitments.read_commitments(repository.files[commitments.PATH])
    except KeyError:
        yield contradicted("commitment", "There is no commitment.json: the organizers committed to nothing.")
        return
    except Malformed as fault:
        yield contradicted("commitment", f"{fault}.")
        return
    yield opening.sequence(entries, now)
    if (order := ledger.order(repository)) is not None:
        yield order
    chain = public_log(repository)
    yield ledger.log(repository, chain, now)
    yield from ledger.signatures(entries, chain)
    revealed, malformed = read_reveals(repository).phases, read_reveals(repository).malformed
    if (found := timeline.times(repository, revealed)) is not None:
        yield found
    if revealed:
        yield from _nothing_left_out(chain, revealed, phases(repository))
    for name in phases(repository):
        if (found := opening.id_list(repository, entries, name)) is not None:
            yield found
        if name in revealed:
            yield from _of_phase(revealed[name])
        elif name in malformed:
            yield contradicted("reveal", f"{malformed[name]}.", phase=name)
        else:
            yield not_revealed(
                "reveal", "Not revealed: tasks, splits, scores and ranks cannot be checked.", phase=name
            )
    if not malformed:
        yield from page_verdicts(repository, revealed)


def _of_phase(phase: RevealedPhase) -> Iterator[Verdict]:
    for check, look in _CHECKS.items():
        try:
            found = look(phase)
        except UNREADABLE as error:
            found = phase.contradicted(
                check, f"the revealed documents cannot be read ({type(error).__name__})"
            )
        if found is not None:
            yield found
    yield from _beliefs(phase)


def _beliefs(phase: RevealedPhase) -> Iterator[Verdict]:
    """Yield what must be trusted about a revealed phase."""
    for team, pseudonym in phase.fold.pseudonyms.items():
        yield phase.believed(
            "names",
            f"“{pseudonym}” is the pseudonym of team number {team}, whose name was removed. The names in older lines of"
            " the history are taken on trust. Its submissions, scores and ranks are checked like all others",
        )
    yield phase.believed(
        "evalai",
        "what only EvalAI knows is taken on trust: who sent each submission and when, whether it was public, and"
        " whether one is missing from the register. Each team can see its own submissions at EvalAI",
    )
    if len(phase.boards) > 1:
        yield phase.believed(
            "groups", "the tie groups and intervals of all boards but the last are taken on trust"
        )


def _nothing_left_out(
    chain: Sequence[Line], revealed: Mapping[str, RevealedPhase], names: list[str]
) -> Iterator[Verdict]:
    """Check that the whole log was opened, once every phase is revealed."""
    left = registered.unopened(chain, revealed.values())
    if lost := sorted(receipts.lost_lines(chain)):
        yield believed(
            "register",
            f"{count_of(len(lost), 'line')} of the public log (from line {lost[0]} to line {lost[-1]}) cannot be opened: according to the"
            " organizers, the keys were lost when the state was restored from a backup. The content is taken on trust.",
        )
    if not left:
        where = "Every other entry" if lost else "Every entry"
        yield consistent("register", f"{where} of the public log was opened.")
        return
    number = sum(left.values())
    sentence = (
        f"{count_of(number, 'entry', 'entries')} in {count_of(len(left), 'line')} of the public log"
        f" {'has' if number == 1 else 'have'} not been opened"
    )
    ended = max(phase.revealed_at for phase in revealed.values())
    waiting = sorted(phase.name for phase in revealed.values() if phase.waits)
    if all(line.made_at > ended for line in chain if line.sequence in left):
        yield not_revealed("register", f"{sentence}, because the last reveal was earlier.")
    elif waiting:
        yield not_revealed(
            "register", f"{sentence}: phase {', '.join(waiting)} was changed after its reveal."
        )
    elif len(revealed) < len(names):
        yield not_revealed(
            "register", f"{sentence}: not all phases have been revealed, and some entries may be padding."
        )
    else:
        yield contradicted("register", f"{sentence}, although every phase has been revealed.")
