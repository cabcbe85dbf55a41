"""Checks of the register: committed to as it happened, nothing left out, and every board follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TypeGuard

from scoring.printable import all_of, count_of
from worker.fairness import events, receipts
from worker.fairness.receipts import Line
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

SLACK = timedelta(minutes=15)  # of a push
SECOND = timedelta(seconds=1)  # a batch's time has whole seconds
CADENCES = 3  # intervals after which a batch is late or overdue


def in_the_log(phase: RevealedPhase) -> Verdict:
    """Check that every event was published as a commitment, in the batch that was due after it."""
    lines = {entry: line for line in phase.chain for entry in line.entries}
    every = receipts.cadence(phase.public)
    lost, late, longest = receipts.lost_lines(phase.chain), 0, timedelta()
    for commitment, event in phase.events:
        line, moment = lines.get(commitment), event.at
        told = f"the event {event.kind} of {moment.isoformat()}"
        if line is None:
            return phase.contradicted("register", f"{told} is not in the public log")
        number = line.sequence
        if moment > line.made_at + SECOND:
            return phase.contradicted(
                "register", f"{told} is in a batch that was made before the event happened"
            )
        before = phase.chain[number - 2] if number > 1 and number - 1 not in lost else None
        if before is not None and moment < before.made_at:
            return phase.contradicted("register", f"{told} was left out of the next batch")
        if _is_restore(event) and number != (event.last or 0) + 1:
            return phase.contradicted("register", f"{told} names other lines than those right before it")
        waited = line.made_at - moment
        if waited > CADENCES * every:
            late, longest = late + 1, max(longest, waited)
    if phase.chain and phase.revealed_at > phase.chain[-1].made_at + SLACK:
        return phase.contradicted(
            "register", "the reveal is dated later than the last line of the public log"
        )
    number = len(phase.events)
    told = f"{all_of(number, 'event')} of its register {'is' if number == 1 else 'are'} in the public log, each in the next batch"
    if late:
        hours = longest.total_seconds() / 3600
        return phase.believed(
            "register",
            f"{told}; but {late} of them {'was' if late == 1 else 'were'} published up to {hours:.0f} hours later than announced:"
            " the times that they give are taken on trust",
        )
    return phase.consistent("register", told)


def _is_restore(event: events.Event) -> TypeGuard[events.ChallengeEvent]:
    return isinstance(event, events.ChallengeEvent) and event.what == events.RESTORED


def private(phase: RevealedPhase) -> Verdict:
    """Report the number of entries that are shown only to exist."""
    number = len(phase.fold.private)
    if not number:
        return phase.consistent("private", "every registered entry was opened")
    return phase.believed(
        "private",
        f"{count_of(number, 'entry was', 'entries were')} opened only in part (private, refused, or a trial by the organizers): whose they"
        " are and what they scored is taken on trust. With a receipt, participants can check their own",
    )


def unopened(chain: Sequence[Line], phases: Iterable[RevealedPhase]) -> dict[int, int]:
    """Count in each line of the log the entries that nothing opens: neither an event nor a filler entry."""
    opened: set[str] = set()
    fillers: dict[int, str] = {}
    lost = receipts.lost_lines(chain)
    for phase in phases:
        opened |= {commitment for commitment, _ in phase.events}
        fillers |= {int(line): key for line, key in (phase.document.fillers or {}).items()}
    left = {}
    for line in chain:
        number, entries = line.sequence, line.entries
        if number in lost:
            continue
        key = bytes.fromhex(fillers[number]) if number in fillers else None
        filling = set() if key is None else {receipts.filler(key, place) for place in range(len(entries))}
        if count := sum(entry not in opened and entry not in filling for entry in entries):
            left[number] = count
    return left
