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


def waiting(entries: Iterable[CommitmentBody]) -> dict[str, Draw]:
    """Return the phases whose value is named but not mixed in yet, according to the public commitments."""
    open_ones: dict[str, Draw] = {}
    for entry in entries:
        for phase, draw in entry.draws.items():
            open_ones[phase] = Draw(phase=phase, sequence=entry.sequence, **dict(draw))
        open_ones = {phase: draw for phase, draw in open_ones.items() if phase not in entry.drawn}
    return open_ones
