"""Files that are wanted again: a command requests them, and the leading worker fetches them from EvalAI.

A request stays until its purpose is done, so that a crash loses no request and no file is removed that is still needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from worker.state.notices import Notices
from worker.state.rows import LONGEST_WAIT
from worker.state.submissions import Submissions

_WANTED = "files_wanted"


@dataclass(frozen=True, kw_only=True)
class WantedFile:
    """A request for a file.

    Attributes:
        submission: The submission whose file it is.
        file_hash: SHA-256 that it must have.
        stored: Whether the leading worker has it.
        failure: Why it cannot be fetched; None while that is open.
        tries: Failed downloads.
        not_before: When to try again, ISO 8601.
    """

    submission: int
    file_hash: str
    stored: bool = False
    failure: str | None = None
    tries: int = 0
    not_before: str | None = None

    @property
    def open(self) -> bool:
        """Whether it is still to be fetched."""
        return not self.stored and self.failure is None

    def waits(self, now: datetime) -> bool:
        """Return whether it is too early for the next try."""
        if self.not_before is None:
            return False
        return timedelta() < datetime.fromisoformat(self.not_before) - now <= LONGEST_WAIT


class WantedFiles(Submissions, Notices):
    """Methods for files that are wanted again."""

    def wanted_files(self, *, open_only: bool = False) -> list[WantedFile]:
        """Return the requests, in the order of the submissions."""
        wanted = self._wanted_files()
        return [wanted[pk] for pk in sorted(wanted) if wanted[pk].open or not open_only]

    def wanted_file(self, pk: int) -> WantedFile | None:
        """Return the request for a submission's file."""
        return self._wanted_files().get(pk)

    def want_file(self, pk: int, file_hash: str) -> None:
        """Request a submission's file, even after an earlier request; its address is read from EvalAI again."""
        self._keep({**self._wanted_files(), pk: WantedFile(submission=pk, file_hash=file_hash)})
        self.note(pk, read_at=None)

    def note_wanted(self, pk: int, **values: Any) -> None:
        """Record the result of a request."""
        wanted = self._wanted_files()
        if pk in wanted:
            self._keep({**wanted, pk: replace(wanted[pk], **values)})

    def forget_wanted(self, pks: Iterable[int]) -> None:
        """Remove requests whose purpose is done."""
        wanted, done = self._wanted_files(), set(pks)
        self._keep({pk: request for pk, request in wanted.items() if pk not in done})

    def _wanted_files(self) -> dict[int, WantedFile]:
        stored = self.fact(_WANTED)
        rows = [] if stored is None else [WantedFile(**row) for row in json.loads(stored)]
        return {request.submission: request for request in rows}

    def _keep(self, wanted: dict[int, WantedFile]) -> None:
        rows = [asdict(request) for request in wanted.values()]
        self.set_fact(_WANTED, json.dumps(rows) if rows else None)
