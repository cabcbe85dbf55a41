"""Draws: a commitment names a round of drand that nobody can know yet; its value is mixed into a phase's splits once it exists.

So the organizers cannot choose the splits: when they commit to tasks and secret, nobody knows the value, and when it is known, both are
fixed. A phase whose value does not exist yet is not scored.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from worker.fairness.drand import Chain
from worker.fairness.manifests import AnnouncedRound, CommitmentBody

WITHOUT = (
    "fairness.beacon is none, so the person who made the secret could have tried many and kept one that favors a team. `verify` will"
    " say so."
)
CHOOSE_DRAND = "Set fairness.beacon: drand before the first phase begins, if this machine can reach a drand server or a mirror."


class Draw(AnnouncedRound):
    """A named round, with the phase whose splits it decides, and the number of the commitment that names it."""

    phase: str
    sequence: int


def next_round(chain: Chain, moment: datetime) -> AnnouncedRound:
    """Name the first round that is made at a moment or later."""
    return AnnouncedRound(chain=chain, round=chain.round_after(moment))


def named(entry: CommitmentBody, phase: str) -> Draw | None:
    """Return the round that an entry names for a phase."""
    draw = entry.draws.get(phase)
    return None if draw is None else Draw(phase=phase, sequence=entry.sequence, **dict(draw))


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
