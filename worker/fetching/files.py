"""Stored submission files: content-addressed, under the state directory.

A file is named by the SHA-256 of what was downloaded, so equal submissions are stored once. Nothing a participant chose is part of a path.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

_HASH = re.compile(r"[0-9a-f]{64}")


class FileStore:
    """Files by content hash, and temporary folders beside them on the same file system.

    Args:
        root: The state directory.
        own: Name of this worker where several may use the directory: its temporary folders are its own, and lie under that name.
    """

    def __init__(self, root: Path, *, own: str | None = None) -> None:
        self._root = root
        self._files = root / "files"
        self._own = own
        self._temporary = root / "tmp" if own is None else root / "tmp" / own
        self._keeper: int | None = None
        for folder in (self._files, self._temporary):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def temporary(self, name: str) -> Path:
        """Return a folder name for one attempt; the attempt makes and removes it."""
        return self._temporary / name

    def clear_temporary(self, is_dead: Callable[[str], bool] = lambda _: False) -> None:
        """Remove what attempts of a dead worker left behind; where several use the directory, of those that are known to be dead."""
        for folder in self._temporary.iterdir():
            shutil.rmtree(folder, ignore_errors=True)
        if self._own is not None:
            for folder in self._temporary.parent.iterdir():
                if folder.name != self._own and is_dead(folder.name):
                    shutil.rmtree(folder, ignore_errors=True)

    def keeps(self) -> bool:
        """Tell whether this worker is the one that keeps the directory small; the first of several that asks is, until its process ends."""
        if self._own is None:
            return True
        if self._keeper is None:
            handle = os.open(self._root / "keeper.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return False
            self._keeper = handle
        return True

    def release(self) -> None:
        """Remove the temporary folder that is this worker's own, and let another one keep the directory."""
        if self._own is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        if self._keeper is not None:
            os.close(self._keeper)
            self._keeper = None

    def keep(self, path: Path, file_hash: str) -> Path:
        """Move a complete file into the store; it is durable when this returns."""
        place = self._place(file_hash)
        place.parent.mkdir(exist_ok=True, mode=0o700)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        path.replace(place)
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return place

    def find(self, file_hash: str) -> Path | None:
        """Return the stored file, if it is still there."""
        place = self._place(file_hash)
        return place if place.is_file() else None

    def remove(self, file_hash: str) -> None:
        """Forget a file."""
        self._place(file_hash).unlink(missing_ok=True)

    def stored(self) -> Iterable[Path]:
        """Return all stored files."""
        return (path for path in self._files.glob("*/*") if _HASH.fullmatch(path.name))

    def free_bytes(self) -> int:
        """Return the free space of the file system."""
        return shutil.disk_usage(self._files).free

    def _place(self, file_hash: str) -> Path:
        if not _HASH.fullmatch(file_hash):
            raise ValueError("not a SHA-256 in hex")
        return self._files / file_hash[:2] / file_hash
