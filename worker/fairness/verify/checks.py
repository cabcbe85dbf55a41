"""The checks in their order: whether everything in a public repository follows from what was committed to.

Nothing is trusted because it is written there; what has to be trusted is named. A document that cannot be read counts as a contradiction,
because its publisher has the software that writes it correctly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from scoring.printable import count_of
from worker.fairness import receipts
from worker.fairness.verify import ledger, opening, plausible, signed, standings, timeline
from worker.fairness.verify import registered as registered_checks
from worker.fairness.verify.beliefs import beliefs
from worker.fairness.verify.pages import page_verdicts
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.revealed import (
    UNREADABLE,
    RevealedPhase,
    phases,
    public_commitments,
    read_phase,
    revealed_phases,
)
from worker.fairness.verify.verdict import Verdict, believed, consistent, contradicted, not_revealed

PHASE_CHECKS: Mapping[str, Callable[[RevealedPhase], Verdict]] = {
    "commitment": opening.commitment,
    "splits": opening.splits,
    "labels": opening.labels,
    "ids": opening.ids,
    "scores": ledger.scores,
    "possible": plausible.possible,
    "ranks": standings.ranks,
    "board": standings.files,
}
"""The checks of a revealed phase, in the order of what was promised."""


def verdicts(repository: PublicRepository) -> Iterator[Verdict]:
    """Yield everything that can be checked with the repository alone: the challenge first, then each phase."""
    yield from ledger.history(repository)
    entries = public_commitments(repository)
    if not entries:
        yield contradicted("commitment", "There is no commitment.json: the organizers committed to nothing.")
        return
    yield opening.sequence(entries)
    if (order := ledger.order(repository, entries)) is not None:
        yield order
    chain = list(repository.lines(receipts.PATH))
    yield ledger.chain(chain, entries)
    yield from signed.signatures(entries, chain)
    yield from signed.sealed(repository, entries)
    revealed = {name: read_phase(repository, name) for name in revealed_phases(repository)}
    if (found := timeline.times(repository, revealed)) is not None:
        yield found
    yield from _nothing_left_out(chain, revealed, phases(repository))
    for name in phases(repository):
        if (found := opening.id_list(repository, entries, name)) is not None:
            yield found
        if name in revealed:
            yield from _of_phase(revealed[name], revealed)
        else:
            yield not_revealed(
                "reveal", "Not revealed: tasks, splits, scores and ranks cannot be checked.", phase=name
            )
    yield from page_verdicts(repository, revealed, entries)


def _of_phase(phase: RevealedPhase, revealed: Mapping[str, RevealedPhase]) -> Iterator[Verdict]:
    for check, look in PHASE_CHECKS.items():
        try:
            yield look(phase)
        except UNREADABLE as error:
            yield phase.contradicted(check, f"the revealed document cannot be read ({type(error).__name__})")
    yield from _registered(phase, revealed)
    with suppress(*UNREADABLE):  # which was reported already
        yield from beliefs(phase)


def _registered(phase: RevealedPhase, revealed: Mapping[str, RevealedPhase]) -> Iterator[Verdict]:
    try:
        if not phase.is_registered and phase.needs_register:
            yield phase.contradicted("register", "its register was not revealed")
            return
        if not phase.is_registered:
            yield phase.believed(
                "register",
                (
                    "revealed in format 1, which does not show whether an entry was left out, hidden or removed: this is taken"
                    " on trust"
                ),
            )
            return
        others = {name: other for name, other in revealed.items() if other.is_registered}
    except UNREADABLE as error:
        yield phase.contradicted("register", f"the register cannot be read ({type(error).__name__})")
        return
    yield from registered_checks.checks(phase, others)


def _nothing_left_out(
    chain: list[dict[str, Any]], revealed: Mapping[str, RevealedPhase], names: list[str]
) -> Iterator[Verdict]:
    """Check that the whole log was opened, once every phase is revealed."""
    try:
        registered = [phase for phase in revealed.values() if phase.is_registered]
        if not registered:
            return
        left, lost = registered_checks.unopened(chain, registered), sorted(receipts.lost_lines(chain))
        ended = max(phase.revealed_at for phase in registered)
        waiting = sorted(phase.name for phase in registered if phase.waits)
        later = {number for number in left if datetime.fromisoformat(chain[number - 1]["made_at"]) > ended}
    except UNREADABLE as error:
        yield contradicted("register", f"The register cannot be read ({type(error).__name__}).")
        return
    if lost:
        yield believed(
            "register",
            f"{count_of(len(lost), 'line')} of the public log (from line {lost[0]} to line {lost[-1]}) cannot be opened: according to the"
            " organizers, the keys were lost when the state was restored from a backup. The content is taken on trust.",
        )
    if earlier := sum(line["format"] != receipts.FORMAT for line in chain):
        yield believed(
            "register",
            f"{count_of(earlier, 'line of the public log is', 'lines of the public log are')} in format 1 and cannot be opened."
            " The content is taken on trust.",
        )
    number = sum(left.values())
    told = (
        f"{count_of(number, 'entry', 'entries')} in {count_of(len(left), 'line')} of the public log"
        f" {'has' if number == 1 else 'have'} not been opened"
    )
    if not left:
        where = "Every other entry" if lost else "Every entry"
        yield consistent("register", f"{where} of the public log was opened.")
    elif len(later) == len(left):
        yield not_revealed("register", f"{told}, because the last reveal was earlier.")
    elif waiting:
        yield not_revealed(
            "register",
            f"{told}: phase {', '.join(waiting)} was changed after its reveal.",
        )
    elif len(revealed) < len(names):
        yield not_revealed(
            "register",
            f"{told}: not all phases have been revealed, and some entries may be padding.",
        )
    else:
        yield contradicted("register", f"{told}, although every phase has been revealed.")
