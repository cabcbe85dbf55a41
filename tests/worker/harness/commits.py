"""Signed commits in a repository of a test."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from leaderboard.git import with_signature, without_signature
from worker.fairness.commit_signatures import CommitSigner
from worker.fairness.signing import Signer


def sign_head(folder: Path, signer: Signer) -> None:
    """Sign the newest commit of a repository with a key, as its worker does."""

    def git(*arguments: str, stdin: bytes = b"") -> bytes:
        environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull}
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, check=True, input=stdin, env=environment, capture_output=True).stdout

    payload, _ = without_signature(git("cat-file", "commit", "HEAD"))
    signed = with_signature(payload, CommitSigner(signer).sign(payload))
    commit = git("hash-object", "-t", "commit", "-w", "--stdin", stdin=signed)
    git("update-ref", "HEAD", commit.decode().strip())
