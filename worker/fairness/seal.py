"""The seal: with every push the challenge signs what it has published, so that pushes of others can be recognized."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from worker.fairness.published_format import FORMAT
from worker.fairness.signing import Signer, is_signed

PATH = "seal.json"
SEAL = "seal"  # the kind of signed document


def seal(
    files: Mapping[str, bytes],
    before: bytes | None,
    *,
    head: str,
    signer: Signer,
    at: datetime,
    keys: Collection[str] = (),
) -> bytes:
    """Write the seal of published files. An existing seal of the same contents is kept byte for byte.

    Args:
        files: Path to content, for everything that the challenge publishes.
        before: The seal in the branch.
        head: Hash of the public log.
        signer: The challenge's key.
        at: The time, in public.
        keys: The keys that may have signed the seal in the branch.
    """
    hashes = hashes_of(files)
    old = read(before)
    if old is not None and old["key"] not in {signer.public, *keys}:
        old = None
    if old is not None and (old["files"], old["head"], old["key"]) == (hashes, head, signer.public):
        return before or b""
    # a seal with an earlier time than another one would be taken for a copy of an old one
    if old is not None:
        at = max(at, datetime.fromisoformat(old["made_at"]) + timedelta(microseconds=1))
    body = {
        "format": FORMAT,
        "sequence": 1 if old is None else old["sequence"] + 1,
        "made_at": at.isoformat(timespec="microseconds"),
        "head": head,
        "files": hashes,
        "key": signer.public,
    }
    return (json.dumps({**body, "signature": signer.sign(SEAL, body)}, indent=1) + "\n").encode()


def hashes_of(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each file besides the seal."""
    return {path: hashlib.sha256(files[path]).hexdigest() for path in sorted(files) if path != PATH}


def spoilt(files: Mapping[str, bytes], keys: Collection[str]) -> frozenset[str]:
    """Return the files of a branch that differ from the challenge's seal; all of them if the seal is not the challenge's."""
    document = read(files.get(PATH))
    if document is None or document["key"] not in keys:
        return frozenset({*files, PATH})
    return differing(document, files)


def differing(document: Mapping[str, Any], files: Mapping[str, bytes]) -> frozenset[str]:
    """Return the files named in a seal that differ from it or are missing."""
    hashes = hashes_of(files)
    return frozenset(path for path, name in document["files"].items() if hashes.get(path) != name)


def read(content: bytes | None) -> dict[str, Any] | None:
    """Return a seal with a valid signature of the key that it names; None for anything else."""
    try:
        document = json.loads(content or b"")
        body = {name: value for name, value in document.items() if name != "signature"}
        whole = isinstance(body["files"], dict) and isinstance(body["sequence"], int) and "head" in body
        return document if whole and is_signed(body["key"], SEAL, body, document["signature"]) else None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
