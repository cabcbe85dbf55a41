"""Access to a challenge's published files: in a git repository, at a web address, or in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from scoring.errors import InfrastructureError, OrganizerError
from scoring.loopback import is_loopback
from worker.participant.layout import COMMITMENTS

Read = Callable[[str], bytes | None]
LIMIT_BYTES = 200_000_000  # of one file
TIME_OUT_S = 120.0  # of one call
CONTENTS = "files"  # a branch that contains embeddings, not the board
QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "protocol.ext.allow",
    "GIT_CONFIG_VALUE_0": "never",
    "GIT_CONFIG_KEY_1": "safe.directory",
    "GIT_CONFIG_VALUE_1": "*",
}


@contextmanager
def opened(place: str) -> Iterator[Read]:
    """Open a challenge's published files.

    Args:
        place: Any git URL, a clone or a bare repository, a folder with the files, or the address of ``commitment.json`` in one.

    Yields:
        A function that returns a file by its path, None if there is none.

    Raises:
        OrganizerError: If there is nothing to read.
        InfrastructureError: If a server cannot be reached.
    """
    folder = Path(place).expanduser()
    folder = folder.parent if folder.name == COMMITMENTS else folder
    if (folder / COMMITMENTS).is_file():
        yield _Folder(folder).read
    elif urlsplit(place).path.endswith(f"/{COMMITMENTS}"):
        yield _Address(place).read
    else:
        with tempfile.TemporaryDirectory() as temporary:
            clone = _Clone(Path(temporary))
            clone.fetch(str(folder.resolve()) if folder.exists() else place)
            yield clone.read


class _Folder:
    """Files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, path: str) -> bytes | None:
        """Return a file by its path."""
        file = self._folder / path
        return file.read_bytes() if file.is_file() else None


class _Address:
    """Files on a web server, next to a file with a known address."""

    def __init__(self, address: str) -> None:
        self._parts = urlsplit(address)
        if self._parts.scheme != "https" and not (
            self._parts.scheme == "http" and is_loopback(self._parts.hostname)
        ):
            raise OrganizerError(
                f"{address} is not an https:// address.",
                cure="Name the https:// address of the file, or a git repository.",
                code="validate.challenge",
            )

    def read(self, path: str) -> bytes | None:
        """Fetch a file by its path."""
        import requests

        beginning = self._parts.path.removesuffix(COMMITMENTS)
        address = self._parts._replace(path=f"{beginning}{path}").geturl()
        try:
            with requests.get(address, stream=True, timeout=TIME_OUT_S) as response:
                if response.status_code in {404, 410}:
                    return None
                response.raise_for_status()
                content = bytearray()
                for part in response.iter_content(1 << 20):
                    content += part
                    if len(content) > LIMIT_BYTES:
                        raise _unreadable(address, "it is too large")
                return bytes(content)
        except requests.RequestException as error:
            raise InfrastructureError(
                f"{address} cannot be fetched ({type(error).__name__}).",
                cure="Try again later, or use --ids and --dim.",
                code="validate.challenge",
            ) from error


class _Clone:
    """Files in the newest commit of a git repository's default branch."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if shutil.which("git") is None:
            raise OrganizerError(
                "git is not installed on this machine.",
                cure=f"Use the address of the repository's {COMMITMENTS} instead.",
                code="validate.challenge",
            )

    def fetch(self, address: str) -> None:
        """Fetch the newest commit.

        Raises:
            OrganizerError: If there is no such repository, or nothing in it.
        """
        self._git("init", "--quiet", "--bare", ".")
        heads = self._git("ls-remote", "--heads", "--", address)
        head = self._git("ls-remote", "--", address, "HEAD")
        if heads is None or head is None:
            raise _unreadable(
                address, "git cannot reach it, or it is neither a repository nor a folder with the files"
            )
        names = [line.partition("refs/heads/")[2] for line in heads.decode().splitlines()]
        usual = next((name for name in names if name in {"main", "master"}), None)
        branch = "HEAD" if head else usual or next((name for name in names if name != CONTENTS), None)
        if branch is None:
            raise _unreadable(address, "nothing was pushed to it yet")
        if self._git("fetch", "--quiet", "--depth=1", "--", address, branch) is None:
            raise _unreadable(address, f"its branch {branch} cannot be fetched")

    def read(self, path: str) -> bytes | None:
        """Return a file by its path."""
        return self._git("show", f"FETCH_HEAD:{path}")

    def _git(self, *arguments: str) -> bytes | None:
        """Run git; return what it prints, or None if it fails."""
        try:
            done = subprocess.run(
                ["git", *arguments],
                cwd=self._folder,
                env={**os.environ, **QUIET},
                capture_output=True,
                check=False,
                timeout=TIME_OUT_S,
            )
        except subprocess.TimeoutExpired:
            raise InfrastructureError(
                f"git took longer than {TIME_OUT_S:g} s.",
                cure="Try again later, or use --ids and --dim.",
                code="validate.challenge",
            ) from None
        return done.stdout if done.returncode == 0 else None


def _unreadable(place: str, reason: str) -> OrganizerError:
    return OrganizerError(
        f"{place} cannot be read: {reason}.",
        cure=f"Name the challenge's leaderboard repository, or the address of its {COMMITMENTS}.",
        code="validate.challenge",
    )
