"""What stands in a leaderboard repository: where it was read, its files, and what its history shows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import git

from scoring.errors import InfrastructureError, OrganizerError
from worker.fairness.verify.growth import Growth, growth

QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "protocol.ext.allow",
    "GIT_CONFIG_VALUE_0": "never",
    "GIT_CONFIG_KEY_1": "safe.directory",
    "GIT_CONFIG_VALUE_1": "*",
}
LIMIT_BYTES = 512 * 1024 * 1024  # of one file


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit of the repository.

    Attributes:
        hash: Its name.
        at: When it was made, as it says itself.
        author: Who made it, as it says itself; text of others.
    """

    hash: str
    at: datetime
    author: str


@dataclass(frozen=True, kw_only=True)
class History:
    """What the history of a repository shows.

    Attributes:
        commits: Hashes of the commit that is checked and of all before it.
        whole: False for a shallow clone, which lacks the beginning.
        growth: How the files changed that may only grow.
    """

    commits: frozenset[str]
    whole: bool
    growth: Growth


@dataclass(frozen=True, kw_only=True)
class PublicRepository:
    """The public files of a challenge, and where they were read.

    Attributes:
        files: Path to content, as they stand in the commit.
        address: URL or folder, without credentials.
        branch: The branch that was read; None for a plain folder.
        commit: Its newest commit; None for a plain folder.
        history: None for a plain folder.
        read: What was read out of large documents, by phase.
    """

    files: Mapping[str, bytes]
    address: str = ""
    branch: str | None = None
    commit: Commit | None = None
    history: History | None = None
    read: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def json(self, path: str) -> Any:
        """Return a JSON file's value.

        Raises:
            KeyError: If there is no such file.
            ValueError: If it is no JSON.
            RecursionError: If it is nested without end.
        """
        return json.loads(self.files[path])

    def lines(self, path: str) -> Iterator[dict[str, Any]]:
        """Return the objects of a file of JSON lines; an empty one for what is none."""
        for line in self.files.get(path, b"").splitlines():
            try:
                document = json.loads(line)
            except (ValueError, RecursionError):
                document = {}
            yield document if isinstance(document, dict) else {}


def read_folder(folder: Path) -> PublicRepository:
    """Read a plain folder; symbolic links are not followed."""
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and ".git" not in path.relative_to(folder).parts
    }
    return PublicRepository(files=files, address=str(folder))


@contextmanager
def opened(place: str) -> Iterator[PublicRepository]:
    """Read a repository (any git URL, a bare repository, a checkout) or a plain folder.

    Raises:
        OrganizerError: If there is nothing to read.
    """
    folder = Path(place).expanduser()
    if folder.is_dir() and not (folder / ".git").exists() and not (folder / "HEAD").is_file():
        yield read_folder(folder)
        return
    with tempfile.TemporaryDirectory() as temporary:
        try:
            source = str(folder.resolve()) if folder.exists() else place
            repository = git.Repo.clone_from(source, temporary, no_checkout=True, env=QUIET)
            try:
                public = _read(repository, _address(place))
            finally:
                repository.close()
        except (git.GitCommandError, ValueError, OverflowError, OSError) as error:
            raise OrganizerError(
                f"{_address(place)} cannot be read as a repository.",
                cure="Name a git URL, a clone or a folder.",
                code="verify.repository",
            ) from error
    yield public


def _read(repository: git.Repo, address: str) -> PublicRepository:
    heads = {reference.remote_head: reference.commit for reference in repository.remotes.origin.refs}
    branch = next((name for name in ("HEAD", "main", "master") if name in heads), next(iter(heads), None))
    if branch is None:
        raise ValueError("no branch")
    tip = heads[branch]
    if branch == "HEAD":
        branch = repository.remotes.origin.refs["HEAD"].reference.remote_head
    return PublicRepository(
        files=_files(tip),
        address=address,
        branch=branch,
        commit=Commit(
            hash=tip.hexsha,
            at=datetime.fromtimestamp(tip.committed_date, UTC),
            author=str(tip.author.name),
        ),
        history=History(
            commits=frozenset(repository.git.rev_list(tip.hexsha).split()),
            whole=repository.git.rev_parse("--is-shallow-repository") == "false",
            growth=growth(repository, tip.hexsha),
        ),
    )


def _files(commit: git.Commit) -> dict[str, bytes]:
    files = {}
    for blob in commit.tree.traverse():
        if isinstance(blob, git.Blob) and blob.mode != git.Blob.link_mode:
            if blob.size > LIMIT_BYTES:
                raise InfrastructureError(f"{blob.path} is too large to be checked.", code="verify.too_large")
            files[str(blob.path)] = blob.data_stream.read()
    return files


def _address(place: str) -> str:
    """Return an address without user name and password."""
    parts = urlsplit(place)
    if "://" not in place or "@" not in parts.netloc:
        return place
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
