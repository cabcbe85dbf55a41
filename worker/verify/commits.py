"""The challenge's own commits, which are signed with its key, and what they show about the files that may only grow.

Anyone who may push can add commits, or merge older ones again. None of that is the challenge's, and none of it may count against its
organizers. The newest version that the challenge has signed must continue every earlier one. The versions of others do not count, but what
the challenge's key has signed in them does: a line of the log, or a commitment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, lru_cache
from itertools import islice, takewhile
from typing import Any

from leaderboard.git import OWN_FILES, OWN_FOLDERS, Repository, without_signature
from scoring.documents import canonical
from worker.fairness import commitments, receipts, signing
from worker.fairness.signing import is_signed, signing_key
from worker.verify.verdict import UNREADABLE

HISTORY = "leaderboard/history.jsonl"
SIGNED = (commitments.PATH, receipts.PATH)
"""Files with parts that the key has signed."""
GROWING = (*SIGNED, HISTORY)
Signed = tuple[str, str]
"""A path, and what identifies a part of its content that a key has signed."""
ABSENT = ""
REVEAL = re.compile(r"reveal/[^/\n]+/reveal\.json")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A commit, and its versions of the files that may only grow, and of the reveals.

    Attributes:
        commit: Its hash.
        at: The time that it states.
        author: The author that it names; untrusted text.
        parents: The hashes of the commits before it.
        key: The key that has signed it; None if it has no signature of our form.
        blobs: Path to the object that it has there.
    """

    commit: str
    at: datetime
    author: str
    parents: tuple[str, ...]
    key: str | None
    blobs: Mapping[str, str]


class Blobs:
    """Reads objects; keeps the keys that they name, and the content that was read last.

    Args:
        repository: The repository to read.

    Attributes:
        content: Returns an object's content; nothing if the file is absent.
        key: Returns the key that has signed a list of commitments, or None.
    """

    def __init__(self, repository: Repository) -> None:
        self.content = lru_cache(maxsize=1)(lambda blob: b"" if blob == ABSENT else repository.content(blob))
        self.key = cache(lambda blob: signing.challenge_key(self.content(blob)))


def walk(repository: Repository, tip: str) -> list[Step]:
    """Return all commits up to a tip, oldest first."""
    paths = (*GROWING, *filter(REVEAL.fullmatch, repository.files(tip)))
    names = repository.commits(tip)
    blobs = iter(repository.blobs((name, path) for name in names for path in paths))
    steps = []
    for commit in map(repository.commit, names):
        versions = zip(paths, blobs, strict=False)
        steps.append(
            Step(
                commit=commit.name,
                at=commit.at,
                author=commit.author,
                parents=commit.parents,
                key=signing_key(*without_signature(commit.content)),
                blobs={path: blob for path, blob in versions if blob},
            )
        )
    return steps


@dataclass(frozen=True, kw_only=True)
class Own:
    """The commits that the challenge has signed.

    Attributes:
        steps: Hash to commit, oldest first.
    """

    steps: Mapping[str, Step]

    def newest(self, steps: Sequence[Step]) -> Step | None:
        """Return the newest of them; None if there is none.

        It is the one that all others come before. If somebody has merged a commit that a forced push had removed, it is the later of both.

        Args:
            steps: All commits, oldest first.
        """
        heads, before = list[Step](), set[str]()
        for step in reversed(steps):
            if step.commit in self.steps and step.commit not in before:
                heads.append(step)
            if step.commit in self.steps or step.commit in before:
                before.update(step.parents)
        return max(heads, key=lambda step: step.at, default=None)


def own_commits(blobs: Blobs, steps: Sequence[Step]) -> Own:
    """Return the commits that were signed with the challenge's key, which the first signed commit defines.

    Args:
        blobs: Reads versions.
        steps: All commits, oldest first.
    """
    signed: dict[str, Step] = {}
    challenge_key = None
    for step in steps:
        if step.key is None or step.key != blobs.key(step.blobs.get(commitments.PATH, ABSENT)):
            continue
        challenge_key = challenge_key or step.key
        if step.key == challenge_key:
            signed[step.commit] = step
    return Own(steps=signed)


@dataclass(frozen=True, kw_only=True)
class Added:
    """What a signed commit added to a file that may only grow, or a reveal.

    Attributes:
        path: The file.
        step: The commit.
        place: The commit's position in the history.
        times: The times in the addition, one for each line or commitment, or the reveal's.
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
        boards_first: Whether there were boards before there was any commitment.
        added: What signed commits added, file by file.
        signed: What the challenge's key has signed in the versions of others, and the commits that added it.
    """

    boards_first: bool
    dropped: dict[str, Step] = field(default_factory=dict)
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
    uncommitted = takewhile(lambda step: commitments.PATH not in step.blobs, steps)
    result = Growth(boards_first=any(blobs.content(step.blobs.get(HISTORY, ABSENT)) for step in uncommitted))
    key = blobs.key(newest.blobs.get(commitments.PATH, ABSENT))
    reveals = newest.blobs.keys() - set(GROWING)
    for path in (*GROWING, *sorted(reveals)):
        final, before, last = blobs.content(newest.blobs.get(path, ABSENT)), b"", ABSENT
        versions: set[str] = set()
        others: dict[tuple[bool, str], Step] = {}
        for place, step in enumerate(steps):
            version = step.blobs.get(path, ABSENT)
            if step.commit not in own.steps:
                others.setdefault((step.commit in below, version), step)
            elif version != last:
                content = blobs.content(version)
                if path not in reveals and not grew(path, content, final):
                    result.dropped[path] = step
                elif (version not in versions if path in reveals else grew(path, before, content)) and (
                    times := _times(path, before, content)
                ):
                    result.added.append(Added(path=path, step=step, place=place, times=times))
                last, before = version, content
                versions.add(version)  # a restored backup publishes an earlier reveal again
        kept = signed_in(path, final, key)
        for (_, version), step in others.items():
            result.signed += [(part, step) for part in signed_in(path, blobs.content(version), key) - kept]
    return result


def signed_in(path: str, content: bytes, key: str | None) -> set[Signed]:
    """Return what a key has signed in a file."""
    signed = set[Signed]()
    if key is None or path not in SIGNED:  # a copy in another file is nothing that was published there
        return signed
    for document in _documents(path, content):
        with suppress(*UNREADABLE):
            signature, kind, body = document.pop("signature"), signing.COMMITMENT, document
            if path == receipts.PATH:
                kind, body = receipts.BATCH, document["head"]
            if is_signed(key, kind, body, signature):
                signed.add((path, canonical(body).decode()))
    return signed


def _documents(path: str, content: bytes) -> Iterator[Any]:
    """Yield what can be read in a file: the commitments, the lines, or the reveal."""
    for piece in content.splitlines() if path.endswith(".jsonl") else [content]:
        with suppress(*UNREADABLE):
            document = json.loads(piece)
            yield from document if path == commitments.PATH else [document]


def _fresh(path: str, earlier: bytes, later: bytes) -> bytes:
    """Return a later version without the whole lines of an earlier one that it begins with."""
    if not path.endswith(".jsonl"):
        return later
    return later.removeprefix(earlier[: earlier.rfind(b"\n") + 1])


def _times(path: str, earlier: bytes, later: bytes) -> tuple[datetime, ...]:
    """Return the times in what a later version adds; unreadable ones are reported elsewhere."""
    earlier_number = len(list(_documents(path, earlier))) if path == commitments.PATH else 0
    times = []
    for document in islice(_documents(path, _fresh(path, earlier, later)), earlier_number, None):
        with suppress(*UNREADABLE):
            times.append(
                datetime.fromisoformat(document["revealed_at" if REVEAL.fullmatch(path) else "made_at"])
            )
    return tuple(moment for moment in times if moment.tzinfo is not None)


# What GitHub and GitLab show instead of our README.md or page, and what changes how they serve them.
_SERVED = re.compile(
    r"((\.github|docs)/)?readme(\.[^/]+)?|(docs/|public/)?([^/]+\.x?html?|index\.md|CNAME|\.nojekyll|_.+)",
    re.IGNORECASE,
)


def is_own(path: str) -> bool:
    """Return whether a worker publishes a file at this path; it leaves nothing of others in its folders."""
    return path in OWN_FILES or path.startswith(tuple(f"{folder}/" for folder in OWN_FOLDERS))


def is_served(path: str) -> bool:
    """Return whether a file, if it is changed, added or removed, can change what visitors see."""
    return is_own(path) or _SERVED.fullmatch(path) is not None
