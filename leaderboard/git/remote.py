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
from scoring.printable import printable

NEW_REPOSITORY = "git init --bare --object-format=sha1 -b main"  # whatever git's default format is
ROOM_BYTES = 100_000  # with less free space, even the push of a small board may fail
SHOWN = 300  # characters of what a server says
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
                    hint="Use https:// with leaderboard.token, ssh://, git@host:path or a local path. http:// is accepted only on"
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
                hint=f"Create the repository with `{NEW_REPOSITORY}`, or correct leaderboard.repository. A service sees no home"
                " folder: move the repository to /srv.",
                code="leaderboard.repository_not_found",
            )
        objects = (
            repository / "objects" if (repository / "objects").is_dir() else repository / ".git" / "objects"
        )
        if not objects.is_dir():
            return None  # git's own message will be better
        places = filter(os.path.isdir, (objects, objects.parent, objects.parent / "refs" / "heads"))
        if not all(os.access(place, os.W_OK | os.X_OK) for place in places):
            return OrganizerError(
                f"This process may not write to the leaderboard's repository {repository}.",
                hint="Make the user that runs the worker the owner of the folder (sudo chown -R USER: FOLDER), on a file system that is"
                " writable. A service may write only to its own folder and to /srv: move the repository there.",
                code="leaderboard.read_only",
            )
        if shutil.disk_usage(objects).free < ROOM_BYTES:
            return InfrastructureError(
                f"The disk with the leaderboard's repository {repository} is full.",
                hint="Free some space. The worker tries again.",
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


_HOST_KEY = "host key verification failed|no .* host key is known|remote host identification has changed"
_CREDENTIALS = (
    "authentication failed|could not read (username|password)|terminal prompts disabled|permission denied|invalid credentials|"
    "returned error: 40[13]|http basic: access denied|permission to .* denied|write access to repository not granted|"
    "marked as read only"
)
_NOT_FOUND = (
    "repository .*not found|not found: did you run|does not appear to be a git repository|returned error: 404|"
    "no such file or directory|project you were looking for could not be found|repository .* does not exist|not a git repository"
)
# The first pattern that matches decides, so they go from the most specific to the vaguest.
_REFUSALS = (
    (
        _HOST_KEY,
        "leaderboard.host_key",
        "The host key of the leaderboard's server is unknown, or differs from the known one",
        "Compare the server's published key with the file in leaderboard.known_hosts. If that is not set, write the published key into a"
        " file, and name the file there.",
    ),
    (
        _CREDENTIALS,
        "leaderboard.auth_refused",
        "The leaderboard's repository refused the credentials",
        "Check that leaderboard.token or leaderboard.ssh_key is valid, has no passphrase, has not expired, and is allowed to write to the"
        " repository.",
    ),
    (
        _NOT_FOUND,
        "leaderboard.repository_not_found",
        "The leaderboard's repository was not found",
        "Check leaderboard.repository, and whether the credentials may read it. Servers hide private repositories from other accounts.",
    ),
)
# What somebody can do whose git cannot read a repository.
_HINTS = (
    ("unknown option|usage: git", "Install git 2.32 or newer."),
    (_HOST_KEY, "Compare the server's key with the one that it publishes, and connect once with ssh to accept it."),
    ("bad (boolean |numeric )?config", "Correct the setting that git names."),
    ("dubious ownership", "Ask the owner of the folder to list it as safe.directory in git's configuration there."),
    (_CREDENTIALS, "Let git sign in without asking, for example with a credential helper or an ssh key."),
    (f"{_NOT_FOUND}|there is no branch",
     "Check the address: it must be the repository's, not that of a web page. Servers hide private repositories from other accounts."),
    ("not allowed", "Use an address with https://, ssh:// or git://, or a folder."),
    ("promisor", "Name the repository that it was cloned from: this clone lacks files, so git cannot copy it."),
    ("shallow", "Name the repository that it was cloned from, or complete the clone: git fetch --unshallow."),
    ("resolve|connect|timed out|took longer|network|hung up|early eof|too slow|returned error: [45]",
     "Check the network, and the proxy that git uses. Try again later."),
    ("no space left|out of memory|malloc", "Free some space or memory, and try again."),
)  # fmt: skip
_PUSH_REFUSED = re.compile(
    r"hook declined|protected branch|GH00\d|GH013|denyCurrentBranch|branch is currently checked out|prohibited|not allowed|"
    "exists; cannot create",
    re.I,
)
_REJECTED = re.compile(r"\[remote rejected\] \((.*)\)$", re.MULTILINE)
# What the server says (over ssh, GitHub's begins with ERROR), or why git or ssh cannot ask it.
_TOLD = re.compile(
    r"^(?:remote: +(?:(?:error|fatal): +)?|ERROR: +|error: +(?=cannot run )|(?=Load key ))(?=.*\w)(.*\S)\s*$",
    re.MULTILINE,
)
_MOVED = re.compile(
    r"fetch first|non-fast-forward|stale info|cannot lock ref|failed to update ref|incorrect old value|reference already exists",
    re.I,
)
_DAMAGED = re.compile(
    r"\.lock'|corrupt|bad object|loose object|missing blob|missing tree|unable to read|index-pack|shallow"
)
_BROKEN_OFF = re.compile(r"early EOF|on the remote side")  # git's words are then those about a damaged clone
_PREFIX = re.compile(r"^((fatal|error|remote): +)+", re.I)
_BESIDE_THE_REASON = re.compile(
    r"(remote:)?\W*$|warning|hint:|to \S+$|[*=+-]?\s*\S+:refs/|fatal: could not read from remote|please make sure|"
    "and the repository exists",
    re.I,
)


class TipMoved(Exception):
    """The branch moved between reading and pushing; the caller must build on the new tip."""


class CloneDamaged(InfrastructureError):
    """The local clone of the leaderboard's repository cannot be created, read or written."""

    usual_code = "leaderboard.clone"

    def __init__(self) -> None:
        super().__init__(hint="Check the free space, the owner and the file system of the state directory.")


def sort_fault(remote: Remote, verb: str, message: str) -> Exception:
    """Return the error for git's message when ``git <verb>`` failed with a remote."""
    told = printable("; ".join(_TOLD.findall(message)))[:SHOWN].rstrip(".")
    refused = verb == "push" and _PUSH_REFUSED.search(message)
    rejected = _REJECTED.search(message)
    if reason := remote.fault():
        return reason
    if verb == "push" and not refused and _MOVED.search(message):
        return TipMoved(message)
    if refused or rejected:
        kind = OrganizerError if refused else InfrastructureError  # the latter may end by itself
        said = told or (printable(rejected[1]) if rejected else "it gives no reason")
        return kind(
            f"The leaderboard's repository refused the push: {said}.",
            hint="Do what it says. If it protects the branch, allow the account of the token or key to push to leaderboard.branch, or"
            " set another branch.",
            code="leaderboard.push_refused",
        )
    for pattern, code, sentence, hint in _REFUSALS:
        if re.search(pattern, message, re.IGNORECASE):
            return OrganizerError(f"{sentence}: {told}." if told else f"{sentence}.", hint=hint, code=code)
    if _DAMAGED.search(message) and not _BROKEN_OFF.search(message):
        return CloneDamaged()
    advice = "check the network and the server's status page"
    if remote.folder is not None:
        advice = f"make the repository again: `{NEW_REPOSITORY}`"
    own_reason = unreadable(str(remote.folder or "the leaderboard's repository"), message).sentence
    return InfrastructureError(
        f"git {verb} failed at the leaderboard's repository: {told}." if told else own_reason,
        hint=f"The worker tries again. If this continues, correct what git names, or {advice}.",
        code="leaderboard.unreachable",
    )


def without_credentials(text: str) -> str:
    """Return a text whose addresses lack user names and passwords."""
    return re.sub(r"(?<=://)[^/@\s]*@", "", text)


def unreadable(name: str, message: str) -> OrganizerError:
    """Return the error for git's message when it could not use a repository."""
    lines = (line.strip() for line in without_credentials(message).splitlines())
    reasons = [line for line in lines if line and not _BESIDE_THE_REASON.match(line)]
    last = ("fatal: ", "error: RPC failed")  # the latter has the status, and is followed by a vaguer one
    certain = [line for line in reasons if line.startswith(last)]
    # A server's banner, or a long warning, comes before the reason of ssh.
    others = reasons[-2:] if "from remote repository" in message else reasons[:1]
    told = (_PREFIX.sub("", line).rstrip(".") for line in certain[:1] or others)
    reason = printable("; ".join(told)) or "git gives no reason"
    hints = (hint for pattern, hint in _HINTS if re.search(pattern, message, re.IGNORECASE))
    return OrganizerError(
        f"git cannot use {name}: {reason}.",
        hint=next(hints, "Name a git URL, a clone, or a folder with the published files."),
        code="repository.unreadable",
    )
