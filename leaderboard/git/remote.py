"""The address that the board is pushed to, and what git says about it on stderr as our errors.

For a local repository, git does not distinguish a read-only file system, a missing permission and a full disk: each is an "unpacker error"
of the receiving process. A trial push writes nothing, so it finds none of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scoring.documents import is_loopback
from scoring.errors import InfrastructureError, NeucoError, OrganizerError

ROOM_BYTES = 100_000  # with less free space, even the push of a small board may fail
ABANDONED_S = 30.0  # git itself holds the lock of a branch for milliseconds


class Remote:
    """A checked address of a repository.

    Attributes:
        url: The address.
        protocol: ``file``, ``http``, ``https`` or ``ssh``.
        host: Name and port of a server that is asked over HTTP; otherwise empty.
        folder: Place of a local repository.

    Raises:
        OrganizerError: The address carries a password, uses a protocol that is not allowed, or could be taken for an option.
    """

    def __init__(self, url: str) -> None:
        self.url, self.host = url, ""
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
                self.host = parts.netloc.rpartition("@")[2]
        elif "::" in url.split("/", 1)[0]:
            raise _bad_url("names a git remote helper, which is not allowed")
        elif re.match(r"^[^/]+:", url):
            protocol = "ssh"
        if protocol not in ("file", "http", "https", "ssh"):
            raise _bad_url(f"uses the protocol {protocol}")
        self.protocol = protocol
        place = unquote(urlsplit(url).path) if "://" in url else url
        self.folder = Path(place) if protocol == "file" else None

    def fault(self) -> NeucoError | None:
        """Return why this process cannot push to a local repository; None if nothing prevents it, or if the repository is remote."""
        repository = self.folder
        if repository is None:
            return None
        if not os.path.isdir(repository):  # noqa: PTH112 - False also for a folder that may not be read
            return OrganizerError(
                f"There is no folder {repository} that this process can see.",
                cure="Create the repository with `git init --bare -b main`, or correct leaderboard.repository. A service sees home"
                " folders only if its unit allows it: run `sudo neuco-challenge NAME paths`, then restart the service.",
                code="leaderboard.repository_not_found",
            )
        objects = (
            repository / "objects" if (repository / "objects").is_dir() else repository / ".git" / "objects"
        )
        if not objects.is_dir():
            return None  # git's own message will be better
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

    def default_branch(self) -> str | None:
        """Return the branch that a clone of a local repository shows, even if it is empty; None if the repository is remote."""
        for root in (self.folder, self.folder / ".git") if self.folder is not None else ():
            if (root / "HEAD").is_file():
                return (root / "HEAD").read_text().strip().removeprefix("ref: refs/heads/")
        return None

    def remove_abandoned_locks(self, branch: str) -> None:
        """Remove the locks that a killed push left in a local repository, because git would refuse every later push."""
        for lock in self._locks(branch):
            with contextlib.suppress(OSError):
                if time.time() - lock.stat().st_mtime > ABANDONED_S:
                    lock.unlink()

    def locked(self, branch: str) -> InfrastructureError | None:
        """Return an error that names a lock on the branch of a local repository; None if there is no lock."""
        for path in self._locks(branch):
            if path.exists():
                return InfrastructureError(
                    f"Another git process has locked the leaderboard's branch, or was killed and left its lock: {path}.",
                    cure=f"The worker tries again, and removes a lock that is older than {ABANDONED_S:.0f} seconds.",
                    code="leaderboard.locked",
                )
        return None

    def _locks(self, branch: str) -> Iterator[Path]:
        """Yield where git would lock the branch in a local repository."""
        if self.folder is not None:
            for root in (self.folder, self.folder / ".git"):
                yield root / "refs" / "heads" / f"{branch}.lock"
                yield root / "HEAD.lock"


def _bad_url(what: str, cure: str = "Use https://, ssh://, git@host:path or a local path.") -> OrganizerError:
    return OrganizerError(f"leaderboard.repository {what}.", cure=cure, code="leaderboard.bad_repository")


_HOST_KEY = r"host key verification failed|no .* host key is known|remote host identification has changed"
_REFUSED = (
    r"authentication failed|could not read (username|password)|terminal prompts disabled|permission denied|invalid credentials|"
    r"returned error: 40[13]|http basic: access denied|permission to .* denied|write access to repository not granted"
)
_NOT_FOUND = (
    r"repository .*not found|not found: did you run|does not appear to be a git repository|returned error: 404|no such file or directory|"
    r"project you were looking for could not be found|repository .* does not exist|not a git repository"
)
# The first pattern that matches decides, so they go from the most specific to the vaguest.
_REFUSALS = (
    (
        _HOST_KEY,
        "leaderboard.host_key",
        "The host key of the leaderboard's server is unknown, or differs from the known one.",
        "Compare the server's published key with the file in leaderboard.known_hosts. If that is not set, write the published key into a"
        " file, and name the file there.",
    ),
    (
        _REFUSED,
        "leaderboard.auth_refused",
        "The leaderboard's repository refused the credentials.",
        "Check that leaderboard.token or leaderboard.ssh_key is valid, has not expired, and is allowed to write to the repository.",
    ),
    (
        _NOT_FOUND,
        "leaderboard.repository_not_found",
        "The leaderboard's repository was not found.",
        "Check leaderboard.repository, and whether the credentials may read it. Servers hide private repositories from other accounts.",
    ),
)
_PUSH_REFUSED = re.compile(
    r"hook declined|protected branch|GH00\d|GH013|denyCurrentBranch|branch is currently checked out|prohibited|not allowed",
    re.I,
)
_MOVED = re.compile(
    r"fetch first|non-fast-forward|stale info|cannot lock ref|failed to update ref|incorrect old value|reference already exists",
    re.I,
)
_DAMAGED = re.compile(
    r"\.lock'|corrupt|bad object|loose object|missing blob|missing tree|unable to read|index-pack|shallow"
)


class TipMoved(Exception):
    """The branch moved between reading and pushing; the caller must build on the new tip."""


class CloneDamaged(Exception):
    """The local clone cannot be read or written; the caller must make a new one."""


def sort_fault(remote: Remote, verb: str, message: str) -> Exception:
    """Return the error for git's message when ``git <verb>`` failed with a remote."""
    if verb == "push":
        if _PUSH_REFUSED.search(message):
            return OrganizerError(
                "The leaderboard's repository refused the push: a rule or hook protects the branch.",
                cure="Allow the account of the token or key to push to leaderboard.branch, or set another branch.",
                code="leaderboard.push_refused",
            )
        if _MOVED.search(message):
            return TipMoved(message)
    if reason := remote.fault():
        return reason
    for pattern, code, sentence, cure in _REFUSALS:
        if re.search(pattern, message, re.IGNORECASE):
            return OrganizerError(sentence, cure=cure, code=code)
    if _DAMAGED.search(message):
        return CloneDamaged(message)
    return InfrastructureError(
        f"git {verb} failed at the leaderboard's repository, probably because the server cannot be reached.",
        cure="The worker tries again. If this continues, check the network and the server's status page.",
        code="leaderboard.unreachable",
    )
