"""Files that may only grow, seen through the history of a repository.

Each version is compared with the one before it while the history is walked, so that no more than two are in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import git

from worker.fairness import commitments, receipts
from worker.fairness.canonical import is_prefix

HISTORY = "leaderboard/history.jsonl"
GROWING = (commitments.PATH, receipts.PATH, HISTORY)
_ABSENT = "0" * 40


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """A commit after which a file no longer began with what it held before.

    Attributes:
        path: The file.
        commit: The commit's hash.
        author: Who made it, as it says itself; text of others.
    """

    path: str
    commit: str
    author: str


@dataclass
class Growth:
    """What a history shows of the files that may only grow.

    Attributes:
        versions: Path to the number of its versions.
        rewrites: Where one of them did anything but grow, oldest first.
        uncommitted: The history of boards as it stood before there was any commitment.
    """

    versions: Counter[str] = field(default_factory=Counter)
    rewrites: list[Rewrite] = field(default_factory=list)
    uncommitted: bytes = b""


def grew(path: str, earlier: bytes, later: bytes) -> bool:
    """Tell whether a later version of a file begins with an earlier one.

    Raises:
        ValueError, TypeError, RecursionError: If a version of the list of commitments is no list.
    """
    if path != commitments.PATH:
        return later.startswith(earlier)
    before, after = (json.loads(content or b"[]") for content in (earlier, later))
    return is_prefix(before, after)


def growth(repository: git.Repo, tip: str) -> Growth:
    """Walk all commits up to a tip; each version must go on from that in every parent of its commit."""
    found, last = Growth(), dict[str, tuple[str, bytes]]()
    for change in _changes(repository, tip):
        earlier = _content(repository, last, change.path, change.before)
        later = _content(repository, last, change.path, change.after)
        found.versions[change.path] += 1
        if change.path == HISTORY and not found.versions[commitments.PATH]:
            found.uncommitted = later
        try:
            goes_on = grew(change.path, earlier, later)
        except (ValueError, TypeError, RecursionError):
            goes_on = False
        if not goes_on:
            found.rewrites.append(Rewrite(path=change.path, commit=change.commit, author=change.author))
    return found


@dataclass(frozen=True, kw_only=True)
class _Change:
    commit: str
    author: str
    path: str
    before: str
    after: str


def _changes(repository: git.Repo, tip: str) -> Iterator[_Change]:
    """Yield what each commit changed of the files, against each of its parents, oldest first."""
    said = repository.git.log(
        *("--reverse", "--topo-order", "--full-history", "-m", "--raw", "--no-abbrev", "--no-renames"),
        *("--format=%H%x00%an", tip, "--", *GROWING),
    )
    commit = author = ""
    for line in said.split("\n"):  # an author's name may hold what else ends a line
        if line.startswith(":"):
            facts, path = line.split("\t", 1)
            _, _, before, after, _ = facts.split(" ")
            yield _Change(commit=commit, author=author, path=path, before=before, after=after)
        elif "\0" in line:
            commit, author = line.split("\0", 1)


def _content(repository: git.Repo, last: dict[str, tuple[str, bytes]], path: str, blob: str) -> bytes:
    """Return a version's content, and keep it as the file's last: the next change begins with it."""
    if blob == _ABSENT:
        return b""
    if path not in last or last[path][0] != blob:
        last[path] = (blob, repository.odb.stream(bytes.fromhex(blob)).read())
    return last[path][1]
