"""Stored submission files: named by their content, under the state directory.

A file's name is the SHA-256 of the downloaded bytes, so equal submissions are stored once. No part of a path is chosen by a participant.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

_HASH = re.compile(r"[0-9a-f]{64}")
RESCORING = "rescore-"  # prefix of folders that belong to a command, not to a worker
ABANDONED_S = 24 * 3600.0  # no child works this long


class FileStore:
    """Files by content hash, and temporary folders on the same file system.

    Args:
        root: The state directory.
    """

    def __init__(self, root: Path) -> None:
        self._files = root / "files"
        self._temporary = root / "tmp"
        for folder in (self._files, self._temporary):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def temporary(self, name: str) -> Path:
        """Return the path of an attempt's temporary folder; the attempt makes and removes it."""
        return self._temporary / name

    def clear_temporary(self) -> None:
        """Remove the folders of attempts of dead workers; those of a rescore are kept while it may still be running."""
        for folder in self._temporary.iterdir():
            if not folder.name.startswith(RESCORING) or _age_s(folder) > ABANDONED_S:
                shutil.rmtree(folder, ignore_errors=True)

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
        """Return the path of a stored file, None if it is gone."""
        place = self._place(file_hash)
        return place if place.is_file() else None

    def remove(self, file_hash: str) -> None:
        """Remove a stored file."""
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


def _age_s(folder: Path) -> float:
    """Return how long ago something was last written to a folder, in seconds; 0 if the folder is gone."""
    try:
        return time.time() - folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0
