"""Draws: a commitment names a public value that nobody can know yet, which is mixed into a phase's splits once it exists.

So the organizers cannot choose the splits: when they commit to tasks and secret, nobody knows the value, and when it is known, both are
fixed. A phase whose value does not exist yet is not scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from worker.challenge import sections
from worker.fairness.drand import Chain

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

Entry = Mapping[str, Any]
"""A public entry of the list of commitments."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """A named value.

    Attributes:
        phase: The phase whose splits it decides.
        sequence: Number of the commitment that names it.
        source: Who will publish it, in words.
        at: When it will be published.
        round: Its number at drand; None for another source.
        chain: drand's chain; None for another source.
    """

    phase: str
    sequence: int
    source: str
    at: datetime
    round: int | None
    chain: Chain | None


def alert_key(phase: str) -> str:
    """Return the key of the alert that a phase waits for a value that the organizer must enter."""
    return f"{AWAITED}:{phase}"


def name(rule: str, chain: Chain, now: datetime, *, notice: timedelta = NOTICE) -> dict[str, Any] | None:
    """Name a value that does not exist yet; return its name as a commitment contains it.

    Args:
        rule: ``none``, ``drand`` or ``SOURCE@TIME``.
        chain: The chain of ``drand``.
        now: The time.
        notice: How long before its moment a round is named.
    """
    if rule == NONE:
        return None
    if rule == DRAND:
        number = chain.round_after(now + notice)
        at = chain.made_at(number).isoformat()
        return {"source": chain.name, "at": at, "round": number, "chain": chain.to_json()}
    source, moment = sections.read_source(rule)
    return {"source": source, "at": moment.isoformat(), "round": None, "chain": None}


def named(entry: Entry, phase: str) -> Draw | None:
    """Return the value that an entry names for a phase."""
    found = entry["draws"].get(phase)
    if found is None:
        return None
    return Draw(
        phase=phase,
        sequence=entry["sequence"],
        source=found["source"],
        at=datetime.fromisoformat(found["at"]),
        round=found["round"],
        chain=None if found["chain"] is None else Chain(**found["chain"]),
    )


def drawn(entry: Entry, phase: str) -> Mapping[str, Any] | None:
    """Return what an entry publishes about the value that was named for a phase: the value and drand's signature."""
    found: Mapping[str, Any] | None = entry["drawn"].get(phase)
    return found


def waiting(entries: Iterable[Entry]) -> dict[str, Draw]:
    """Return the phases whose value is named but not mixed in yet, according to the public commitments."""
    open_ones: dict[str, Draw] = {}
    for entry in entries:
        for phase in entry["draws"]:
            if (draw := named(entry, phase)) is not None:
                open_ones[phase] = draw
        for phase in entry["drawn"]:
            open_ones.pop(phase, None)
    return open_ones


def in_words(seconds: float) -> str:
    """Return a length of time in its largest whole unit, such as "10 minutes"."""
    for unit, length_s in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length_s and seconds % length_s == 0:
            number = round(seconds / length_s)
            return f"{number} {unit}{'' if number == 1 else 's'}"
    return f"{seconds:g} seconds"
