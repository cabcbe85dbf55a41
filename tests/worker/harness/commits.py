"""Signed commits in a repository of a test, and what somebody with another key could publish."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from leaderboard.git import with_signature, without_signature
from worker.challenge.signing import Signer
from worker.fairness import commitments, receipts


def sign_head(folder: Path, signer: Signer) -> None:
    """Sign the newest commit of a repository with a key, as its worker does."""

    def git(*arguments: str, stdin: bytes = b"") -> bytes:
        environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull}
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, check=True, input=stdin, env=environment, capture_output=True).stdout

    payload, _ = without_signature(git("cat-file", "commit", "HEAD"))
    signed = with_signature(payload, signer.sign_commit(payload))
    commit = git("hash-object", "-t", "commit", "-w", "--stdin", stdin=signed)
    git("update-ref", "HEAD", commit.decode().strip())


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
