"""Commits: their signatures, and those of others in git's log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

LOG_OPTIONS = ("--topo-order", "--format=%x01%H%x00%an", "--name-only")
"""Options of ``git log`` for :func:`read_log`."""


@dataclass(frozen=True, kw_only=True)
class OtherCommit:
    """A commit that we did not make.

    Attributes:
        hash: Its hash.
        author: Its author, as the commit says; untrusted text.
        paths: The files that it changed.
    """

    hash: str
    author: str
    paths: tuple[str, ...]


def read_log(log: str) -> tuple[OtherCommit, ...]:
    """Parse the output of ``git log`` with :data:`LOG_OPTIONS`."""
    commits = []
    for entry in log.split("\x01")[1:]:
        head, *paths = entry.split("\n")
        commit, _, author = head.partition("\0")
        commits.append(OtherCommit(hash=commit, author=author, paths=tuple(filter(None, paths))))
    return tuple(commits)


class CommitSigner(Protocol):
    """Signs commits, and recognizes those that it has signed. What is signed is the commit object without its signature."""

    def sign(self, payload: bytes) -> bytes:
        """Return the armored signature of a commit object."""

    def has_signed(self, payload: bytes, signature: bytes) -> bool:
        """Return whether a signature of a commit object was made by this signer."""


def with_signature(payload: bytes, signature: bytes) -> bytes:
    """Return a commit object with a signature as its last header, where git puts it."""
    headers, _, message = payload.partition(b"\n\n")
    folded = signature.rstrip(b"\n").replace(b"\n", b"\n ")
    return headers + b"\ngpgsig " + folded + b"\n\n" + message


def without_signature(commit: bytes) -> tuple[bytes, bytes]:
    """Return a commit object without its signature, and the signature; empty if its last header is none."""
    headers, _, message = commit.partition(b"\n\n")
    before, _, folded = headers.partition(b"\ngpgsig ")
    first, *lines = folded.split(b"\n")
    if not first or not all(line.startswith(b" ") for line in lines):
        return commit, b""
    signature = b"".join(line + b"\n" for line in (first, *(line[1:] for line in lines)))
    return before + b"\n\n" + message, signature
