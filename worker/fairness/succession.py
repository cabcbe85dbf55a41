"""Succession: which keys are the challenge's, each signed by the one before it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from worker.fairness.signing import is_signed

COMMITMENT, SUCCESSION = "commitment", "succession"  # what is signed


def keys_of(public: bytes | None) -> tuple[str, ...]:
    """Return the keys that a public list of commitments names, see :func:`keys_in`; none if it is not such a list."""
    try:
        return keys_in(json.loads(public or b"[]"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ()


def keys_in(entries: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the keys that public commitments name, in their order.

    The first commitment with a key says which is the challenge's, and every other key is signed with the one before it: without that,
    anyone who may push could name a key. A replaced key can sign nothing, neither a commitment nor another key.
    """
    known: list[str] = []
    for entry in entries:
        key = key_of(entry, known)
        if key is not None and key not in known:
            known.append(key)
    return tuple(known)


def key_of(entry: Mapping[str, Any], known: Sequence[str]) -> str | None:
    """Return the key of an entry that is signed with the newest of the known keys, or with one that this key has signed; else None."""
    key = entry.get("key")
    body = {name: value for name, value in entry.items() if name != "signature"}
    if not isinstance(key, str) or not is_signed(key, COMMITMENT, body, entry.get("signature")):
        return None
    if not known or key == known[-1]:
        return key
    is_new = key not in known and is_signed(known[-1], SUCCESSION, key, entry.get("succession"))
    return key if is_new else None
