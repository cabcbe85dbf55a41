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
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scoring.documents import is_loopback
from scoring.errors import InfrastructureError, NeucoError, OrganizerError

ROOM_BYTES = 100_000  # with less free space, even the push of a small board may fail
_CHARACTERS = re.compile(r"(?!-)[^\x00-\x1f\x7f]+")
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
        parts = urlsplit(url) if "://" in url else None
        scheme = "ssh" if re.match(r"[^/]+:", url) else "file"
        self.url = url
        self.protocol = parts.scheme.lower() if parts else scheme
        self.host = parts.netloc.rpartition("@")[2] if parts and self.protocol in ("http", "https") else ""
        self.folder = Path(unquote(parts.path) if parts else url) if self.protocol == "file" else None
        problems = {
            "is empty, or contains characters that an address cannot have": not _CHARACTERS.fullmatch(url),
            "contains a password, which would be visible in process lists": parts and parts.password,
            "uses http://, which would send the token unencrypted": parts
            and self.protocol == "http"
            and not is_loopback(parts.hostname),
            "names a git remote helper, which is not allowed": not parts and "::" in url.partition("/")[0],
            f"uses the protocol {self.protocol}": self.protocol not in ("file", "http", "https", "ssh"),
        }
        for problem, applies in problems.items():
            if applies:
                raise OrganizerError(
                    f"leaderboard.repository {problem}.",
                    cure="Use https:// with leaderboard.token, ssh://, git@host:path or a local path. http:// is accepted only on"
                    " loopback.",
                    code="leaderboard.bad_repository",
                )

    def fault(self) -> NeucoError | None:
        """Return why this process cannot push to a local repository; None if nothing prevents it, or if the repository is remote."""
        repository = self.folder
        if repository is None:
            return None
        if not os.path.isdir(repository):  # noqa: PTH112 - False also for a folder that may not be read
            return OrganizerError(
                f"There is no folder {repository} that this process can see.",
                cure="Create the repository with `git init --bare -b main`, or correct leaderboard.repository. A service sees no home"
                " folder: move the repository to /srv.",
                code="leaderboard.repository_not_found",
            )
        objects = (
            repository / "objects" if (repository / "objects").is_dir() else repository / ".git" / "objects"
        )
        if not objects.is_dir():
            return None  # git's own message will be better
        if not os.access(objects, os.W_OK | os.X_OK):
            return OrganizerError(
                f"This process may not write to the leaderboard's repository {repository}.",
                cure="Make the user that runs the worker the owner of the folder (sudo chown -R USER: FOLDER), on a file system that is"
                " writable. A service may write only to its own folder and to /srv: move the repository there.",
                code="leaderboard.read_only",
            )
        if shutil.disk_usage(objects).free < ROOM_BYTES:
            return InfrastructureError(
                f"The disk with the leaderboard's repository {repository} is full.",
                cure="Free some space. The worker tries again.",
                code="leaderboard.disk_full",
            )
        return None

    def lock(self, branch: str) -> Path | None:
        """Return a lock on the branch of a local repository, because of which git refuses every push.

        A lock that a killed push has left is removed first.
        """
        for root in (self.folder, self.folder / ".git") if self.folder else ():
            for lock in (root / "refs" / "heads" / f"{branch}.lock", root / "HEAD.lock"):
                with contextlib.suppress(OSError):
                    if time.time() - lock.stat().st_mtime <= ABANDONED_S:
                        return lock
                    lock.unlink()
        return None


# The first pattern that matches decides, so they go from the most specific to the vaguest.
_REFUSALS = (
    (
        r"host key verification failed|no .* host key is known|remote host identification has changed",
        "leaderboard.host_key",
        "The host key of the leaderboard's server is unknown, or differs from the known one.",
        "Compare the server's published key with the file in leaderboard.known_hosts. If that is not set, write the published key into a"
        " file, and name the file there.",
    ),
    (
        r"authentication failed|could not read (username|password)|terminal prompts disabled|permission denied|invalid credentials|"
        r"returned error: 40[13]|http basic: access denied|permission to .* denied|write access to repository not granted",
        "leaderboard.auth_refused",
        "The leaderboard's repository refused the credentials.",
        "Check that leaderboard.token or leaderboard.ssh_key is valid, has not expired, and is allowed to write to the repository.",
    ),
    (
        r"repository .*not found|not found: did you run|does not appear to be a git repository|returned error: 404|"
        r"no such file or directory|project you were looking for could not be found|repository .* does not exist|not a git repository",
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


class CloneDamaged(InfrastructureError):
    """The local clone of the leaderboard's repository cannot be created, read or written."""

    usual_code = "leaderboard.clone"

    def __init__(self) -> None:
        super().__init__(cure="Check the free space and the owner of the state directory.")


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
        return CloneDamaged()
    return InfrastructureError(
        f"git {verb} failed at the leaderboard's repository, probably because the server cannot be reached.",
        cure="The worker tries again. If this continues, check the network and the server's status page.",
        code="leaderboard.unreachable",
    )
