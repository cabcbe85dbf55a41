"""Access to a challenge's published files, in a git repository or in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scoring.errors import InfrastructureError, OrganizerError
from worker.participant.layout import COMMITMENTS

Read = Callable[[str], bytes | None]
TIME_OUT_S = 120.0  # of one call
CONTENTS = "files"  # a branch that contains embeddings, not the board
QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "protocol.ext.allow",
    "GIT_CONFIG_VALUE_0": "never",
    "GIT_CONFIG_KEY_1": "safe.directory",
    "GIT_CONFIG_VALUE_1": "*",
}


@contextmanager
def opened(place: str) -> Iterator[Read]:
    """Open a challenge's published files.

    Args:
        place: Any git URL, a clone or a bare repository, or a folder with the files.

    Yields:
        A function that returns a file by its path, None if there is none.

    Raises:
        OrganizerError: If there is nothing to read.
        InfrastructureError: If a server does not answer.
    """
    folder = Path(place).expanduser()
    if (folder / COMMITMENTS).is_file():
        yield lambda path: (folder / path).read_bytes() if (folder / path).is_file() else None
        return
    with tempfile.TemporaryDirectory() as clone:
        _fetch(clone, str(folder.resolve()) if folder.exists() else place)
        yield lambda path: _git(clone, "show", f"FETCH_HEAD:{path}")


def _fetch(clone: str, address: str) -> None:
    """Fetch the newest commit of a repository's default branch into a new repository.

    Raises:
        OrganizerError: If there is no such repository, or nothing in it.
    """
    if shutil.which("git") is None:
        raise OrganizerError(
            "git is not installed on this machine.",
            cure="Install it, or use --ids and --dim.",
            code="validate.challenge",
        )
    _git(clone, "init", "--quiet", "--bare", ".")
    heads = _git(clone, "ls-remote", "--heads", "--", address)
    head = _git(clone, "ls-remote", "--", address, "HEAD")
    if heads is None or head is None:
        raise _unreadable(
            address, "git cannot reach it, or it is neither a repository nor a folder with the files"
        )
    names = [line.partition("refs/heads/")[2] for line in heads.decode().splitlines()]
    usual = next((name for name in names if name in {"main", "master"}), None)
    branch = "HEAD" if head else usual or next((name for name in names if name != CONTENTS), None)
    if branch is None:
        raise _unreadable(address, "nothing was pushed to it yet")
    if _git(clone, "fetch", "--quiet", "--depth=1", "--", address, branch) is None:
        raise _unreadable(address, f"its branch {branch} cannot be fetched")


def _git(folder: str, *arguments: str) -> bytes | None:
    """Run git in a folder; return what it prints, or None if it fails."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env={**os.environ, **QUIET},
            capture_output=True,
            check=False,
            timeout=TIME_OUT_S,
        )
    except subprocess.TimeoutExpired:
        raise InfrastructureError(
            f"git took longer than {TIME_OUT_S:g} s.",
            cure="Try again later, or use --ids and --dim.",
            code="validate.challenge",
        ) from None
    return done.stdout if done.returncode == 0 else None


def _unreadable(place: str, reason: str) -> OrganizerError:
    return OrganizerError(
        f"{place} cannot be read: {reason}.",
        cure="Name the challenge's leaderboard repository.",
        code="validate.challenge",
    )
