"""Where the board is pushed to: an address that was checked, and what keeps this process from a folder of its own machine.

For a repository on this machine git names neither a read-only file system, nor a missing right, nor a full disk: each of them is an
"unpacker error" of the other end, and a trial push writes nothing and so finds none of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from scoring.loopback import is_loopback

ROOM_BYTES = 100_000  # less than a push of a board may take
ABANDONED_S = 30.0  # git holds the lock of a branch for milliseconds


@dataclass(frozen=True, kw_only=True)
class Remote:
    """Where the board is pushed to, checked.

    Raises:
        OrganizerError: The address carries a password, uses a protocol that is not allowed, or could be taken for an option.
    """

    url: str
    protocol: str = field(init=False)
    origin: str = field(init=False, default="")
    folder: Path | None = field(init=False, default=None)  # of a repository of this machine

    def __post_init__(self) -> None:
        """Refuse addresses that git would read as something else than a repository."""
        url = self.url
        if not url or url.startswith("-") or any(ord(char) < 32 or ord(char) == 127 for char in url):
            raise _bad_url("is empty, or contains characters that an address cannot have")
        protocol = "file"
        if "://" in url:
            parts = urlsplit(url)
            protocol = parts.scheme.lower()
            if parts.password:
                raise _bad_url(
                    "contains a password, which would be visible in process lists",
                    "Use leaderboard.token instead.",
                )
            if protocol == "http" and not is_loopback(parts.hostname):
                raise _bad_url(
                    "uses http://, which would send the token unencrypted",
                    "Use https://. http:// is accepted only on loopback.",
                )
            if protocol in ("http", "https"):
                host = parts.netloc.rpartition("@")[2]
                object.__setattr__(self, "origin", f"{protocol}://{host}")
        elif "::" in url.split("/", 1)[0]:
            raise _bad_url("names a git remote helper, which is not allowed")
        elif re.match(r"^[^/]+:", url):
            protocol = "ssh"
        if protocol not in ("file", "http", "https", "ssh"):
            raise _bad_url(f"uses the protocol {protocol}")
        object.__setattr__(self, "protocol", protocol)
        if protocol == "file":
            object.__setattr__(self, "folder", Path(unquote(urlsplit(url).path) if "://" in url else url))

    def fault(self) -> NeucoError | None:
        """Say why this process cannot push to a repository of this machine, if its folder keeps it from that."""
        return None if self.folder is None else folder_fault(self.folder)

    def remove_abandoned_lock(self, branch: str) -> None:
        """Remove the lock that a killed push left on a branch of a repository of this machine; git itself would refuse every later push."""
        if self.folder is None:
            return
        for root in (self.folder, self.folder / ".git"):
            for lock in (root / "refs" / "heads" / f"{branch}.lock", root / "HEAD.lock"):
                with contextlib.suppress(OSError):
                    if time.time() - lock.stat().st_mtime > ABANDONED_S:
                        lock.unlink()


def _bad_url(what: str, cure: str = "Use https://, ssh://, git@host:path or a local path.") -> OrganizerError:
    return OrganizerError(f"leaderboard.repository {what}.", cure=cure, code="leaderboard.bad_repository")


def folder_fault(repository: Path) -> NeucoError | None:
    """Say why this process cannot push to a folder, if anything of the folder keeps it from that."""
    if not os.path.isdir(repository):  # noqa: PTH112 - false also where this process may not even look
        return OrganizerError(
            f"There is no folder {repository} that this process can see.",
            cure="Create the repository with `git init --bare`, or correct leaderboard.repository. A service sees home folders only"
            " if its unit allows it: run `sudo neuco-challenge NAME paths`, then restart the service.",
            code="leaderboard.repository_not_found",
        )
    objects = repository / "objects" if (repository / "objects").is_dir() else repository / ".git" / "objects"
    if not objects.is_dir():
        return None  # git knows better what this is
    if os.statvfs(objects).f_flag & os.ST_RDONLY:
        return OrganizerError(
            f"The leaderboard's repository {repository} is on a file system that is read-only for this process.",
            cure="A service may write only to its own folders and to those that its unit names: run `sudo neuco-challenge NAME"
            " paths`, then restart the service. Without a service, mount the file system writable.",
            code="leaderboard.read_only",
        )
    if not os.access(objects, os.W_OK | os.X_OK):
        return OrganizerError(
            f"The user that runs the worker may not write to the leaderboard's repository {repository}.",
            cure=f"Make that user the owner of the folder: sudo chown -R USER: {repository}",
            code="leaderboard.not_writable",
        )
    if shutil.disk_usage(objects).free < ROOM_BYTES:
        return InfrastructureError(
            f"The disk with the leaderboard's repository {repository} is full.",
            cure="Free some space. The worker tries again.",
            code="leaderboard.disk_full",
        )
    return None
