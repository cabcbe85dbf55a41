"""A bare clone that reads files at the branch's tip and writes commits, without a work tree.

Nothing is ever checked out, so a symbolic link, a submodule or a strange file name in the remote cannot lead outside. Entries of trees are
replaced, never followed. One ``git fast-import`` writes a commit, and leaves all other files as they are, except in folders of our own.
"""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from leaderboard.git.objects import read_files, read_object, read_paths, with_signature, without_signature
from leaderboard.git.process import FETCH, GitProcess
from leaderboard.git.remote import CloneDamaged
from scoring.errors import InfrastructureError, OrganizerError

TIP = "refs/neuco/tip"  # the last commit that was fetched or made; keeps its objects in the clone
AUTHOR = "neuco-worker <neuco-worker@users.noreply.github.com>"
FILES = "refs/heads/files"  # where reveals publish the files that are too large for the branch of the board
SHOWN = 3  # commits of others that are named
NEAR = 16  # how many commits are searched for our last one first, which is cheap and nearly always enough
DEEP = 4096  # how many are searched for any of ours, if none was pushed last
PACKS = 50  # more are joined
WHOLE = 2**31 - 1  # git's own number for all of them
# This excludes ".", "..", ".git", and characters that need quoting.
_PATH = re.compile(r"\.gitattributes|[0-9A-Za-z_-][0-9A-Za-z._-]*(/[0-9A-Za-z_-][0-9A-Za-z._-]*)*")


Sign = Callable[[bytes], bytes]
"""Returns the armored signature of a commit object without its signature; always the same one, by which our commits are recognized."""


class BareClone:
    """One branch of a remote, usually one commit deep; a cache that may be deleted at any time."""

    def __init__(self, path: Path, git: GitProcess, *, branch: str) -> None:
        self.path = path
        self._git = git
        self._ref = f"refs/heads/{branch}"

    def discard(self) -> None:
        """Remove the clone."""
        shutil.rmtree(self.path, ignore_errors=True)

    def fetch(self, last: str | None = None) -> tuple[str | None, str | None, str | None]:
        """Fetch the branch.

        Args:
            last: A commit that was fetched or pushed before, which is not fetched again.

        Returns:
            Its tip, the name of the branch that a clone of the remote shows, and the tip of ``FILES``; None for what does not exist yet.

        Raises:
            CloneDamaged: The clone cannot be read or written.
        """
        is_new = self._begin()
        listed = self._remotely(
            "ls-remote", "--symref", "--", self._git.remote.url, "HEAD", self._ref, FILES
        ).decode("utf-8", "replace")
        lines = (r"ref: refs/heads/(\S+)\tHEAD", rf"(\w+)\t{re.escape(self._ref)}", rf"(\w+)\t{FILES}")
        matches = (re.search(f"^{line}$", listed, re.MULTILINE) for line in lines)
        shown, tip, files = (match and match[1] for match in matches)
        if tip is not None and (is_new or tip != last):
            self._fetch(depth=1)
            tip = self._git.run("rev-parse", "--verify", TIP, clone=self.path).decode().strip()
        return tip, shown, files

    def _begin(self) -> bool:
        """Make an empty clone if there is none, and return whether there was none."""
        if (self.path / "HEAD").is_file():
            return False
        self.discard()
        try:
            self.path.mkdir(parents=True)
        except OSError as error:
            raise CloneDamaged from error
        # The format of git's servers, whatever git's default is.
        options = ("--quiet", "--bare", "--template=", "--object-format=sha1")
        self._git.run("init", *options, "--", str(self.path), clone=self.path)
        return True

    def _fetch(self, *, depth: int) -> None:
        self._remotely("fetch", f"--depth={depth}", *FETCH, self._git.remote.url, f"+{self._ref}:{TIP}")

    def newest_own(self, last: str | None, tip: str | None, sign: Sign) -> tuple[str | None, bool]:
        """Return our newest commit, and whether the branch still contains the one that was pushed last.

        Args:
            last: The commit that was pushed last; None if none was, as far as is known.
            tip: The tip of the branch.
            sign: Recognizes commits that were pushed after it, before the push was recorded.

        Returns:
            Without a branch that contains it, the one that was pushed last, or None if it is gone.
        """
        for depth in (NEAR, DEEP if last is None else WHOLE) if tip is not None else ():
            self._fetch(depth=depth)
            below = self._commits(str(tip))
            if last is None or last in below:
                newer = below if last is None else self._commits("--ancestry-path", f"{last}..{tip}")
                for commit, content in zip(newer, self._objects(newer), strict=True):
                    payload, signature = without_signature(content)
                    if signature == sign(payload):
                        return commit, True
                if last is not None:
                    return last, True
            if len(below) < depth:  # the whole branch is here
                break
        return last if last is not None and self._holds(last) else None, last is None

    def _commits(self, *which: str) -> list[str]:
        return self._git.run("rev-list", *which, "--", clone=self.path).decode().split()

    def changed(self, before: str, after: str) -> tuple[str, ...]:
        """Return the files and folders at the top that differ between two commits."""
        options = ("-z", "--no-renames", "--name-only")
        return read_paths(self._git.run("diff-tree", *options, before, after, clone=self.path))

    def authors(self, before: str, after: str, paths: Iterable[str]) -> str:
        """Return hash and author (untrusted text) of the newest commits that changed some files, as the part of a sentence."""
        options = (f"--max-count={SHOWN}", "--format=commit %h by %an", "--abbrev=10", f"{before}..{after}")
        log = self._git.run("log", *options, "--", *paths, clone=self.path)
        return "; ".join(log.decode(errors="replace").splitlines())

    def files(self, commit: str | None, paths: tuple[str, ...], folders: tuple[str, ...]) -> dict[str, bytes]:
        """Return the regular files at these paths and directly inside these folders.

        Symbolic links, submodules and folders count as absent.
        """
        wanted = (*paths, *(f"{folder}/" for folder in folders))
        if commit is None or not wanted:
            return {}
        listed = self._git.run("ls-tree", "-z", "-l", "--full-tree", commit, "--", *wanted, clone=self.path)
        blobs = read_files(listed)
        return dict(zip(blobs, self._objects([blob.name for blob in blobs.values()]), strict=True))

    def paths(self, commit: str | None, places: Iterable[str]) -> tuple[str, ...]:
        """Return the paths of everything at or below these places, whatever it is."""
        if commit is None:
            return ()
        options = ("-r", "-z", "--full-tree", "--name-only")
        return read_paths(self._git.run("ls-tree", *options, commit, "--", *places, clone=self.path))

    def _objects(self, names: Sequence[str]) -> Iterator[bytes]:
        """Yield the contents of objects."""
        wanted = "".join(f"{name}\n" for name in names).encode()
        output = io.BytesIO(self._git.run("cat-file", "--batch", clone=self.path, stdin=wanted))
        for name in names:
            content = read_object(output, name)
            if content is None:
                raise CloneDamaged
            yield content

    def commit(
        self,
        parent: str | None,
        files: Mapping[str, bytes],
        *,
        message: str,
        at: datetime,
        folders: Iterable[str] = (),
    ) -> bytes:
        """Write the commit ``TIP``, which replaces everything at these files' paths; all other files stay.

        Args:
            parent: The commit before it.
            files: Path to content.
            message: Its message.
            at: Its time.
            folders: Folders that are emptied first.

        Returns:
            The commit object.

        Raises:
            ValueError: A path is not a plain path inside the repository.
        """
        who = f"{AUTHOR} {int(at.astimezone(UTC).timestamp())} +0000"
        start = f"from {parent}\n" if parent else ""
        people, words = f"author {who}\ncommitter {who}\n", message.encode()
        head = f"feature done\nreset {TIP}\n{start}\ncommit {TIP}\n{people}"
        parts = [head.encode(), *_data(words), *(f"D {folder}\n".encode() for folder in folders)]
        for path, content in files.items():
            if not _PATH.fullmatch(path):
                raise ValueError(f"not a plain path inside a repository: {path!r}")
            parts += [f"M 100644 inline {path}\n".encode(), *_data(content)]
        stream = b"".join([*parts, b'ls ""\ndone\n'])
        # This forces only our own local reference.
        listed = self._git.run("fast-import", "--quiet", "--force", clone=self.path, stdin=stream)
        tree = listed.split()[2].decode()  # after its mode and its type
        above = f"parent {parent}\n" if parent else ""
        return f"tree {tree}\n{above}{people}\n".encode() + words

    def sign(self, payload: bytes, sign: Sign) -> str:
        """Put the signed form of a commit object in the place of ``TIP``, and return its hash."""
        commit = with_signature(payload, sign(payload))
        written = self._git.run("hash-object", "-t", "commit", "-w", "--stdin", clone=self.path, stdin=commit)
        name = written.decode().strip()
        self._git.run("update-ref", TIP, name, clone=self.path)
        return name

    def push(self, *, dry_run: bool = False) -> None:
        """Push the commit ``TIP`` to the branch, without force.

        Raises:
            TipMoved: The branch has moved on.
        """
        options = ("--porcelain", "--no-verify", *(("--dry-run",) if dry_run else ()))
        self._remotely("push", *options, "--", self._git.remote.url, f"{TIP}:{self._ref}")

    def tidy(self) -> None:
        """Join the packs of the clone if it has many, but not published files, which git would compare for minutes."""
        if self._ref != FILES and len([*(self.path / "objects" / "pack").glob("*.pack")]) > PACKS:
            self._git.run("gc", "--quiet", clone=self.path)

    def _remotely(self, *arguments: str) -> bytes:
        """Run a command that talks to the remote; if it fails, first check whether the clone is damaged."""
        try:
            return self._git.run(*arguments, clone=self.path, network=True)
        except (OrganizerError, InfrastructureError):
            self._git.run("for-each-ref", "--count=1", clone=self.path)
            raise

    def _holds(self, commit: str) -> bool:
        try:
            self._git.run("ls-tree", commit, clone=self.path)
        except CloneDamaged:
            return False
        return True


def _data(content: bytes) -> tuple[bytes, ...]:
    return (b"data %d\n" % len(content), content, b"\n")
