"""Housekeeping of stored files: compress those whose submissions are answered, remove those older than `keep_days`.

Files are kept for rescoring and, if the reveal may have to publish them, until then. A plain CSV compresses to less than half, but
that takes seconds, so it is done after the answer, one file at a time, while nothing else is to do.
"""

from __future__ import annotations

import gzip
import secrets
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from scoring.errors import NeucoError
from worker.challenge.context import Context
from worker.fairness import disclosure
from worker.runtime import Act, Job, Result, Runner
from worker.runtime.files import FileStore
from worker.state import ACTIVE, COUNTED, State, Transaction

COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"PAR1")  # gzip, zip and NPZ, Parquet
EVERY = timedelta(minutes=10)
LEVEL = 1  # of gzip: more saves little with floats in text


class Housekeeping:
    """Keeps the folder of stored files small.

    Args:
        context: The worker's surroundings.
        files: Stored files.
    """

    def __init__(self, context: Context, files: FileStore) -> None:
        self._context = context
        self._files = files
        self._runner: Runner[FileStore] = Runner(
            "files", context.store, wake=context.wake, checkpoint=context.checkpoint
        )
        self._stored: dict[Path, bool] = {}  # path to whether it is worth compressing, before `_sort`
        self._compressible: list[Path] = []  # worth compressing, and still needed

    @property
    def late(self) -> bool:
        """Whether an act that was given up cannot be recorded as failed."""
        return self._runner.late

    def step(self, now: datetime, *, idle: bool) -> bool:
        """Record what was done; while nothing else is to do, remove old files or begin the next act."""
        ended = self._runner.collect(now)
        if ended is not None:
            if isinstance(ended.act, LookAtFiles) and ended.error is None:
                self._stored = ended.result
            return True
        if self._runner.busy or not idle:
            return False
        if self._stored:
            self._sort(now)
        act = self.next_act(now)
        if act is None:
            return False
        if isinstance(act, CompressFile):
            self._compressible.remove(act.path)
        else:
            self._context.timetable.done(Job.HOUSEKEEPING, now)
        self._runner.start(act, self._files, now)
        return True

    def next_act(self, now: datetime) -> FilesAct[Any] | None:
        """Return the next act on the stored files, if any is due."""
        if self._compressible:
            return CompressFile(self._context, self._compressible[-1])
        due = self._context.timetable.due(Job.HOUSEKEEPING, now)
        return LookAtFiles(self._context) if due else None

    def _sort(self, now: datetime) -> None:
        """Remove old files, and list those worth compressing."""
        horizon = now - timedelta(days=self._context.configuration.submission.keep_days)
        with self._context.store.read() as tx:
            known, again, promised = tx.submissions(), tx.wanted_files(), _promised(tx)
        wanted = {
            row.file_hash
            for row in known
            if row.state in ACTIVE or row.own or (row.submitted_at or now) > horizon
        }
        wanted |= {request.file_hash for request in again} | promised
        busy = {row.file_hash for row in known if row.state in ACTIVE}
        # cleared first, so that a file that fails is not tried at each step
        stored, self._stored = self._stored, {}
        for path, plain in stored.items():
            if path.name not in wanted:
                self._files.remove(path.name)
            elif plain and path.name not in busy:
                self._compressible.append(path)


def _promised(tx: Transaction) -> set[str | None]:
    """Return the files of unrevealed phases whose contents are promised by the terms, or may be later."""
    entries, revealed = [public for public, _ in tx.commitments()], tx.revealed_phases()
    rules = {phase: disclosure.rule_of(entries, phase) for phase in tx.phases() if phase not in revealed}
    return {
        row.file_hash
        for row in tx.submissions(COUNTED | {State.SCORED})
        if row.phase in rules
        and disclosure.may_be_due(
            rules[row.phase],
            baseline=row.baseline or row.own,
            public=bool(row.public_at_first or row.public_now),
        )
    }


class FilesAct(Act[FileStore, Result]):
    """An act on the stored files; after a failure, it is tried again when the files are listed next.

    Args:
        context: The worker's surroundings.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    def outcome(self, tx: Transaction, result: Result, now: datetime) -> None:
        """Resolve the alert about an earlier failure."""
        tx.resolve_alert(f"files.{self.name}", now=now)

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Tell the organizer."""
        self._context.report(tx, f"files.{self.name}", error, now=now)


class LookAtFiles(FilesAct["dict[Path, bool]"]):
    """List the stored files, and whether each is worth compressing."""

    name = "look"
    what: ClassVar[str] = "The look at the stored files"
    time_out_s = 600.0

    def perform(self, resource: FileStore) -> dict[Path, bool]:
        """Read the first bytes of each file."""
        return {path: worth_compressing(path) for path in resource.stored()}


class CompressFile(FilesAct[None]):
    """Replace a stored file with its gzip, which contains the same embeddings.

    Args:
        context: The worker's surroundings.
        path: The file; its name remains the hash of the downloaded bytes.
    """

    name = "compress"
    what: ClassVar[str] = "The compression of a stored file"
    time_out_s = 600.0

    def __init__(self, context: Context, path: Path) -> None:
        super().__init__(context)
        self.path = path

    def perform(self, resource: FileStore) -> None:
        """Compress to a new folder, because an earlier try may still be running, and move the result over the file."""
        folder = resource.temporary(f"compress-{secrets.token_hex(4)}")
        folder.mkdir(mode=0o700)
        try:
            with (
                self.path.open("rb") as source,
                gzip.open(folder / "file", "wb", compresslevel=LEVEL) as target,
            ):
                shutil.copyfileobj(source, target, 1 << 20)
            (folder / "file").replace(self.path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def worth_compressing(path: Path) -> bool:
    """Return whether a stored file is not compressed yet."""
    try:
        with path.open("rb") as file:
            return not file.read(4).startswith(COMPRESSED)
    except FileNotFoundError:
        return False
