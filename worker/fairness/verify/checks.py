"""The checks, one after the other: does everything that a public repository shows follow from what was committed to?

Nothing is believed because it is written; what has to be believed is named. A document that cannot be read is a contradiction, not an
accident: its publisher has the software that writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

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
"""What is checked of a revealed phase, in the order in which it was promised."""


def verdicts(repository: PublicRepository) -> Iterator[Verdict]:
    """Check everything that the repository alone can tell: of the challenge, then of one phase after the other."""
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
    with suppress(*UNREADABLE):  # which was said already
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
            f"Lines {lost[0]} to {lost[-1]} of the public log cannot be opened: according to the organizers, their keys"
            f" were lost when the state was restored from a backup. What these {len(lost)} lines hold is taken on trust.",
        )
    if earlier := sum(line["format"] != receipts.FORMAT for line in chain):
        yield believed(
            "register",
            f"{earlier} lines of the public log are in format 1 and cannot be opened: what they hold is taken on trust.",
        )
    told = f"{sum(left.values())} entries in {len(left)} lines of the public log"
    if not left:
        where = "Every other entry" if lost else "Every entry"
        yield consistent("register", f"{where} of the public log was opened.")
    elif len(later) == len(left):
        yield not_revealed("register", f"{told} were made after the last reveal and have not been opened.")
    elif waiting:
        yield not_revealed(
            "register",
            f"{told} have not been opened: phase {', '.join(waiting)} was changed after its reveal.",
        )
    elif len(revealed) < len(names):
        yield not_revealed(
            "register",
            f"{told} have not been opened: they belong to phases that have not been revealed, or are padding.",
        )
    else:
        yield contradicted(
            "register", f"{told} have not been opened, although every phase has been revealed."
        )
