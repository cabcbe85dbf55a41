"""Files that may only grow, checked along the history of a repository.

Each version is compared with the one before it while the history is walked, so that at most two are in memory. Once the challenge seals
what it publishes, only sealed versions are its own. Others are named, and later versions need not continue them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from worker.fairness import commitments
from worker.fairness.verify.own_commits import ABSENT, GROWING, HISTORY, Blobs, Sealed, Step

__all__ = ["GROWING", "HISTORY", "Growth", "Rewrite", "grew", "growth"]


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """A commit after which a file no longer began with its earlier content.

    Attributes:
        path: The file.
        commit: The commit's hash.
        author: The author that the commit names; untrusted text.
    """

    path: str
    commit: str
    author: str


@dataclass(frozen=True, kw_only=True)
class Added:
    """What a sealed commit added to a file that may only grow.

    Attributes:
        path: The file.
        commit: The commit's hash.
        author: The author that the commit names; untrusted text.
        place: The commit's position in the history.
        first: The earliest time in the addition.
        last: The latest time in the addition.
        number: Number of added lines or commitments.
    """

    path: str
    commit: str
    author: str
    place: int
    first: datetime
    last: datetime
    number: int


@dataclass
class Growth:
    """What a history shows about the files that may only grow.

    Attributes:
        rewrites: Changes that did more than add, oldest first.
        foreign: Changes by somebody else, oldest first.
        uncommitted: The history of boards as it was before there was any commitment.
        added: What sealed commits added, file by file.
    """

    rewrites: list[Rewrite] = field(default_factory=list)
    foreign: list[Rewrite] = field(default_factory=list)
    uncommitted: bytes = b""
    added: list[Added] = field(default_factory=list)


def grew(path: str, earlier: bytes, later: bytes) -> bool:
    """Return whether a later version of a file begins with an earlier one.

    Raises:
        ValueError, TypeError, RecursionError: If a version of the list of commitments is not a list.
    """
    if path != commitments.PATH:
        return later.startswith(earlier)
    before, after = (list(json.loads(content or b"[]")) for content in (earlier, later))
    return after[: len(before)] == before


def growth(blobs: Blobs, steps: Sequence[Step], own: Mapping[str, Sealed]) -> Growth:
    """Check the versions in commits, oldest first.

    A sealed version must continue the sealed one before it. Until the first seal, each version must continue that in every parent of its
    commit.

    Args:
        blobs: Reads versions.
        steps: The commits.
        own: The commits that the challenge has sealed.
    """
    found = Growth(uncommitted=blobs.content(_before_commitment(steps)))
    for path in GROWING:
        versions = _Versions(path, blobs, found)
        for place, (step, befores) in enumerate(_changes(steps, path)):
            versions.look(step, befores, own.get(step.commit), place)
    return found


def _times(path: str, earlier: bytes, later: bytes) -> list[datetime]:
    """Return the times in what a later version adds; unreadable ones are reported elsewhere."""
    added: list[Any] = []
    with suppress(ValueError, TypeError, LookupError, RecursionError):
        if path == commitments.PATH:
            added = json.loads(later or b"[]")[len(json.loads(earlier or b"[]")) :]
        else:
            added = [json.loads(line) for line in later[len(earlier) :].splitlines()]
    times = []
    for one in added:
        with suppress(ValueError, TypeError, LookupError):
            times.append(datetime.fromisoformat(one["made_at"]))
    return [moment for moment in times if moment.tzinfo is not None]


def _before_commitment(steps: Sequence[Step]) -> str:
    """Return the last version of the history of boards from before the first commitment."""
    last = ABSENT
    for step in steps:
        if commitments.PATH in step.blobs:
            break
        last = step.blobs.get(HISTORY, last)
    return last


def _changes(steps: Sequence[Step], path: str) -> Iterator[tuple[Step, list[str]]]:
    """Yield the commits that change a file, with its versions in their parents, and all sealed commits."""
    versions: dict[str, str] = {}
    for step in steps:
        after = versions[step.commit] = step.blobs.get(path, ABSENT)
        befores = [versions.get(parent, ABSENT) for parent in step.parents or ("",)]
        yield step, [before for before in befores if before != after]


class _Versions:
    """Follows the versions of one file."""

    def __init__(self, path: str, blobs: Blobs, found: Growth) -> None:
        self._path = path
        self._blobs = blobs
        self._found = found
        self._last: tuple[str, bytes] = (ABSENT, b"")  # the version that was last read
        self._sealed: str | None = None  # the last sealed version

    def look(self, step: Step, befores: Sequence[str], sealed: Sealed | None, place: int) -> None:
        """Check a commit's version, at the commit's position in the history."""
        after = step.blobs.get(self._path, ABSENT)
        if sealed is not None and self._is_sealed(after, sealed):
            if after != self._sealed:
                self._compare(step, befores if self._sealed is None else [self._sealed], after, place)
                self._sealed = after
        elif self._sealed is None:
            self._compare(step, befores, after)
        elif befores and len(befores) >= len(step.parents):
            # a merge that takes one side's version is not counted
            rewrite = Rewrite(path=self._path, commit=step.commit, author=step.author)
            self._found.foreign.append(rewrite)

    def _is_sealed(self, blob: str, sealed: Sealed) -> bool:
        named = sealed.hashes.get(self._path)
        return named is None if blob == ABSENT else named == self._blobs.sha256(blob)

    def _compare(self, step: Step, befores: Sequence[str], after: str, place: int | None = None) -> None:
        for before in befores:
            earlier, later = self._content(before), self._content(after)
            try:
                goes_on = grew(self._path, earlier, later)
            except (ValueError, TypeError, RecursionError):
                goes_on = False
            if not goes_on:
                rewrite = Rewrite(path=self._path, commit=step.commit, author=step.author)
                self._found.rewrites.append(rewrite)
            elif place is not None and (times := _times(self._path, earlier, later)):
                self._found.added.append(
                    Added(
                        path=self._path,
                        commit=step.commit,
                        author=step.author,
                        place=place,
                        first=min(times),
                        last=max(times),
                        number=len(times),
                    )
                )

    def _content(self, blob: str) -> bytes:
        """Return a version's content, and keep it, because the next version begins with it."""
        if blob != self._last[0]:
            self._last = (blob, self._blobs.content(blob))
        return self._last[1]
