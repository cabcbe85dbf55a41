"""What stands in a leaderboard repository: its files now, and every earlier version of the files that may only grow."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import git

from scoring.errors import InfrastructureError, OrganizerError

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


@dataclass(frozen=True)
class PublicRepository:
    """The public files of a challenge.

    Attributes:
        files: Path to content, of the branch as it stands.
        versions: For paths that may only grow: their contents, oldest first. Empty for a plain folder, which has no history.
        with_history: Whether there is a history to look at.
    """

    files: dict[str, bytes]
    versions: dict[str, list[bytes]]
    with_history: bool

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
    return PublicRepository(files=files, versions={}, with_history=False)


@contextmanager
def opened(place: str, *, growing: tuple[str, ...]) -> Iterator[PublicRepository]:
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
                yield _read(repository, growing)
            finally:
                repository.close()
        except (git.GitCommandError, ValueError) as error:
            raise OrganizerError(
                f"{place} cannot be read as a repository.",
                cure="Name a git URL, a clone or a folder.",
                code="verify.repository",
            ) from error


def _read(repository: git.Repo, growing: tuple[str, ...]) -> PublicRepository:
    heads = {reference.remote_head: reference.commit for reference in repository.remotes.origin.refs}
    branch = next((name for name in ("HEAD", "main", "master") if name in heads), next(iter(heads), None))
    if branch is None:
        raise ValueError("no branch")
    tip = heads[branch]
    files = {}
    for blob in tip.tree.traverse():
        if isinstance(blob, git.Blob) and blob.mode != git.Blob.link_mode:
            if blob.size > LIMIT_BYTES:
                raise InfrastructureError(f"{blob.path} is too large to be checked.", code="verify.too_large")
            files[str(blob.path)] = blob.data_stream.read()
    versions: dict[str, list[bytes]] = {path: [] for path in growing}
    for commit in reversed(list(repository.iter_commits(tip))):
        for path in growing:
            try:
                content = (commit.tree / path).data_stream.read()
            except KeyError:
                content = b""
            if not versions[path] or versions[path][-1] != content:
                versions[path].append(content)
    return PublicRepository(files=files, versions=versions, with_history=True)
