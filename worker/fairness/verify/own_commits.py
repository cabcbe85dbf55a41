"""The challenge's own commits: their seal is signed with its key, and does not repeat an older one.

Anyone who may push can add to them, remove the additions, or push an older state again. None of that is the challenge's, and none of it
may count against its organizers.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import git

from worker.fairness import commitments, receipts, seal, succession

HISTORY = "leaderboard/history.jsonl"
GROWING = (commitments.PATH, receipts.PATH, HISTORY)
ABSENT = ""
TRIES = 100  # commits with the same seal to look through
_REGULAR = ("100644", "100755")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A commit, and its versions of the files that show whose it is.

    Attributes:
        commit: Its hash.
        author: The author that the commit names; untrusted text.
        parents: The hashes of the commits before it.
        blobs: Path to the object that it has there.
    """

    commit: str
    author: str
    parents: tuple[str, ...]
    blobs: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """The content of a signed seal that shows whose a commit is.

    Attributes:
        key: The key that has signed it.
        made_at: The time that the seal states.
        hashes: Path to SHA-256, for the files that may only grow.
    """

    key: str
    made_at: datetime
    hashes: Mapping[str, str]


class Blobs:
    """Reads objects; caches their hashes and seals, and the content that was read last.

    Versions of a growing file are read one after another. Each begins with the one before it, so only the addition is hashed.
    """

    def __init__(self, repository: git.Repo) -> None:
        self._repository = repository
        self._last = (ABSENT, b"")
        self._hashed = (b"", hashlib.sha256())
        self._hashes: dict[str, str] = {}
        self._keys: dict[str, tuple[str, ...]] = {}
        self._seals: dict[str, Sealed | None] = {}

    def content(self, blob: str) -> bytes:
        """Return the content; empty if the file is absent."""
        if blob == ABSENT:
            return b""
        if blob != self._last[0]:
            self._last = (blob, bytes(self._repository.odb.stream(bytes.fromhex(blob)).read()))
        return self._last[1]

    def sha256(self, blob: str) -> str:
        """Return the SHA-256 that a seal names."""
        if blob not in self._hashes:
            content, (before, hashed) = self.content(blob), self._hashed
            goes_on = content.startswith(before)
            digest = hashed.copy() if goes_on else hashlib.sha256()
            digest.update(memoryview(content)[len(before) if goes_on else 0 :])
            self._hashed = (content, digest)
            self._hashes[blob] = digest.hexdigest()
        return self._hashes[blob]

    def keys(self, blob: str) -> tuple[str, ...]:
        """Return the keys that a list of commitments names."""
        if blob not in self._keys:
            self._keys[blob] = succession.keys_of(self.content(blob))
        return self._keys[blob]

    def sealed(self, blob: str) -> Sealed | None:
        """Return a seal's content; None if it is no seal."""
        if blob not in self._seals:
            document = seal.read(self.content(blob))
            self._seals[blob] = None if document is None else _sealed(document)
        return self._seals[blob]


def _sealed(document: Mapping[str, Any]) -> Sealed | None:
    try:
        made_at = datetime.fromisoformat(document["made_at"])
        if made_at.tzinfo is None:
            return None
        hashes = {path: str(document["files"][path]) for path in GROWING if path in document["files"]}
    except (LookupError, ValueError, TypeError):
        return None
    return Sealed(key=str(document["key"]), made_at=made_at, hashes=hashes)


def walk(repository: git.Repo, tip: str) -> list[Step]:
    """Return all commits up to a tip, oldest first."""
    said = repository.git.log("--reverse", "--topo-order", "--format=%H%x00%P%x00%an", tip)
    # An author's name may contain other line breaks.
    commits = [line.split("\0", 2) for line in said.split("\n") if line.count("\0") >= 2]
    paths = (*GROWING, seal.PATH)
    with tempfile.TemporaryFile() as asked:
        asked.writelines(f"{commit}:{path}\n".encode() for commit, _, _ in commits for path in paths)
        asked.seek(0)
        answers = repository.git.cat_file(
            "--batch-check=%(objecttype) %(objectname)", istream=asked
        ).splitlines()
    found = []
    for place, (commit, parents, author) in enumerate(commits):
        own = zip(paths, answers[place * len(paths) : (place + 1) * len(paths)], strict=True)
        blobs = {path: said.split(" ")[1] for path, said in own if said.startswith("blob ")}
        found.append(Step(commit=commit, author=author, parents=tuple(parents.split()), blobs=blobs))
    return found


def own_commits(blobs: Blobs, steps: Sequence[Step]) -> dict[str, Sealed]:
    """Return the commits with a new seal of the challenge, and the seal; files other than the commitments may differ from it.

    The first sealed commit defines the challenge's key, and each key signs the next one. A seal with an earlier time than the one before it
    was pushed again by somebody who can read it but cannot sign.
    """
    found: dict[str, Sealed] = {}
    known: tuple[str, ...] = ()
    newest: datetime | None = None
    for step in steps:
        sealed = blobs.sealed(step.blobs.get(seal.PATH, ABSENT))
        listed = step.blobs.get(commitments.PATH, ABSENT)
        if sealed is None or sealed.hashes.get(commitments.PATH) != blobs.sha256(listed):
            continue
        keys = blobs.keys(listed)
        if not keys or keys[: len(known)] != known or sealed.key != keys[-1]:
            continue
        if newest is None or sealed.made_at >= newest:
            known, newest = keys, sealed.made_at
            found[step.commit] = sealed
    return found


def newest_sealed(
    repository: git.Repo, blobs: Blobs, steps: Sequence[Step], own: Mapping[str, Sealed]
) -> tuple[str, frozenset[str]] | None:
    """Return the newest commit of the challenge whose files are all as sealed, and their paths; None if there is none."""
    groups: dict[str, list[Step]] = {}
    for step in steps:
        if step.commit in own:
            groups.setdefault(step.blobs[seal.PATH], []).append(step)
    for blob, (first, *rest) in reversed(groups.items()):
        named = json.loads(blobs.content(blob))["files"]
        for step in [*rest[: -TRIES - 1 : -1], first]:
            held = dict(_tree(repository, step.commit))
            if all(path in held and blobs.sha256(held[path]) == name for path, name in named.items()):
                return step.commit, frozenset(named)
    return None


def _tree(repository: git.Repo, commit: str) -> Iterator[tuple[str, str]]:
    """Yield path and object of each regular file, without symbolic links."""
    for line in repository.git.ls_tree("-r", "-z", "--full-tree", commit).split("\0"):
        facts, _, path = line.partition("\t")
        if facts.startswith(_REGULAR):
            yield path, facts.split(" ")[2]


def reveals(
    repository: git.Repo, commits: Sequence[str], own: Collection[str], files: Mapping[str, bytes]
) -> dict[str, int]:
    """Return for each phase the position of the challenge's first commit whose reveal has the present reveal's time.

    A reveal is written again, with its time, when a later commitment is opened in it.

    Args:
        repository: The repository to read.
        commits: Their hashes, oldest first.
        own: The commits that the challenge has sealed.
        files: Path to present content.
    """
    found: dict[str, int] = {}
    for path in files:
        if not path.startswith("reveal/") or not path.endswith("/reveal.json"):
            continue
        if (told := _told(files[path])) is None:
            continue
        touched = set(repository.git.log("--format=%H", commits[-1], "--", path).split())
        for place, commit in enumerate(commits):
            if commit in touched and commit in own and _told(_blob(repository, commit, path)) == told:
                found[path.split("/")[1]] = place
                break
    return found


def _told(content: bytes) -> object:
    """Return the time of a reveal; None if it cannot be read."""
    try:
        return json.loads(content)["revealed_at"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _blob(repository: git.Repo, commit: str, path: str) -> bytes:
    try:
        return bytes((repository.commit(commit).tree / path).data_stream.read())
    except KeyError:
        return b""
