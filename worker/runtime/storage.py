"""Stored submission files, named by their content, on a disk that may be full, and how much memory reading one may take.

A file's name is the SHA-256 of the downloaded bytes, so equal submissions are stored once. No part of a path is chosen by a participant.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from scoring.errors import InfrastructureError, OrganizerError

GIGABYTE = 1_000_000_000  # bytes, for memory and disk alike
# memory of a child that has read nothing; 35 MB were measured
BARE_BYTES = 50_000_000
# loaded for reading any file: 90 MB were measured for Parquet, 110 MB for a large CSV
READING_BYTES = 200_000_000
VALUE_BYTES = 24  # memory per value of a valid file; 13 were measured for CSV and Parquet


def check_memory(memory_gigabytes: float, *, phase: str, rows: int, columns: int) -> None:
    """Check that a valid file can be read within `submission.memory_gigabytes`; otherwise its author would be blamed for it.

    Raises:
        OrganizerError: If it cannot.
    """
    least = (BARE_BYTES + READING_BYTES + VALUE_BYTES * rows * columns) / GIGABYTE
    if memory_gigabytes < least:
        raise OrganizerError(
            f"submission.memory_gigabytes is {memory_gigabytes:g}, but reading a valid file of phase {phase} ({rows:,} rows,"
            f" {columns:,} columns) may need {least:.2f} GB.",
            hint=f"Set it to {math.ceil(2 * least)} or more, because scoring needs memory too.",
            code="config.memory",
        )


PROBE_BYTES = 65536
"""At least as much as a transaction needs; written to an unnamed file that is removed at once."""


def is_full(problem: OSError) -> bool:
    """Return whether a call failed because the disk or a quota is full."""
    return problem.errno in (errno.ENOSPC, errno.EDQUOT)


def full(sentence: str) -> InfrastructureError:
    """Return the error for a full disk; ``sentence`` says what could not be written."""
    return InfrastructureError(
        f"The disk is full: {sentence}.",
        hint="Free some space in the file systems of the state directory and of the cache. The worker tries again.",
        code="disk.write",
    )


def fault(folder: Path) -> InfrastructureError | None:
    """Return why nothing can be written to the state directory, None if something can."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
            for _ in range(0, PROBE_BYTES, 4096):
                probe.write(bytes(4096))
    except OSError as problem:
        if is_full(problem):
            return InfrastructureError(
                f"The disk with the state in {folder} is full. The worker cannot record anything, so it has stopped working.",
                hint="Free some space. The worker then continues, and nothing is lost.",
                code="disk.full",
            )
        return InfrastructureError(
            f"Nothing can be written to the state directory {folder} ({problem.strerror}).",
            hint="Run commands as its owner, or check its owner and file system. When the cause is fixed, the worker continues.",
            code="disk.unwritable",
        )
    return None


_HASH = re.compile(r"[0-9a-f]{64}")
OF_COMMAND = "command-"  # prefix of folders that belong to a command, not to a worker
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

    def of_command(self) -> Path:
        """Return the path of a temporary folder that no other command has; its user makes and removes it."""
        return self._temporary / f"{OF_COMMAND}{secrets.token_hex(8)}"

    def clear_temporary(self) -> None:
        """Remove the folders of attempts of dead workers; those of a command are kept while it may still be running."""
        for folder in self._temporary.iterdir():
            with contextlib.suppress(FileNotFoundError):  # a command has just removed its own
                age_s = time.time() - folder.stat().st_mtime
                if not folder.name.startswith(OF_COMMAND) or age_s > ABANDONED_S:
                    shutil.rmtree(folder, ignore_errors=True)

    def keep(self, path: Path, file_hash: str) -> None:
        """Move a complete file into the store; it is durable when this returns."""
        place = self._place(file_hash)
        # Parents, too: somebody who needed room may have removed them.
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        path.replace(place)
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def find(self, file_hash: str | None) -> Path | None:
        """Return the path of a stored file; None if it is gone, or none was fetched."""
        if file_hash is None:
            return None
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
        return shutil.disk_usage(self._files.parent).free

    def _place(self, file_hash: str) -> Path:
        if not _HASH.fullmatch(file_hash):
            raise ValueError("not a SHA-256 in hex")
        return self._files / file_hash[:2] / file_hash
