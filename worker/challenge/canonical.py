"""The canonical form of a value as bytes, from which hashes, records and commitments are made."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(document: Any) -> bytes:
    """Write a JSON value in its one canonical form: sorted keys, no spaces, ASCII; floats in their shortest exact form.

    Raises:
        ValueError: For NaN and infinities, which JSON does not have.
    """
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


NONCE_BYTES = 32


def digest(domain: str, *parts: bytes) -> str:
    """Hash length-prefixed parts under a domain, so that no two kinds of commitment have the same input; SHA-256 in hex."""
    result = hashlib.sha256()
    for part in (f"neuco-worker/{domain}".encode(), *parts):
        result.update(len(part).to_bytes(8, "big") + part)
    return result.hexdigest()
