"""A bare clone used as an object store: read the tip's files, build a tree and a commit on it, without any work tree.

Nothing is ever checked out, so a symbolic link, a submodule or a strange file name in the remote cannot lead outside; entries of trees
are replaced, never followed. Objects are read and written in this process with GitPython's object database.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path

from git import Actor, Commit, Repo
from git.db import GitDB
from git.exc import GitError
from gitdb import IStream  # type: ignore[import-untyped]
from gitdb.exc import ODBError  # type: ignore[import-untyped]

from leaderboard.gitprocess import CloneDamaged

DIRECTORY, FILE, EXECUTABLE = b"40000", b"100644", b"100755"
_DAMAGE = (GitError, ODBError, OSError, ValueError, IndexError, KeyError, AttributeError, zlib.error)


@dataclass(frozen=True)
class TreeEntry:
    """One line of a git tree; names are bytes, because the organizer's repository may hold any."""

    mode: bytes
    name: bytes
    sha: bytes

    @property
    def sort_key(self) -> bytes:
        """Git's order: folders sort as if their names ended with a slash."""
        return self.name + (b"/" if self.mode == DIRECTORY else b"")


class ObjectStore:
    """Objects of one bare clone."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[ObjectStore]:
        """Open the clone for a while.

        Raises:
            CloneDamaged: It is not a repository, or an object in it cannot be read or written.
        """
        try:
            with Repo(path, odbt=GitDB) as repo:
                yield cls(repo)
        except _DAMAGE as error:
            raise CloneDamaged(f"{type(error).__name__}: {error}") from error

    def has(self, commit: str) -> bool:
        """Say whether the clone holds a commit and can read its tree."""
        try:
            self.tree_of(commit)
        except (*_DAMAGE, CloneDamaged):
            return False
        return True

    def tree_of(self, commit: str) -> bytes:
        """Return the binary name of a commit's tree."""
        kind, data = self._read(bytes.fromhex(commit))
        if kind != b"commit" or not data.startswith(b"tree "):
            raise CloneDamaged(f"{commit} is no commit")
        return bytes.fromhex(data[5:45].decode("ascii"))

    def files(self, tree: bytes | None, paths: tuple[str, ...], folders: tuple[str, ...]) -> dict[str, bytes]:
        """Return the regular files at these root paths and directly inside these root folders.

        What a symbolic link, a submodule or a folder stands for counts as absent.
        """
        found: dict[str, bytes] = {}
        for entry in self._entries(tree):
            name = entry.name.decode(errors="replace")
            if name in paths and entry.mode in (FILE, EXECUTABLE):
                found[name] = self._read(entry.sha)[1]
            elif name in folders and entry.mode == DIRECTORY:
                for inner in self._entries(entry.sha):
                    if inner.mode in (FILE, EXECUTABLE):
                        found[f"{name}/{inner.name.decode(errors='replace')}"] = self._read(inner.sha)[1]
        return found

    def write_tree(self, tree: bytes | None, files: Mapping[str, bytes]) -> bytes:
        """Return the tree with these files in place of whatever stood at their paths; everything else stays."""
        entries = {entry.name: entry for entry in self._entries(tree)}
        folders: dict[str, dict[str, bytes]] = {}
        for path, content in files.items():
            head, slash, rest = path.partition("/")
            if slash:
                folders.setdefault(head, {})[rest] = content
                continue
            name = head.encode()
            old = entries.get(name)
            mode = old.mode if old and old.mode == EXECUTABLE else FILE
            entries[name] = TreeEntry(mode, name, self._store(b"blob", content))
        for folder, inside in folders.items():
            name = folder.encode()
            old = entries.get(name)
            below = old.sha if old and old.mode == DIRECTORY else None
            entries[name] = TreeEntry(DIRECTORY, name, self.write_tree(below, inside))
        lines = (
            b"%b %b\0%b" % (entry.mode, entry.name, entry.sha)
            for entry in sorted(entries.values(), key=lambda e: e.sort_key)
        )
        return self._store(b"tree", b"".join(lines))

    def write_commit(
        self, tree: bytes, parent: str | None, *, message: str, name: str, email: str, at: datetime
    ) -> str:
        """Return a new commit; author and committer are given, so that no configuration is asked."""
        actor = Actor(name, email)
        commit = Commit.create_from_tree(
            self._repo,
            tree.hex(),
            message,
            parent_commits=[self._repo.commit(parent)] if parent else [],
            head=False,
            author=actor,
            committer=actor,
            author_date=at,
            commit_date=at,
        )
        return str(commit.hexsha)

    def _entries(self, tree: bytes | None) -> list[TreeEntry]:
        if tree is None:
            return []
        _, data = self._read(tree)
        entries, start = [], 0
        while start < len(data):
            space, null = data.index(b" ", start), data.index(b"\0", start)
            entries.append(TreeEntry(data[start:space], data[space + 1 : null], data[null + 1 : null + 21]))
            start = null + 21
        return entries

    def _read(self, sha: bytes) -> tuple[bytes, bytes]:
        stream = self._repo.odb.stream(sha)
        return stream.type, stream.read()

    def _store(self, kind: bytes, content: bytes) -> bytes:
        stream = self._repo.odb.store(IStream(kind, len(content), BytesIO(content)))
        return bytes(stream.binsha)
