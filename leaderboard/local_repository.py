"""A leaderboard repository that is a folder of this machine: what keeps this process from pushing to it.

For such a repository git names neither a read-only file system, nor a missing right, nor a full disk: each of them is an "unpacker error"
of the other end, and a trial push writes nothing and so finds none of them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from scoring.errors import InfrastructureError, NeucoError, OrganizerError

ROOM_BYTES = 100_000  # less than a push of a board may take


def fault(repository: Path) -> NeucoError | None:
    """Say why this process cannot push to a folder, if anything of the folder keeps it from that."""
    if not os.path.isdir(repository):  # noqa: PTH112 - false also where this process may not even look
        return OrganizerError(
            f"There is no folder {repository} that this process can see.",
            cure="Make the repository with `git init --bare`, or correct leaderboard.repository. A service sees home folders only "
            "if its unit says so: run `sudo neuco-challenge NAME paths`, then restart it.",
            code="leaderboard.repository_not_found",
        )
    objects = repository / "objects" if (repository / "objects").is_dir() else repository / ".git" / "objects"
    if not objects.is_dir():
        return None  # git knows better what this is
    if os.statvfs(objects).f_flag & os.ST_RDONLY:
        return OrganizerError(
            f"The leaderboard's repository {repository} is on a file system that is read-only for this process.",
            cure="A service may write to its own folders and to those that its unit names: run `sudo neuco-challenge NAME paths`, "
            "then restart it. Outside of a service, mount the file system writable.",
            code="leaderboard.read_only",
        )
    if not os.access(objects, os.W_OK | os.X_OK):
        return OrganizerError(
            f"This process's user may not write to the leaderboard's repository {repository}.",
            cure=f"Give the folder to the user who runs the worker: sudo chown -R USER: {repository}",
            code="leaderboard.not_writable",
        )
    if shutil.disk_usage(objects).free < ROOM_BYTES:
        return InfrastructureError(
            f"The disk with the leaderboard's repository {repository} is full.",
            cure="Make room there; the push is tried again.",
            code="leaderboard.disk_full",
        )
    return None
