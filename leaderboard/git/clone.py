"""A bare clone that reads files at the branch's tip and writes commits, without a work tree.

Nothing is ever checked out, so a symbolic link, a submodule or a strange file name in the remote cannot lead outside. Entries of trees are
replaced, never followed. One ``git fast-import`` writes a commit, and leaves all other files as they are, except in folders of our own.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from leaderboard.git.commits import (
    LOG_OPTIONS,
    CommitSigner,
    OtherCommit,
    read_log,
    with_signature,
    without_signature,
)
from leaderboard.git.process import GitProcess
from leaderboard.git.remote import CloneDamaged, TipMoved
from scoring.errors import InfrastructureError, OrganizerError

TIP = "refs/neuco/tip"  # the last commit that we saw or pushed; keeps its objects in the clone
AUTHOR = "neuco-worker <neuco-worker@users.noreply.github.com>"
NEXT = "refs/neuco/next"  # the commit that is about to be pushed
NEAR = 16  # how many commits are searched for our last one first, which is cheap and nearly always enough
DEEP = 4096  # how many are searched then
LOOSE_OBJECTS = 2000  # with more of them, the clone is packed
_FETCH = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--end-of-options")
# This excludes ".", "..", ".git", and characters that need quoting.
_PATH = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]*(/[0-9A-Za-z_-][0-9A-Za-z._-]*)*")
_LISTED = re.compile(rb"([0-7]{6}) [a-z]+ ([0-9a-f]{40,64})\t")  # git ls-tree: mode, type, object
_OBJECT = re.compile(rb"([0-9a-f]{40,64}) [a-z]+ ([0-9]{1,15})\n")  # git cat-file: object, type, bytes


@dataclass(frozen=True, kw_only=True)
class Since:
    """The changes of a branch since our last commit in it.

    Attributes:
        own: Our last commit in the branch, or the one that was pushed last if the branch no longer contains it; None if it is gone.
        commits: Commits of others on top of it, newest first, at most ``NEAR``; none if the branch was rewritten.
        changed: The files that differ between it and the tip; none if the branch was rewritten.
        contained: Whether the branch still contains the commit that was pushed last.
    """

    own: str | None
    commits: tuple[OtherCommit, ...] = ()
    changed: frozenset[str] = frozenset()
    contained: bool = True


class BareClone:
    """One branch of a remote, usually one commit deep; a cache that may be deleted at any time."""

    def __init__(self, path: Path, git: GitProcess, *, branch: str) -> None:
        self.path = path
        self._git = git
        self._ref = f"refs/heads/{branch}"

    def discard(self) -> None:
        """Remove the clone, or anything else in its place."""
        if self.path.is_dir() and not self.path.is_symlink():
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)

    def fetch(self) -> str | None:
        """Fetch the branch and return its tip; None if the branch does not exist yet.

        Raises:
            TipMoved: The branch moved while it was fetched.
            CloneDamaged: The tip's objects cannot be read.
        """
        if not (self.path / "HEAD").is_file():
            self.discard()
            self.path.mkdir(parents=True)
            self._git.run("init", "--quiet", "--bare", "--template=", "--", str(self.path), clone=self.path)
        listed = self._remotely("ls-remote", "--", self._git.url, self._ref).decode()
        tip = next(
            (sha for sha, name in (line.split("\t", 1) for line in listed.splitlines()) if name == self._ref),
            None,
        )
        if tip is None or self._holds(tip):
            return tip
        self._remotely("fetch", "--depth=1", *_FETCH, self._git.url, f"+{self._ref}:{TIP}")
        if self._holds(tip):
            return tip
        fetched = self._git.run("rev-parse", "--verify", "--quiet", TIP, clone=self.path).decode().strip()
        raise TipMoved(fetched) if fetched != tip else CloneDamaged(f"{tip} cannot be read")

    def default_branch(self) -> str | None:
        """Return the branch that a clone of the remote shows; None if the remote has none, or an empty one."""
        listed = self._remotely("ls-remote", "--symref", "--", self._git.url, "HEAD").decode()
        named = re.match(r"ref: refs/heads/(\S+)", listed)
        return named[1] if named else None

    def since(self, last: str, tip: str | None, signer: CommitSigner | None) -> Since:
        """Return what others did since our last commit.

        Args:
            last: The commit that was pushed last.
            tip: The tip of the branch.
            signer: Recognizes commits that were pushed after it, before the push was recorded.

        Raises:
            TipMoved: The branch moved meanwhile.
        """
        for depth in (NEAR, DEEP) if tip is not None else ():
            self._remotely("fetch", f"--depth={depth}", *_FETCH, self._git.url, f"+{self._ref}:{TIP}")
            try:
                below = self._git.run("rev-list", str(tip), "--", clone=self.path).decode().split()
            except CloneDamaged as error:
                raise TipMoved(str(tip)) from error
            if last in below:
                return self._since(self._newest_own(last, str(tip), signer), str(tip))
            if len(below) < depth:  # the whole branch is here
                break
        return Since(own=last if self._obtained(last) else None, contained=False)

    def _since(self, own: str, tip: str) -> Since:
        options = (f"--max-count={NEAR}", *LOG_OPTIONS)
        log = self._git.run("log", *options, f"{own}..{tip}", "--", clone=self.path)
        listed = self._git.run(
            "diff-tree", "-r", "-z", "--no-renames", "--name-only", own, tip, clone=self.path
        )
        return Since(
            own=own,
            commits=read_log(log.decode(errors="replace")),
            changed=frozenset(listed.decode(errors="replace").split("\0")[:-1]),
        )

    def _newest_own(self, last: str, tip: str, signer: CommitSigner | None) -> str:
        """Return the newest commit of ours down from the tip; at least the one that was pushed last."""
        newer = (
            self._git.run("rev-list", "--ancestry-path", f"{last}..{tip}", "--", clone=self.path)
            .decode()
            .split()
        )
        contents = self._objects([commit.encode() for commit in newer]) if signer is not None else ()
        for commit, content in zip(newer, contents, strict=False):
            if signer is not None and signer.has_signed(*without_signature(content)):
                return commit
        return last

    def _obtained(self, commit: str) -> bool:
        """Return whether an earlier commit is here, or could be fetched, although no branch contains it."""
        try:
            if not self._holds(commit):
                self._git.run(
                    "fetch", "--depth=1", *_FETCH, self._git.url, commit, clone=self.path, network=True
                )
            return self._holds(commit)
        except (OrganizerError, InfrastructureError, CloneDamaged, TipMoved):
            return False

    def files(self, commit: str | None, paths: tuple[str, ...], folders: tuple[str, ...]) -> dict[str, bytes]:
        """Return the regular files at these paths and directly inside these folders.

        Symbolic links, submodules and folders count as absent.
        """
        if commit is None:
            return {}
        wanted = (*paths, *(f"{folder}/" for folder in folders))
        listed = self._git.run("ls-tree", "-z", "--full-tree", commit, "--", *wanted, clone=self.path)
        blobs: list[tuple[str, bytes]] = []
        for line in listed.split(b"\0")[:-1]:
            facts = _LISTED.match(line)
            if facts is None:
                raise CloneDamaged("the tip cannot be listed")
            if facts[1] in (b"100644", b"100755"):
                blobs.append((line[facts.end() :].decode(errors="replace"), facts[2]))
        contents = self._objects([sha for _, sha in blobs])
        return {path: content for (path, _), content in zip(blobs, contents, strict=True)}

    def _objects(self, hashes: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the contents of objects."""
        output = self._git.run(
            "cat-file", "--batch", clone=self.path, stdin=b"".join(sha + b"\n" for sha in hashes)
        )
        start = 0
        for sha in hashes:
            header = _OBJECT.match(output, start)
            if header is None or header[1] != sha:
                raise CloneDamaged(f"{sha.decode()} cannot be read")
            start = header.end() + int(header[2]) + 1
            yield output[header.end() : start - 1]

    def commit(
        self,
        parent: str | None,
        files: Mapping[str, bytes],
        *,
        message: str,
        at: datetime,
        folders: Iterable[str] = (),
        signer: CommitSigner | None = None,
    ) -> str:
        """Write a commit that replaces everything at these files' paths; all other files stay.

        Args:
            parent: The commit before it.
            files: Path to content.
            message: Its message.
            at: Its time.
            folders: Folders that are emptied first.
            signer: Signs it.

        Raises:
            ValueError: A path is not a plain path inside the repository.
        """
        for path in files:
            if not _PATH.fullmatch(path):
                raise ValueError(f"not a plain path inside a repository: {path!r}")
        who = f"{AUTHOR} {int(at.astimezone(UTC).timestamp())} +0000"
        lines = [
            f"reset {NEXT}\n",
            f"from {parent}\n" if parent else "",
            f"\ncommit {NEXT}\nauthor {who}\ncommitter {who}\n",
        ]
        parts = ["".join(lines).encode(), _data(message.encode())]
        parts += [f"D {folder}\n".encode() for folder in sorted(folders)]
        for path, content in sorted(files.items()):
            parts += [f"M 100644 inline {path}\n".encode(), _data(content)]
        stream = b"feature done\n" + b"".join(parts) + b"done\n"
        # This forces only our own local reference.
        self._git.run("fast-import", "--quiet", "--force", clone=self.path, stdin=stream)
        if signer is None:
            return self._git.run("rev-parse", "--verify", NEXT, clone=self.path).decode().strip()
        payload = self._git.run("cat-file", "commit", NEXT, clone=self.path)
        signed = with_signature(payload, signer.sign(payload))
        made = self._git.run("hash-object", "-t", "commit", "-w", "--stdin", clone=self.path, stdin=signed)
        return made.decode().strip()

    def push(self, commit: str, *, dry_run: bool = False) -> None:
        """Push a commit to the branch, without force.

        Raises:
            TipMoved: The branch has moved on.
        """
        options = ("--porcelain", "--no-verify", *(("--dry-run",) if dry_run else ()))
        self._remotely("push", *options, "--", self._git.url, f"{commit}:{self._ref}")
        if not dry_run:
            self._git.run("update-ref", TIP, commit, clone=self.path)

    def tidy(self) -> None:
        """Pack the clone if it holds many loose objects, estimated from one of git's 256 folders."""
        sample = self.path / "objects" / "17"
        if sample.is_dir() and sum(1 for _ in sample.iterdir()) > LOOSE_OBJECTS // 256:
            self._git.run("gc", "--quiet", "--prune=now", clone=self.path)

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


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)
