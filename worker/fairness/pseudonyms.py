"""Pseudonyms: at a team's request its name is no longer published, while what was registered about it can still be checked.

The register continues with the pseudonym. The reveal opens its earlier events except for the name, of which only the hash is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from worker.fairness import events
from worker.state import Transaction

NAMES = ("team", "method")
"""The fields that may contain a team's name. For a participant's submission, neither decides a board."""
FACT = "pseudonyms"


def pseudonyms(tx: Transaction) -> dict[int, str]:
    """Return the teams whose names were removed: EvalAI's number of the team to its pseudonym."""
    return {int(team): name for team, name in json.loads(tx.fact(FACT) or "{}").items()}


def add(tx: Transaction, team_key: int, pseudonym: str) -> None:
    """Use a pseudonym for a team from now on, whatever EvalAI calls it."""
    tx.set_fact(FACT, json.dumps({**pseudonyms(tx), team_key: pseudonym}))


def opened(fields: events.Fields, nonce: bytes, removed: Mapping[int, str]) -> dict[str, Any]:
    """Open all fields of an event, except a name that was removed."""
    if "team" not in fields or fields["team"] == removed.get(fields["team_key"], fields["team"]):
        return events.opened(fields, nonce)
    return events.opened_in_part(fields, nonce, fields.keys() - set(NAMES))


def hidden(opening: Mapping[str, Any], fields: events.Fields) -> tuple[str, ...]:
    """Return the hidden fields of an event that is not private.

    Raises:
        ValueError: If they include more than a name.
    """
    names = tuple(opening.get("hidden", ())) if "submission" in fields else ()
    if not set(names) <= set(NAMES):
        raise ValueError("more than a name is hidden")
    return names


def filled(fields: events.Fields, names: Iterable[str], removed: Mapping[int, str]) -> dict[str, Any]:
    """Return an event's fields with the team's pseudonym in place of hidden names.

    Raises:
        LookupError: If no note says that the team's name was removed.
    """
    instead = {"team": removed[fields["team_key"]], "method": None}
    return {**fields, **{name: instead[name] for name in names}}
