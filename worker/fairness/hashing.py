"""The hash of everything that is committed to."""

from __future__ import annotations

import hashlib

NONCE_BYTES = 32


def digest(domain: str, *parts: bytes) -> str:
    """Hash length-prefixed parts under a domain, so that no two kinds of commitment have the same input; SHA-256 in hex."""
    result = hashlib.sha256()
    for part in (f"neuco-worker/{domain}".encode(), *parts):
        result.update(len(part).to_bytes(8, "big") + part)
    return result.hexdigest()
