"""The verdict: does a public repository show a fair challenge?

Everything is recomputed from what was published; nothing is believed because it is written. A document that cannot be read is a lie, not an
accident: whoever publishes it has the software that writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from worker.fairness import commitments, receipts
from worker.fairness.verify import ledger, opening, standings
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.revealed import UNREADABLE, RevealedPhase, revealed_phases
from worker.fairness.verify.verdict import Verdict, false, unknown

PHASE_CHECKS: Mapping[str, Callable[[RevealedPhase], Verdict]] = {
    "commitment": opening.commitment,
    "splits": opening.splits,
    "labels": opening.labels,
    "ids": opening.ids,
    "scores": ledger.scores,
    "ranks": standings.ranks,
    "board": standings.files,
}
"""What is checked of a revealed phase, in the order in which it was promised."""


def verdicts(repository: PublicRepository) -> Iterator[Verdict]:
    """Check everything that the repository alone can tell."""
    try:
        yield from ledger.history(repository)
    except UNREADABLE as error:
        yield false(
            "history", f"An earlier version of a public file cannot be read ({type(error).__name__})."
        )
    entries = _commitments(repository)
    if not entries:
        yield false("commitment", "There is no commitment.json: nothing was fixed at the start.")
        return
    yield opening.sequence(entries)
    chain = list(repository.lines(receipts.PATH))
    yield ledger.chain(chain)
    phases = revealed_phases(repository)
    if not phases:
        yield unknown(
            "reveal", "No phase has been revealed yet: tasks, splits and scores cannot be checked so far."
        )
    for name in phases:
        phase = RevealedPhase(repository, name, entries, chain)
        for check, look in PHASE_CHECKS.items():
            try:
                yield look(phase)
            except UNREADABLE as error:
                yield phase.false(check, f"the revealed document cannot be read ({type(error).__name__})")


def _commitments(repository: PublicRepository) -> list[dict[str, Any]]:
    try:
        entries = repository.json(commitments.PATH)
    except UNREADABLE:
        return []
    return entries if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries) else []
