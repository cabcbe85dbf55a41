"""Events: the entries of the register, committed to so that each can be opened completely or in part.

An event is a set of named values. Each value is hashed with a salt of its own, and the commitment is the hash of these hashes. So a private
entry can be shown to exist without showing whose it is. All salts follow from one nonce, which opens everything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from worker.challenge.canonical import canonical
from worker.fairness.hashing import digest

SUBMISSION = "submission"
"""The facts about a submission that decide whether and how it is on a board; a new event follows each change."""
SCORE = "score"
"""The scores of a submission."""
PHASE = "phase"
"""A phase's record, rules and decisions; a new event follows each change."""
CHALLENGE = "challenge"
"""An event of the whole challenge, such as a restored backup."""
PUBLIC_FIELDS = ("kind", "phase", "at", "entry")
"""The fields that are opened of a private event."""

Fields = Mapping[str, Any]


def salt(nonce: bytes, field: str) -> bytes:
    """Return the salt of one field."""
    return bytes.fromhex(digest("salt", nonce, field.encode()))


def field_hash(field: str, value: Any, salted: bytes) -> str:
    """Hash one field's name and value under its salt."""
    return digest("field", salted, canonical([field, value]))


def commitment(hashes: Mapping[str, str]) -> str:
    """Return the hash of an event from the hashes of its fields."""
    return digest("event", canonical(dict(hashes)))


def commitment_of(fields: Fields, nonce: bytes) -> str:
    """Commit to an event."""
    return commitment({name: field_hash(name, value, salt(nonce, name)) for name, value in fields.items()})


def opened(fields: Fields, nonce: bytes) -> dict[str, Any]:
    """Open all fields of an event."""
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
    """Return an opening's commitment and the fields that it shows.

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
