"""What the organizers have stopped, until they end it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from worker.state.alerts import Alerts
from worker.state.facts import Facts

PAUSE = "pause"  # a named fact, and the key of its alert


@dataclass(frozen=True, kw_only=True)
class Pause:
    """What the organizers have stopped.

    Attributes:
        mode: ``pause``: scoring; ``drain``: taking more submissions.
        since: Since when, ISO 8601.
    """

    mode: Literal["pause", "drain"]
    since: str

    @property
    def sentence(self) -> str:
        """Say what is stopped, since when, and how it ends."""
        follows = {"pause": "nothing is scored", "drain": "no more submissions are received"}[self.mode]
        since = f"{datetime.fromisoformat(self.since):%Y-%m-%d %H:%M} UTC"
        return f"The challenge has been paused since {since}: {follows}. `neuco-worker challenge pause --undo` ends this."


class Pauses(Facts, Alerts):
    """Methods for the pause."""

    def pause(self) -> Pause | None:
        """Return what the organizers have stopped, if anything."""
        document = self.document(PAUSE)
        return Pause(**document) if document else None

    def is_paused(self, mode: Literal["pause", "drain"]) -> bool:
        """Return whether the organizers have stopped scoring (``pause``), or taking more submissions (``drain``)."""
        return self.document(PAUSE).get("mode") == mode

    def set_pause(self, mode: Literal["pause", "drain"] | None, *, now: datetime) -> None:
        """Begin a pause, or end it; a pause that lasts already keeps its beginning."""
        before = self.pause()
        since = before.since if before else now.isoformat()
        self.set_fact(PAUSE, json.dumps(asdict(Pause(mode=mode, since=since))) if mode else None)
        if mode is None:
            self.resolve_alert(PAUSE)
