"""The key of a phase, from which its seeds derive: the challenge's secret, and a public value that may be mixed in."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Any

from scoring.randomness import phase_key


def split_key(secret: bytes, codename: str, beacon: str | None) -> bytes:
    """Return the key from which a phase's seeds derive."""
    return mixed_key(phase_key(secret, codename), beacon)


def mixed_key(key: bytes, beacon: str | None) -> bytes:
    """Mix a public value into a phase key, if there is one: HMAC-SHA256(key, value)."""
    if beacon is None:
        return key
    return hmac.new(key, beacon.encode(), hashlib.sha256).digest()


def public_value(entries: Iterable[Mapping[str, Any]], codename: str) -> str | None:
    """Return the public value that was drawn for a phase and is mixed into its key, by the public commitments; the newest counts."""
    value: str | None = None
    for entry in entries:
        if codename in entry["drawn"]:
            value = str(entry["drawn"][codename]["value"])
    return value
