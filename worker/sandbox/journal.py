"""The journal: an ordered record of every request to the sandbox and every change in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The sandbox's time source, by default the machine's: ``now`` for dates, ``monotonic`` for seconds that never jump."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic


class ManualClock:
    """A clock that only moves when it is advanced; safe to use from several threads."""

    def __init__(self, start: datetime | None = None) -> None:
        self._start = start or datetime(2026, 1, 1, 12, tzinfo=UTC)
        self._elapsed_s = 0.0
        self._lock = threading.Lock()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self._elapsed_s += seconds

    def now(self) -> datetime:
        """Return the date and time that this clock shows."""
        return self._start + timedelta(seconds=self._elapsed_s)

    def monotonic(self) -> float:
        """Return the seconds that passed since the start."""
        return self._elapsed_s

    def clock(self) -> Clock:
        """Return this clock as the sandbox expects it."""
        return Clock(now=self.now, monotonic=self.monotonic)


Kind = Literal["request", "effect", "fault"]


@dataclass(frozen=True, kw_only=True)
class JournalEntry:
    """One entry of the journal.

    ``request``: an HTTP call that was answered, with its method, path, user (None if it had no valid token) and status.
    ``effect``: a change of state; ``name`` is one of submitted, running, queued, posted, uploaded, edited, cancelled, rerun, resumed,
    message_sent, message_received, message_deleted, delete_ignored.
    ``fault``: a deliberate fault of an answer; ``name`` is its kind.
    """

    number: int
    at: datetime
    kind: Kind
    name: str = ""
    origin: Literal["api", "media", "direct"] = "direct"
    method: str = ""
    path: str = ""
    user: str | None = None
    status: int = 0
    submission: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


class Journal(list[JournalEntry]):
    """All entries, to which only :meth:`write` adds, always at the end; so a test can read while the server works."""

    def write(self, kind: Kind, *, at: datetime, **fields: Any) -> None:
        """Append an entry and number it; the caller holds the world's lock."""
        self.append(JournalEntry(number=len(self), at=at, kind=kind, **fields))

    def requests(self, method: str = "", path: str = "") -> list[JournalEntry]:
        """Return the answered calls whose method is ``method`` and whose path contains ``path``."""
        return [e for e in self if e.kind == "request" and method in ("", e.method) and path in e.path]

    def effects(self, name: str = "", submission: int | None = None) -> list[JournalEntry]:
        """Return the changes of state, optionally only those with one name or of one submission."""
        return [
            e
            for e in self
            if e.kind == "effect" and name in ("", e.name) and submission in (None, e.submission)
        ]

    def posts(self) -> dict[int, list[Mapping[str, Any]]]:
        """Return every accepted final PUT per submission, in order: status, phase, result, stdout, stderr, metadata.

        A correct worker makes all posts of one submission equal.
        """
        posts: dict[int, list[Mapping[str, Any]]] = {}
        for entry in self.effects("posted"):
            if entry.submission is not None:
                posts.setdefault(entry.submission, []).append(entry.detail)
        return posts
