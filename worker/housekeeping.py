"""Housekeeping of stored files: compress what is answered, remove what is older than `keep_days`.

Files are kept for re-scoring. A plain CSV compresses to less than half, but that costs seconds, so it is done after the answer, one file at
a time, in a thread.
"""

from __future__ import annotations

import gzip
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from scoring.errors import NeucoError
from worker.context import Context
from worker.files import FileStore
from worker.lanes import Lane
from worker.states import ACTIVE

COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"PAR1")  # gzip, zip and NPZ, Parquet
EVERY = timedelta(minutes=10)
YOUNG = timedelta(hours=1)
LEVEL = 1  # of gzip: floats in text gain little from more


class Housekeeping:
    """Keeps the folder of stored files small.

    Args:
        context: The worker's surroundings.
        files: Stored files.
    """

    def __init__(self, context: Context, files: FileStore) -> None:
        self._context = context
        self._files = files
        self._lane: Lane[Any] = Lane("housekeeping", context.wake)
        self._looked_at: datetime | None = None
        self._todo: list[Path] = []

    def step(self, now: datetime, *, idle: bool) -> bool:
        """Take in a finished compression, or begin the next one while nothing else is to do."""
        if self._lane.collect(now):
            return True
        if self._lane.busy or not idle or not self._files.keeps():
            return False
        if self._todo:
            path = self._todo.pop()
            self._lane.start(lambda: compress(path), done=lambda *_: None, failed=self._failed)
            return True
        if self._looked_at is not None and now - EVERY < self._looked_at <= now:
            return False
        self._looked_at = now
        self._look(now)
        return False

    def _look(self, now: datetime) -> None:
        """Remove what is old, and list what is worth compressing."""
        horizon = now - timedelta(days=self._context.configuration.submission.keep_days)
        with self._context.store.read() as tx:
            known = tx.submissions()
        wanted = {
            row.file_hash for row in known if row.state in ACTIVE or (row.submitted_at or now) > horizon
        }
        busy = {row.file_hash for row in known if row.state in ACTIVE}
        for path in list(self._files.stored()):
            file_hash = path.name
            if file_hash not in wanted:
                if not self._perhaps_new(path, now):
                    self._files.remove(file_hash)
            elif file_hash not in busy and worth_compressing(path):
                self._todo.append(path)

    def _perhaps_new(self, path: Path, now: datetime) -> bool:
        """Tell whether another worker may just have stored a file that the database does not name yet."""
        if not self._context.sharing.shared:
            return False
        try:
            return path.stat().st_mtime > (now - YOUNG).timestamp()
        except FileNotFoundError:
            return True

    def _failed(self, error: NeucoError, now: datetime) -> None:
        self._context.trouble("files.compress", error, now=now)


def worth_compressing(path: Path) -> bool:
    """Tell whether a stored file is not compressed yet."""
    try:
        with path.open("rb") as file:
            return not file.read(4).startswith(COMPRESSED)
    except FileNotFoundError:
        return False


def compress(path: Path) -> None:
    """Replace a stored file by its gzip, which reads as the same embeddings; its name stays the hash of what was downloaded."""
    temporary = path.with_suffix(".part")
    try:
        with path.open("rb") as source, gzip.open(temporary, "wb", compresslevel=LEVEL) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
