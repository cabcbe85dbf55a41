"""Files that may only grow, checked along the history of a repository.

The newest version that the challenge has signed must continue every earlier one. The versions of others do not count, but what the
challenge's key has signed in them does: a line of the log, or a commitment.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from worker.challenge.canonical import canonical
from worker.fairness import commitments, receipts, signing
from worker.fairness.signing import is_signed
from worker.fairness.verify.commits import ABSENT, GROWING, HISTORY, Blobs, Own, Step

__all__ = ["GROWING", "HISTORY", "Added", "Growth", "grew", "growth", "signed_in"]
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
Signed = tuple[str, str]
"""A path, and what identifies a part of its content that a key has signed."""


@dataclass(frozen=True, kw_only=True)
class Added:
    """What a signed commit added to a file that may only grow.

    Attributes:
        path: The file.
        step: The commit.
        place: The commit's position in the history.
        times: The times in the addition, one for each line or commitment.
    """

    path: str
    step: Step
    place: int
    times: tuple[datetime, ...]


@dataclass
class Growth:
    """What a history shows about the files that may only grow.

    Attributes:
        dropped: File to the last commit of the challenge whose version the newest one does not continue.
        uncommitted: The history of boards as it was before there was any commitment.
        added: What signed commits added, file by file.
        signed: What the challenge's key has signed in the versions of others, and the commits that added it.
    """

    dropped: dict[str, Step] = field(default_factory=dict)
    uncommitted: bytes = b""
    added: list[Added] = field(default_factory=list)
    signed: list[tuple[Signed, Step]] = field(default_factory=list)


def grew(path: str, earlier: bytes, later: bytes) -> bool:
    """Return whether a later version of a file begins with an earlier one."""
    if path != commitments.PATH:
        return later.startswith(earlier)
    before, after = (list(_documents(path, content)) for content in (earlier, later))
    return after[: len(before)] == before


def growth(blobs: Blobs, steps: Sequence[Step], own: Own, newest: Step, below: Collection[str]) -> Growth:
    """Check the versions in commits.

    Args:
        blobs: Reads versions.
        steps: The commits, oldest first.
        own: Those that the challenge has signed.
        newest: The newest of them.
        below: Hashes of the newest and of those before it.
    """
    found = Growth(uncommitted=blobs.content(_before_commitment(steps)))
    keys = blobs.keys(newest.blobs.get(commitments.PATH, ABSENT))
    signed = [place for place, step in enumerate(steps) if step.commit in own.steps]
    # Commits in which other signatures count are read separately, because only what is new in a version is looked at.
    unsigned = defaultdict[tuple[bool, tuple[str, ...]], list[int]](list)
    for place in sorted(set(range(len(steps))).difference(signed)):
        commit = steps[place].commit
        unsigned[commit in below, tuple(key for key in keys if own.may_sign(key, commit))].append(place)
    for path in GROWING:
        final = blobs.content(newest.blobs.get(path, ABSENT))
        for place, before, content in _versions(blobs, steps, signed, path):
            if not grew(path, content, final):
                found.dropped[path] = steps[place]
            elif grew(path, before, content) and (times := _times(path, before, content)):
                found.added.append(Added(path=path, step=steps[place], place=place, times=times))
        known = signed_in(path, final, keys)
        for (_, valid), places in unsigned.items():
            for place, before, content in _versions(blobs, steps, places, path):
                signed_here = signed_in(path, _fresh(path, before, content), valid)
                found.signed += [(one, steps[place]) for one in signed_here - known]
    return found


def _versions(
    blobs: Blobs, steps: Sequence[Step], places: Sequence[int], path: str
) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield those of some commits in which a file changes: position, content in the one before, and content."""
    last, before = ABSENT, b""
    for place in places:
        version = steps[place].blobs.get(path, ABSENT)
        if version != last:
            content = blobs.content(version)
            yield place, before, content
            last, before = version, content


def signed_in(path: str, content: bytes, keys: Collection[str]) -> set[Signed]:
    """Return what some of the keys have signed in a file."""
    found = set[Signed]()
    for document in _documents(path, content):
        with suppress(*UNREADABLE):
            signature, kind, body = document.pop("signature"), signing.COMMITMENT, document
            if path == receipts.PATH:
                kind, body = receipts.BATCH, document["head"]
            if any(is_signed(key, kind, body, signature) for key in keys):
                found.add((path, canonical(body).decode()))
    return found


def _documents(path: str, content: bytes) -> Iterator[Any]:
    """Yield what can be read in a file: the commitments, or the lines."""
    for piece in [content] if path == commitments.PATH else content.splitlines():
        with suppress(*UNREADABLE):
            document = json.loads(piece)
            yield from document if path == commitments.PATH else [document]


def _fresh(path: str, earlier: bytes, later: bytes) -> bytes:
    """Return a later version without the whole lines of an earlier one that it begins with."""
    return later if path == commitments.PATH else later.removeprefix(earlier[: earlier.rfind(b"\n") + 1])


def _times(path: str, earlier: bytes, later: bytes) -> tuple[datetime, ...]:
    """Return the times in what a later version adds; unreadable ones are reported elsewhere."""
    known = len(list(_documents(path, earlier))) if path == commitments.PATH else 0
    times = []
    for document in islice(_documents(path, _fresh(path, earlier, later)), known, None):
        with suppress(*UNREADABLE):
            times.append(datetime.fromisoformat(document["made_at"]))
    return tuple(moment for moment in times if moment.tzinfo is not None)


def _before_commitment(steps: Sequence[Step]) -> str:
    """Return the last version of the history of boards from before the first commitment."""
    last = ABSENT
    for step in steps:
        if commitments.PATH in step.blobs:
            break
        last = step.blobs.get(HISTORY, last)
    return last
