"""Commits of others, as git's log tells of them."""

from __future__ import annotations

from dataclasses import dataclass

LOG_OPTIONS = ("--topo-order", "--format=%x01%H%x00%an", "--name-only")
"""What git is to write for :func:`read_log`."""


@dataclass(frozen=True, kw_only=True)
class OtherCommit:
    """A commit of somebody else.

    Attributes:
        hash: Its name.
        author: Who made it, as it says itself; text of others.
        paths: The files that it changed.
    """

    hash: str
    author: str
    paths: tuple[str, ...]


def read_log(said: str) -> tuple[OtherCommit, ...]:
    """Read what ``git log`` has written with :data:`LOG_OPTIONS`."""
    found = []
    for told in said.split("\x01")[1:]:
        head, *paths = told.split("\n")
        commit, _, author = head.partition("\0")
        found.append(OtherCommit(hash=commit, author=author, paths=tuple(filter(None, paths))))
    return tuple(found)
