"""Pseudonyms: the name of a team that asked for it is published no more, and what was registered about it can still be checked.

The register goes on with the pseudonym. Of what it holds from before, the reveal opens everything but the name; the hash of that stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from worker.fairness import events
from worker.state import Transaction

RENAMED = "renamed"
"""What the note in the register says of it; only with this note a name may stay hidden."""
NAMES = ("team", "method")
"""The fields that may hold a team's name. Of a participant's submission neither decides a board."""
FACT = "pseudonyms"


def pseudonyms(tx: Transaction) -> dict[int, str]:
    """Return the teams whose names were removed: EvalAI's number of the team to its pseudonym."""
    return {int(team): name for team, name in json.loads(tx.fact(FACT) or "{}").items()}


def add(tx: Transaction, team_key: int, pseudonym: str) -> None:
    """Let a team be called by a pseudonym from now on, whatever EvalAI says."""
    tx.set_fact(FACT, json.dumps({**pseudonyms(tx), team_key: pseudonym}))


def opened(fields: events.Fields, nonce: bytes, removed: Mapping[int, str]) -> dict[str, Any]:
    """Open an event whole, or all of it but a name that was removed."""
    if "team" not in fields or fields["team"] == removed.get(fields["team_key"], fields["team"]):
        return events.opened(fields, nonce)
    return events.opened_in_part(fields, nonce, fields.keys() - set(NAMES))


def noted(fields: Iterable[events.Fields]) -> dict[int, str]:
    """Return the pseudonyms that the notes of a register tell."""
    return {
        int(note["team_key"]): str(note["pseudonym"])
        for note in fields
        if note["kind"] == events.CHALLENGE and note["what"] == RENAMED
    }


def hidden(opening: Mapping[str, Any], fields: events.Fields) -> tuple[str, ...]:
    """Return the fields that stay hidden of an event that is not private.

    Raises:
        ValueError: If it is more than a name.
    """
    names = tuple(opening.get("hidden", ())) if "submission" in fields else ()
    if not set(names) <= set(NAMES):
        raise ValueError("more than a name is hidden")
    return names


def filled(
    found: Sequence[tuple[str, events.Fields, tuple[str, ...]]],
) -> Iterator[tuple[str, events.Fields]]:
    """Yield commitments and fields of all events of a register, with pseudonyms where names stay hidden.

    Raises:
        LookupError: If no note says that a name was removed.
    """
    removed = noted(fields for _, fields, _ in found)
    for commitment, fields, names in found:
        instead = {"team": removed[fields["team_key"]], "method": None} if names else {}
        yield commitment, {**fields, **{name: instead[name] for name in names}} if names else fields
