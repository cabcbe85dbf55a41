"""Read the commits of others from git's log."""

from __future__ import annotations

from dataclasses import dataclass

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
