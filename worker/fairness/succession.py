"""Succession: which keys are the challenge's, where each is signed by the one before it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from worker.fairness.signing import is_signed

COMMITMENT, SUCCESSION = "commitment", "succession"  # kinds of signed documents


def keys_of(public: bytes | None) -> tuple[str, ...]:
    """Return the keys that a public list of commitments names, see :func:`keys_in`; none if it is not such a list."""
    try:
        return keys_in(json.loads(public or b"[]"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ()


def keys_in(entries: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the keys that public commitments name, in their order.

    The first commitment with a key defines the challenge's, and every other key must be signed with the one before it; otherwise anyone
    with write access could add a key. A replaced key can no longer sign a commitment or another key.
    """
    known: list[str] = []
    for entry in entries:
        key = key_of(entry, known)
        if key is not None and key not in known:
            known.append(key)
    return tuple(known)


def key_of(entry: Mapping[str, Any], known: Sequence[str]) -> str | None:
    """Return an entry's key if the newest known key has signed it, or has signed the new key that did; otherwise None."""
    key = entry.get("key")
    body = {name: value for name, value in entry.items() if name != "signature"}
    if not isinstance(key, str) or not is_signed(key, COMMITMENT, body, entry.get("signature")):
        return None
    if not known or key == known[-1]:
        return key
    is_new = key not in known and is_signed(known[-1], SUCCESSION, key, entry.get("succession"))
    return key if is_new else None
