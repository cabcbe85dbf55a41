"""Draws: a commitment names a public value that nobody can know yet, which is mixed into a phase's splits once it exists.

So the organizers cannot choose the splits: when they commit to tasks and secret, nobody knows the value, and when it is known, both are
fixed. A phase whose value does not exist yet is not scored.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from worker.challenge import sections
from worker.fairness.drand import Chain
from worker.fairness.manifests import AnnouncedValue, CommitmentBody

NONE, DRAND = "none", "drand"
AWAITED = "beacon.awaited"
"""Code of the alert that the organizer must enter a value."""
NOTICE = timedelta(minutes=10)
"""How long before its moment a value is named, so that the commitment is published before the value exists."""
WITHOUT = (
    "fairness.beacon is none, so the person who made the secret could have tried many and kept one that favors a team. `verify` will"
    " say so."
)
CHOOSE_ONE = "Set fairness.beacon: drand, or SOURCE@TIME if this machine cannot reach drand, before the first phase begins."


class Draw(AnnouncedValue):
    """A named value, with the phase whose splits it decides, and the number of the commitment that names it."""

    phase: str
    sequence: int


def alert_key(phase: str) -> str:
    """Return the key of the alert that a phase waits for a value that the organizer must enter."""
    return f"{AWAITED}:{phase}"


def name(rule: str, chain: Chain, now: datetime, *, notice: timedelta = NOTICE) -> AnnouncedValue | None:
    """Name a value that does not exist yet.

    Args:
        rule: ``none``, ``drand`` or ``SOURCE@TIME``.
        chain: The chain of ``drand``.
        now: The time.
        notice: How long before its moment a round is named.
    """
    if rule == NONE:
        return None
    if rule == DRAND:
        return next_round(chain, now + notice)
    source, moment = sections.read_source(rule)
    return AnnouncedValue(source=source, at=moment, round=None, chain=None)


def next_round(chain: Chain, moment: datetime) -> AnnouncedValue:
    """Name the first round that is made at a moment or later."""
    number = chain.round_after(moment)
    return AnnouncedValue(source=chain.name, at=chain.made_at(number), round=number, chain=chain)


def named(entry: CommitmentBody, phase: str) -> Draw | None:
    """Return the value that an entry names for a phase."""
    value = entry.draws.get(phase)
    return None if value is None else Draw(phase=phase, sequence=entry.sequence, **dict(value))


def waiting(entries: Iterable[CommitmentBody]) -> dict[str, Draw]:
    """Return the phases whose value is named but not mixed in yet, according to the public commitments."""
    open_ones: dict[str, Draw] = {}
    for entry in entries:
        open_ones |= {phase: draw for phase in entry.draws if (draw := named(entry, phase)) is not None}
        open_ones = {phase: draw for phase, draw in open_ones.items() if phase not in entry.drawn}
    return open_ones


def in_words(seconds: float) -> str:
    """Return a length of time in its largest whole unit, such as "10 minutes"."""
    for unit, length_s in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length_s and seconds % length_s == 0:
            number = round(seconds / length_s)
            return f"{number} {unit}{'' if number == 1 else 's'}"
    return f"{seconds:g} seconds"
