"""Signed commits in a repository of a test, and what somebody with another key could publish."""

from __future__ import annotations

import json
from pathlib import Path

from leaderboard.git import with_signature, without_signature
from tests.leaderboard.harness.git_server import git
from worker.challenge.signing import Signer
from worker.fairness import commitments, receipts


def sign_head(folder: Path, signer: Signer) -> None:
    """Sign the newest commit of a repository with a key, as its worker does."""
    payload, _ = without_signature(git("cat-file", "commit", "HEAD", at=folder).encode() + b"\n")
    signed = with_signature(payload, signer.sign_commit(payload))
    commit = git("hash-object", "-t", "commit", "-w", "--stdin", at=folder, stdin=signed)
    git("update-ref", "HEAD", commit, at=folder)


def forged_commitment(public: str, signer: Signer, **changes: str) -> bytes:
    """Return the published list with one more commitment, signed by another key."""
    entries = json.loads(public)
    entry = {**entries[-1], "sequence": len(entries) + 1, "key": signer.public, **changes}
    return json.dumps([*entries, commitments.signed(entry, signer)]).encode()


def forged_line(log: str, signer: Signer, **changes: object) -> bytes:
    """Return the published log with one more line, which anyone can chain, signed by another key."""
    last = json.loads(log.splitlines()[-1])
    body = {**last, "sequence": last["sequence"] + 1, "previous": last["head"], **changes}
    del body["head"], body["signature"]
    head = receipts.chained(body)
    line = {**body, "head": head, "signature": signer.sign(receipts.BATCH, head)}
    return f"{log}{json.dumps(line)}\n".encode()
