"""Check of signatures: whether commitments and log are the challenge's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from worker.fairness import receipts, succession
from worker.fairness.receipts import Line
from worker.fairness.signing import is_signed
from worker.fairness.verify.verdict import Verdict, consistent, contradicted


def signatures(entries: Sequence[Mapping[str, Any]], chain: Sequence[Line]) -> Iterator[Verdict]:
    """Check that commitments and batches are signed, each with the challenge's key of its time; report when the key was replaced."""
    keys: list[str] = []
    changes = []
    for entry in entries:
        key = succession.key_of(entry, keys)
        if key is None:
            yield contradicted(
                "signatures",
                f"Commitment {entry['sequence']} is signed neither with the key that the challenge had then nor with"
                " one signed by that key.",
            )
            return
        if key not in keys:
            keys.append(key)
            changes.append(f"on {entry['made_at'][:16]} ({entry['reason']})")
    if (wrong := _first_unsigned(chain, keys)) is not None:
        yield contradicted(
            "signatures",
            f"Line {wrong.sequence} of the public log is not signed with the key that the challenge had then.",
        )
        return
    replaced = "; ".join(changes[1:])
    told = f" The key was replaced {replaced}; each key has signed the next one." if replaced else ""
    yield consistent("signatures", f"Commitments and log are signed with the challenge's key.{told}")


def _first_unsigned(chain: Sequence[Line], keys: Sequence[str]) -> Line | None:
    """Return the first line that no key has signed; a replaced key must not sign a line after its successor has signed one."""
    left = list(keys)
    for line in chain:
        while left and not is_signed(left[0], receipts.BATCH, line.head, line.signature):
            left.pop(0)
        if not left:
            return line
    return None
