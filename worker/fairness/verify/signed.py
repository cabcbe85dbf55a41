"""Checks of signatures: that commitments, log and repository are the challenge's own, and what is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from worker.fairness import commitments, receipts, seal
from worker.fairness.commitments import COMMITMENT
from worker.fairness.signing import is_signed
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.verdict import Verdict, believed, consistent, contradicted, name_some


def signatures(entries: Sequence[Mapping[str, Any]], chain: Sequence[Mapping[str, Any]]) -> Iterator[Verdict]:
    """Check the signatures of commitments and batches."""
    keys = [str(entry["key"]) for entry in entries if "key" in entry]
    if not keys:
        yield believed(
            "signatures",
            "Nothing is signed (format 1): that the challenge itself published this is believed.",
        )
        return
    for entry in entries:
        body = {name: value for name, value in entry.items() if name != "signature"}
        if "key" in entry and not is_signed(str(entry["key"]), COMMITMENT, body, entry.get("signature")):
            yield contradicted(
                "signatures", f"Commitment {entry.get('sequence')} is not signed with its key."
            )
            return
    for line in chain:
        if line.get("format") != receipts.FORMAT:
            continue
        if not any(is_signed(key, receipts.BATCH, line.get("head"), line.get("signature")) for key in keys):
            yield contradicted(
                "signatures",
                f"Line {line.get('sequence')} of the public log is not signed with a key of the challenge.",
            )
            return
    changes = len(dict.fromkeys(keys)) - 1
    known = commitments.keys_in(entries)
    if strangers := dict.fromkeys(key for key in keys if key not in known):
        told = f" The key was replaced {changes} times; for {len(strangers)} of them no old key signed the new one."
    else:
        told = f" The key was replaced {changes} times, and each signed the next one." if changes else ""
    yield consistent("signatures", f"Commitments and log are signed with the challenge's key.{told}")


def sealed(repository: PublicRepository, entries: Sequence[Mapping[str, Any]]) -> Iterator[Verdict]:
    """Check that the files are those that the challenge has sealed."""
    keys = {str(entry["key"]) for entry in entries if "key" in entry}
    if not keys:
        return
    document = seal.read(repository.files.get(seal.PATH))
    if document is None or document["key"] not in keys:
        yield contradicted(
            "seal", "The files carry no seal of the challenge: somebody else has put them there."
        )
        return
    if changed := sorted(seal.differing(document, repository.files)):
        yield contradicted("seal", f"Not as the challenge has sealed them: {', '.join(changed[:5])}.")
    elif document["head"] != receipts.head(repository.files.get(receipts.PATH)):
        yield contradicted("seal", "The seal is not of this public log.")
    else:
        yield consistent(
            "seal",
            f"All {len(document['files'])} files are as the challenge has sealed them on {document['made_at'][:19]}.",
        )
    if others := repository.strangers:
        yield believed(
            "seal",
            f"Not the challenge's, and not read: {name_some(others)}. No seal names them.",
        )
