"""Checks of signatures: whether commitments, log and repository are the challenge's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scoring.printable import name_some
from worker.fairness import receipts, seal, succession
from worker.fairness.signing import is_signed
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.verdict import Verdict, believed, consistent, contradicted


def signatures(entries: Sequence[Mapping[str, Any]], chain: Sequence[Mapping[str, Any]]) -> Iterator[Verdict]:
    """Check that commitments and batches are signed, each with the challenge's key of its time; report when the key was replaced."""
    keys: list[str] = []
    changes = []
    for entry in entries:
        key = succession.key_of(entry, keys)
        if key is None:
            yield contradicted(
                "signatures",
                f"Commitment {entry.get('sequence')} is signed neither with the key that the challenge had then nor with"
                " one signed by that key.",
            )
            return
        if key not in keys:
            keys.append(key)
            changes.append(f"on {str(entry.get('made_at'))[:16]} ({entry.get('reason')})")
    if (wrong := _first_unsigned(chain, keys)) is not None:
        yield contradicted(
            "signatures",
            f"Line {wrong.get('sequence')} of the public log is not signed with the key that the challenge had then.",
        )
        return
    replaced = "; ".join(changes[1:])
    told = f" The key was replaced {replaced}; each key has signed the next one." if replaced else ""
    yield consistent("signatures", f"Commitments and log are signed with the challenge's key.{told}")


def _first_unsigned(chain: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Mapping[str, Any] | None:
    """Return the first line that no key has signed; a replaced key must not sign a line after its successor has signed one."""
    left = list(keys)
    for line in chain:
        while left and not is_signed(left[0], receipts.BATCH, line.get("head"), line.get("signature")):
            left.pop(0)
        if not left:
            return line
    return None


def sealed(repository: PublicRepository, entries: Sequence[Mapping[str, Any]]) -> Iterator[Verdict]:
    """Check that the files are those that the challenge has sealed."""
    document = seal.read(repository.files.get(seal.PATH))
    if document is None or document["key"] not in succession.keys_in(entries)[-1:]:
        yield contradicted(
            "seal", "The files do not carry the challenge's seal: somebody else put them there."
        )
        return
    if changed := sorted(seal.differing(document, repository.files)):
        yield contradicted("seal", f"Changed since the challenge sealed them: {name_some(changed)}.")
    elif document["head"] != receipts.head(repository.files.get(receipts.PATH)):
        yield contradicted("seal", "The seal belongs to another public log.")
    else:
        yield consistent(
            "seal",
            f"All {len(document['files'])} files are unchanged since the challenge sealed them on {document['made_at'][:19]}.",
        )
    if others := repository.strangers:
        yield believed(
            "seal",
            f"These files are not in the challenge's seal, and were not read: {name_some(others)}.",
        )
