"""Events: what the register holds, and how one is committed to so that it can be opened whole or in part.

An event is a set of named values. Each is hashed under a salt of its own, and the commitment is the hash of these hashes; so an entry
that stays private can be shown to exist without showing whose it is. All salts follow from one nonce, which opens everything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from worker.challenge.canonical import canonical
from worker.fairness.canonical import digest

SUBMISSION = "submission"
"""The facts about a submission that decide whether and how it is on a board; an event each time one of them changes."""
SCORE = "score"
"""What a submission was scored."""
PHASE = "phase"
"""A phase's record, rules and decisions; an event each time one of them changes."""
CHALLENGE = "challenge"
"""What befell the whole challenge, such as a restored backup."""
PUBLIC_FIELDS = ("kind", "phase", "at", "entry")
"""What is opened of an event that stays private."""

Fields = Mapping[str, Any]


def salt(nonce: bytes, field: str) -> bytes:
    """Return the salt of one field."""
    return bytes.fromhex(digest("salt", nonce, field.encode()))


def field_hash(field: str, value: Any, salted: bytes) -> str:
    """Hash one field's name and value under its salt."""
    return digest("field", salted, canonical([field, value]))


def commitment(hashes: Mapping[str, str]) -> str:
    """Return the one hash of an event, from the hashes of its fields."""
    return digest("event", canonical(dict(hashes)))


def commitment_of(fields: Fields, nonce: bytes) -> str:
    """Commit to an event."""
    return commitment({name: field_hash(name, value, salt(nonce, name)) for name, value in fields.items()})


def opened(fields: Fields, nonce: bytes) -> dict[str, Any]:
    """Open an event whole."""
    return {"nonce": nonce.hex(), "fields": dict(fields)}


def opened_in_part(fields: Fields, nonce: bytes, shown: Collection[str] = PUBLIC_FIELDS) -> dict[str, Any]:
    """Open some fields of an event, and show that it has others."""
    return {
        "open": {name: [value, salt(nonce, name).hex()] for name, value in fields.items() if name in shown},
        "hidden": {
            name: field_hash(name, value, salt(nonce, name))
            for name, value in fields.items()
            if name not in shown
        },
    }


def read_opening(document: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the commitment that an opening opens, and the fields that it shows.

    Raises:
        LookupError, ValueError, TypeError, AttributeError: If the document has another form.
    """
    if "nonce" in document:
        fields = dict(document["fields"])
        return commitment_of(fields, bytes.fromhex(document["nonce"])), fields
    shown = {name: value for name, (value, _) in document["open"].items()}
    hashes = {
        name: field_hash(name, value, bytes.fromhex(salted))
        for name, (value, salted) in document["open"].items()
    }
    return commitment({**document["hidden"], **hashes}), shown
