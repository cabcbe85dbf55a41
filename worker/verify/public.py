"""The content of a leaderboard repository: where it was read, its files, and its history."""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import ClassVar

from leaderboard.git import OWN_FILES, OWN_FOLDERS, Blob, Clone, Repository, cloned, plain_folder
from leaderboard.rendering import HISTORY, HistoryLine
from scoring.documents import expanded
from scoring.errors import InfrastructureError, OrganizerError
from worker.challenge import signing
from worker.fairness import commitments, receipts
from worker.fairness.disclosure import BRANCH, FILES_PATH, PART_BYTES, FilesReference
from worker.fairness.documents import Malformed, check_format, read
from worker.fairness.manifests import AnnouncedPhase, Commitment
from worker.fairness.published import Signed
from worker.verify.commits import (
    GROWING,
    REVEAL,
    Step,
    claims,
    is_own,
    is_served,
    newest,
    shortened,
    signed_by_others,
    versions_in,
    walk,
)

SHOWN = 20  # files whose authors are looked up
LIMIT_BYTES = 512 * 1024 * 1024  # of one file
_NEVER = datetime.min.replace(tzinfo=UTC)
_PART = re.compile(r"[0-9a-f]+\.[0-9]+")  # the name of a part of a content


@dataclass(frozen=True, kw_only=True)
class History:
    """What the history of a repository shows; a plain folder has an empty one.

    Attributes:
        commits: Hashes of the checked commit and of all before it.
        whole: False for a shallow clone, which lacks the beginning.
        key: The challenge's key that has signed the checked commit; None if no commit is signed.
        signed: What the challenge's key has signed in the commits of others and the newest version lacks, with these commits.
        shortened: The files that may only grow and of which a commit of the challenge lacks something of one before it, with that commit.
        foreign: The commits that are not the challenge's, oldest first.
        changed: The files that differ between the checked commit and the tip.
        changed_by: The commits after the checked one that changed what visitors see, oldest first.
    """

    commits: frozenset[str] = frozenset()
    whole: bool = True
    key: str | None = None
    signed: Sequence[tuple[Signed, Step]] = ()
    shortened: Mapping[str, Step] = field(default_factory=dict)
    foreign: tuple[Step, ...] = ()
    changed: tuple[str, ...] = ()
    changed_by: tuple[Step, ...] = ()


Contents = Callable[[str], bytes]
"""Returns a part of a published content by its name; empty if it is missing or is not such a part."""


Versions = Callable[[str], Iterable[tuple[Step, bytes]]]
"""Returns the distinct versions of a file in the challenge's commits, oldest first, each with the first commit that has it."""


class CommitFiles(Mapping[str, bytes]):
    """The files of a commit. They are read each time they are needed, because a revealed phase may not fit in memory.

    Args:
        repository: Where they are read.
        blobs: Path to object.
    """

    def __init__(self, repository: Repository, blobs: Mapping[str, Blob]) -> None:
        self._repository = repository
        self._blobs = blobs

    def __getitem__(self, path: str) -> bytes:
        """Return the content of a file."""
        return self._repository.content(self._blobs[path].name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the paths."""
        return iter(self._blobs)

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._blobs)


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicRepository:
    """The public files of a challenge, and where they were read.

    Attributes:
        files: Path to content, as in the commit; usable while the repository is open.
        address: URL or folder, without credentials.
        is_copy: Whether that is on this machine, so that the repository may have gone on since.
        branch: The branch that was read; None for a plain folder.
        commit: The commit that was read: the newest one that the challenge has signed, otherwise the tip. None for a plain folder.
        history: The history.
        foreign_paths: Paths of what a worker does not publish, and a branch that a server may show instead, which are not read.
        contents: The published contents in the commit that `reveal/files.json` names; usable while the repository is open.
        own: The challenge's commits, in the order in which the files grow that may only grow.
        versions: The versions of a file in these commits; usable while the repository is open.
        latest: The same, newest first, each with the last commit that has it.
    """

    files: Mapping[str, bytes]
    address: str = ""
    is_copy: bool = False
    branch: str | None = None
    commit: Step | None = None
    history: History = History()
    foreign_paths: tuple[str, ...] = ()
    contents: Contents = field(default=lambda _name: b"")
    own: Sequence[Step] = ()
    versions: Versions = field(default=lambda _path: ())
    latest: Versions = field(default=lambda _path: ())

    @cached_property
    def key(self) -> str | None:
        """The challenge's key; in a folder, and without a signed commit, the one that the commitments name."""
        return self.history.key or signing.challenge_key(self.files.get(commitments.PATH))

    @cached_property
    def commitments(self) -> list[Commitment]:
        """The public list of commitments; an empty one if it is malformed."""
        try:
            return commitments.read_commitments(self.files.get(commitments.PATH, b""))
        except Malformed:
            return []

    def announced(self, phase: str) -> list[AnnouncedPhase]:
        """Return what the commitments announce of a phase, oldest first."""
        return [entry.phases[phase] for entry in self.commitments if phase in entry.phases]

    @cached_property
    def log(self) -> list[receipts.Line]:
        """The lines of the public log; none if one is malformed."""
        try:
            return receipts.read_log(self.files.get(receipts.PATH, b""))
        except Malformed:
            return []

    @cached_property
    def _boards(self) -> list[tuple[HistoryLine, bytes]]:
        lines = io.BytesIO(self.files.get(HISTORY, b""))
        return [
            (read(HistoryLine, text, f"{HISTORY}, line {number}"), text.removesuffix(b"\n"))
            for number, text in enumerate(lines, 1)
        ]

    def boards(self, phase: str) -> list[tuple[HistoryLine, bytes]]:
        """Return the lines of the published history about a phase, oldest first, each with its text.

        Raises:
            Malformed: If a line of the history is not exactly such a line.
        """
        return [(line, text) for line, text in self._boards if line.phase == phase]

    def newest_board(self, phase: str, size: int) -> int:
        """Return the number of a phase's newest board in the first bytes of the history; 0 if it has none there."""
        first = self._boards[: bisect_right(self._ends, size)]
        return next((line.sequence for line, _ in reversed(first) if line.phase == phase), 0)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(len(text) + 1 for _, text in self._boards))

    def may_show_again(self, made_at: datetime | None) -> bool:
        """Return whether a board was made before the state was last restored, which then shows what is older than the history."""
        return any(line.restored is not None and (made_at or _NEVER) < line.made_at for line in self.log)

    def is_restored_since(self, step: Step) -> bool:
        """Return whether the state was restored from a backup after a commit, according to the log; it may not know what that showed."""
        published = self.files.get(receipts.PATH, b"")[: step.version(receipts.PATH).size].count(b"\n")
        return any(line.restored is not None for line in self.log[published:])

    @cached_property
    def uncommitted(self) -> list[str]:
        """The phases that have boards in the history, and to which there is no commitment; untrusted text."""
        return sorted({line.phase for line, _ in self._boards} - set(self.phases))

    @cached_property
    def revealed(self) -> list[str]:
        """The phases that were revealed."""
        return sorted(path.split("/")[1] for path in self.files if REVEAL.fullmatch(path))

    @cached_property
    def phases(self) -> list[str]:
        """Every phase that was ever committed to or revealed."""
        committed = (name for entry in self.commitments for name in entry.phases)
        return list(dict.fromkeys([*self.revealed, *committed]))


def with_contents(public: PublicRepository, folder: Path) -> PublicRepository:
    """Return a repository with the published contents in a folder, such as a checkout of their branch; the others are its own.

    Raises:
        OrganizerError: If it is not a folder with such contents.
    """
    if not any(_PART.fullmatch(path.name) for path in folder.glob("*")):
        raise OrganizerError(
            f"{folder} is not a folder with published files.",
            hint=f"Name a folder with a copy of the branch `{BRANCH}`.",
            code="verify.files",
        )

    def part(name: str) -> bytes:
        path = folder / Path(name).name
        is_part = path.is_file() and path.stat().st_size <= PART_BYTES
        return path.read_bytes() if is_part else public.contents(name)

    return replace(public, contents=part)


def read_folder(folder: Path) -> PublicRepository:
    """Read the challenge's files in a plain folder, also with the line ends of Windows; symbolic links are not followed."""
    files = {
        str(path.relative_to(folder)): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and ".git" not in path.relative_to(folder).parts
    }
    own = {path: file.read_bytes().replace(b"\r\n", b"\n") for path, file in files.items() if is_own(path)}
    return PublicRepository(
        files=own,
        address=str(folder),
        is_copy=True,
        foreign_paths=tuple(path for path in files if path not in own),
    )


class UnclearKey(OrganizerError):
    """It is not clear which key is the challenge's."""

    exit_code: ClassVar[int] = 3
    usual_code = "verify.key"


ChooseKey = Callable[[Iterable[str]], str | None]
"""Returns the challenge's key, from those that claim a repository; None if it has signed nothing there."""


def only_key(keys: Iterable[str], *, name: str | None = None) -> str | None:
    """Return the only key, or the one with a name.

    Args:
        keys: The keys that claim the repository.
        name: A key, or its fingerprint; None if none was named.

    Raises:
        UnclearKey: If there are several keys and no name, or none with this name.
    """
    claiming = {signing.fingerprint(key): key for key in keys}
    named = {
        shown: key for shown, key in claiming.items() if name in (None, key, shown, signing.openssh(key))
    }
    if len(named) == 1 or (not claiming and name is None):
        return next(iter(named.values()), None)
    listed = ", ".join(sorted(claiming)) or "none"
    if named:
        raise UnclearKey(
            f"{len(named)} keys claim this repository; name yours. Their fingerprints: {listed}.",
            hint="Add --key with the one that the organizers have told, or --receipt with what EvalAI shows for your submission.",
        )
    raise UnclearKey(
        f"The key that was named has signed nothing in this repository. The fingerprints of those that have: {listed}.",
        hint="Compare them with the one that the organizers have told.",
    )


@contextmanager
def opened(place: str, choose: ChooseKey = only_key) -> Iterator[PublicRepository]:
    """Read a repository (any git URL, a bare repository, a checkout) or a plain folder.

    Args:
        place: The repository or folder.
        choose: Chooses the challenge's key.

    Raises:
        UnclearKey: As ``choose`` does.
        OrganizerError: If there is nothing to read, or in another format than this version's.
    """
    folder = plain_folder(place)
    if folder is not None:
        public = read_folder(folder)
        choose(filter(None, [public.key]))
        check_format(public.files.get(commitments.PATH))
        yield public
        return
    with cloned(place) as clone:
        public = _public_repository(clone, choose)
        check_format(public.files.get(commitments.PATH))
        yield replace(public, is_copy=expanded(place).exists())


def _public_repository(clone: Clone, choose: ChooseKey) -> PublicRepository:
    repository, tip = clone.repository, clone.tip
    steps = walk(repository, tip)
    claiming = claims(repository, steps)
    key = choose(claiming)
    own = claiming.get(key or "", [])
    checked = newest(steps, own) or steps[-1]
    below = frozenset(repository.commits(checked.commit))
    files, foreign_paths = _files(repository, checked.commit)
    changed = repository.changed(checked.commit, tip)
    own_names = {step.commit for step in own}
    foreign = tuple(step for step in steps if step.commit not in own_names)
    return PublicRepository(
        files=files,
        address=repository.name,
        branch=clone.branch,
        commit=checked,
        history=History(
            commits=below,
            whole=not repository.is_shallow,
            key=key if own else None,
            signed=list(signed_by_others(repository, foreign, checked, below)),
            shortened=shortened(repository, steps, own),
            foreign=foreign,
            changed=changed,
            changed_by=_changed_by(repository, checked.commit, changed, steps),
        ),
        foreign_paths=(*foreign_paths, *clone.pages),
        contents=_contents(repository, files.get(FILES_PATH)),
        own=own,
        versions=partial(_versions, repository, own),
        latest=partial(_versions, repository, own[::-1]),
    )


def _versions(repository: Repository, own: Sequence[Step], path: str) -> Iterator[tuple[Step, bytes]]:
    seen: set[Blob] = set()
    names = [step.commit for step in own]
    versions = [step.blobs for step in own] if path in GROWING else versions_in(repository, names, [path])
    for step, files in zip(own, versions, strict=True):
        if path in files and files[path] not in seen:
            seen.add(files[path])
            yield step, repository.content(files[path].name)


def _contents(repository: Repository, document: bytes | None) -> Contents:
    """Return the contents in the commit that this document names."""
    try:
        blobs = repository.files(read(FilesReference, document or b"", FILES_PATH).commit)
    except (Malformed, OrganizerError):  # the commit is gone, or was never fetched
        blobs = {}

    parts = {name: blob for name, blob in blobs.items() if blob.size <= PART_BYTES}
    return lambda name: CommitFiles(repository, parts).get(name, b"")


def _changed_by(
    repository: Repository, checked: str, changed: Sequence[str], steps: Sequence[Step]
) -> tuple[Step, ...]:
    served = list(filter(is_served, changed))
    if not served:
        return ()
    touched = repository.commits_changing(served[:SHOWN], checked, steps[-1].commit)
    # git lists no files for a merge
    return tuple(step for step in steps if step.commit in touched) or (steps[-1],)


def _files(repository: Repository, commit: str) -> tuple[CommitFiles, tuple[str, ...]]:
    """Return the worker's files in a commit, and all other paths, among them links and submodules in its places."""
    own = repository.files(commit, *OWN_FILES, *OWN_FOLDERS)
    for path, blob in own.items():
        if blob.size > LIMIT_BYTES:
            raise InfrastructureError(
                f"{path} is too large to check.",
                hint="Ask the organizers to remove this file from the branch, and run the command again.",
                code="verify.too_large",
            )
    entries = Counter(repository.paths(commit))  # a tree that git did not make may have two with one name
    known = own.keys() | {path.partition("/")[0] for path in own}
    foreign = tuple(path for path, number in entries.items() if path not in known or number > 1)
    return CommitFiles(repository, own), foreign
