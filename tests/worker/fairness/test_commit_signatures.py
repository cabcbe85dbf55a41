"""The challenge's commits carry signatures that git itself accepts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from leaderboard.git import Publisher, PublisherSettings, without_signature
from tests.leaderboard.harness.git_server import bare, git
from worker.challenge.signing import Signer, openssh, signing_key

OURS, OTHER = Signer(b"7" * 32), Signer(b"3" * 32)


@pytest.mark.processes
def test_git_accepts_what_was_signed_here(tmp_path: Path) -> None:
    """`git verify-commit` agrees with us about the challenge's key, and refuses another one."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    board = bare(tmp_path / "board.git")
    settings = PublisherSettings(repository=str(board), state_dir=tmp_path / "state")
    publisher, sign = Publisher(settings), OURS.sign_commit
    last = publisher.publish(lambda *_: {"index.html": b"1"}, "One\n", sign=sign).commit
    publisher.publish(lambda *_: {"index.html": b"2"}, "Two\n\nMore\n", last=last, sign=sign)
    for key, status in ((OURS, 0), (OTHER, 1)):
        (tmp_path / "signers").write_text(f"* {openssh(key.public)}\n")
        settings = ("-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={tmp_path / 'signers'}")
        for commit in ("main", "main~1"):
            done = subprocess.run(
                ["git", *settings, "verify-commit", commit],
                cwd=board,
                env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull},
                capture_output=True,
                check=False,
            )
            assert done.returncode == status, done.stderr
    payload, signature = without_signature(git("cat-file", "commit", "main", at=board).encode() + b"\n")
    assert signing_key(payload, signature) == OURS.public


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"tree", b"tref"),
        (b"U1NI", b"U1NJ"),
        (b"git", b"tag"),
        (b"\n", b"\r\n"),
        (b"-----END", b"====\n-----END"),
    ],
)
def test_a_signature_belongs_to_one_commit_and_has_one_form(old: bytes, new: bytes) -> None:
    """Another commit, another purpose and another spelling of the same signature are refused."""
    payload = b"tree 0\n\nmessage for git\n"
    signature = OURS.sign_commit(payload)
    assert signing_key(payload, signature) == OURS.public
    assert signing_key(payload.replace(old, new), signature.replace(old, new)) is None
    assert signing_key(payload, b"") is None
