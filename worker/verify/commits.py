"""The challenge's commits among all that can be reached from the tip, and what they show about the files that may only grow.

Anyone who may push can add commits, roots and merges. A key claims the repository if it has signed a commit whose commitment.json names it.
The commits of the challenge's key are the challenge's, in the order in which its files grow; no other commit counts, wherever it is in the
history. What the challenge's key has signed in the files of others does: a line of the log, or a commitment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import islice

from leaderboard.git import OWN_FILES, OWN_FOLDERS, Blob, Repository, without_signature
from leaderboard.rendering import HISTORY
from scoring.documents import UNREADABLE
from worker.challenge.signing import challenge_key, signing_key
from worker.fairness import commitments
from worker.fairness.published import LARGE_BYTES, SIGNED, Signed, documents, signed_in

GROWING = (*SIGNED, HISTORY)
ABSENT = Blob(name="", size=0)
REVEAL = re.compile(r"reveal/[^/\n]+/reveal\.json")


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """A commit, and its versions of the files that may only grow; there is one of each in an opened repository.

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
    blobs: Mapping[str, Blob]

    def version(self, path: str) -> Blob:
        """Return the object that it has at a path of these."""
        return self.blobs.get(path, ABSENT)

    @property
    def extent(self) -> tuple[int, ...]:
        """The lengths of these files, by which the versions of one challenge are ordered."""
        return tuple(self.version(path).size for path in GROWING)

    def __str__(self) -> str:
        """Return how a report names it."""
        return f"commit {self.commit[:10]} by {self.author}"


def content(repository: Repository, blob: Blob) -> bytes:
    """Return an object's content; nothing if the file is absent."""
    return b"" if blob == ABSENT else repository.content(blob.name)


def walk(repository: Repository, tip: str) -> list[Step]:
    """Return all commits up to a tip, oldest first."""
    names = repository.commits(tip)
    versions = versions_in(repository, names, GROWING)
    return [
        Step(
            commit=commit.name,
            at=commit.at,
            author=commit.author,
            parents=commit.parents,
            key=signing_key(*without_signature(commit.content)),
            blobs=blobs,
        )
        for commit, blobs in zip(map(repository.commit, names), versions, strict=True)
    ]


def versions_in(
    repository: Repository, commits: Sequence[str], paths: Sequence[str]
) -> Iterator[Mapping[str, Blob]]:
    """Yield for each commit the objects that it has at these paths."""
    blobs = iter(repository.blobs((name, path) for name in commits for path in paths))
    for _ in commits:
        yield {path: blob for path, blob in zip(paths, islice(blobs, len(paths)), strict=True) if blob}


def claims(repository: Repository, steps: Sequence[Step]) -> dict[str, list[Step]]:
    """Return the keys that have signed a commit whose commitment.json names them, with these commits, oldest first.

    Args:
        repository: The repository.
        steps: All commits, oldest first.
    """
    named = cache(lambda blob: challenge_key(content(repository, blob)))  # few commits change this file
    signed: dict[str, list[Step]] = {}
    for step in steps:
        listed = step.version(commitments.PATH)
        if step.key is not None and listed.size <= LARGE_BYTES and step.key == named(listed):
            signed.setdefault(step.key, []).append(step)
    return {key: sorted(own, key=lambda step: step.extent) for key, own in signed.items()}


def newest(steps: Sequence[Step], own: Collection[Step]) -> Step | None:
    """Return the newest of the challenge's commits; None if there is none.

    It is the one that all others come before. If somebody has merged a commit that a forced push had removed, it is the longer of both,
    or else the later.

    Args:
        steps: All commits, oldest first.
        own: The challenge's.
    """
    names = {step.commit for step in own}
    heads, before = list[Step](), set[str]()
    for step in reversed(steps):
        if step.commit in names and step.commit not in before:
            heads.append(step)
        if step.commit in names or step.commit in before:
            before.update(step.parents)
    return max(heads, key=lambda step: (step.extent, step.at), default=None)


def shortened(repository: Repository, steps: Sequence[Step], own: Collection[Step]) -> dict[str, Step]:
    """Return the files that may only grow, and of each the last of the challenge's commits that lacks something of one before it.

    Args:
        repository: The repository.
        steps: All commits, oldest first.
        own: The challenge's.
    """
    names, lacking = {step.commit for step in own}, dict[str, Step]()
    reached: dict[str, dict[str, Blob]] = {}  # by commit: the longest versions in it and before it
    for step in steps:
        before = [reached[parent] for parent in step.parents if parent in reached]
        longest = {
            path: max((versions[path] for versions in before), key=lambda blob: blob.size, default=ABSENT)
            for path in GROWING
        }
        for path, earlier in longest.items() if step.commit in names else ():
            here = step.version(path)
            shorter = here.size < earlier.size
            if shorter and not grew(path, content(repository, earlier), content(repository, here)):
                lacking[path] = step
            else:
                longest[path] = here
        reached[step.commit] = longest
    return lacking


def grew(path: str, earlier: bytes, later: bytes) -> bool:
    """Return whether a later version of a file begins with an earlier one."""
    if path != commitments.PATH:
        return later.startswith(earlier)
    before, after = (list(documents(path, content)) for content in (earlier, later))
    return after[: len(before)] == before


def signed_by_others(
    repository: Repository, others: Sequence[Step], checked: Step, below: Collection[str]
) -> Iterator[tuple[Signed, Step]]:
    """Yield what the challenge's key has signed in the commits of others, and the newest version lacks.

    Args:
        repository: The repository.
        others: The commits that are not the challenge's, oldest first.
        checked: The newest of the challenge's.
        below: Hashes of that one and of those before it.
    """
    key = challenge_key(content(repository, checked.version(commitments.PATH)))
    for path in SIGNED:
        kept = signed_in(path, content(repository, checked.version(path)), key)
        most = checked.version(path).size + 8 * LARGE_BYTES  # what is longer was not made by the challenge
        first = {(step.commit in below, step.version(path)): step for step in reversed(others)}
        for (_, version), step in first.items():
            if version.size <= most:
                for part in signed_in(path, content(repository, version), key) - kept:
                    yield part, step


def times_added(path: str, earlier: bytes, later: bytes) -> tuple[datetime, ...]:
    """Return the times in what a later version adds; unreadable ones are reported elsewhere."""
    if path.endswith(".jsonl"):  # a file of many lines, of which the earlier ones were read before
        earlier, later = b"", later.removeprefix(earlier[: earlier.rfind(b"\n") + 1])
    times = []
    for document in islice(documents(path, later), len(list(documents(path, earlier))), None):
        with suppress(*UNREADABLE):
            times.append(
                datetime.fromisoformat(document["revealed_at" if REVEAL.fullmatch(path) else "made_at"])
            )
    return tuple(moment for moment in times if moment.tzinfo is not None)


# What GitHub and GitLab show instead of our README.md or page, and what changes how they serve them.
_SERVED = re.compile(
    r"((\.github|docs)/)?readme(\.[^/]+)?|(docs/|public/)?([^/]+\.x?html?|(index|404)\.md|CNAME|\.nojekyll|_.+)|branch gh-pages",
    re.IGNORECASE,
)


def is_own(path: str) -> bool:
    """Return whether a worker publishes a file at this path; it leaves nothing of others in its folders."""
    return path in OWN_FILES or path.partition("/")[0] in OWN_FOLDERS


def is_served(path: str) -> bool:
    """Return whether a file, if it is changed, added or removed, can change what visitors see."""
    return is_own(path) or _SERVED.fullmatch(path) is not None
