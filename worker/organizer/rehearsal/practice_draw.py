"""The draw of a rehearsal: as in the real challenge, a public value is named, awaited and mixed in, but within seconds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from worker.challenge.sections import Fairness, read_source
from worker.fairness import draws
from worker.fairness.commitments import PATH
from worker.fairness.draws import DRAND, NONE, Draw
from worker.organizer.committing import commit
from worker.organizer.rehearsal.folder import RehearsalFolder
from worker.organizer.rehearsal.practice_chain import practice_chain, served
from worker.organizer.rehearsal.report import RehearsedDraw
from worker.organizer.session import open_session

# long enough to push the commitment that names a round; after that, the worker names a later one
NOTICE_S = 10.0
# longer: the worker must start first, and a source, unlike drand, has no later value to fall back on
SOURCE_S = 15.0
PRACTICE_VALUE = "a practice value"


@contextmanager
def practised(fairness: Fairness, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the settings for a practice draw, which are valid while the context is open.

    Args:
        fairness: The organizer's settings.
        folder: Where the practice chain is described.
    """
    if fairness.beacon == DRAND:
        chain = practice_chain(genesis=int(time.time()) - 1)
        described = folder / "practice_chain.json"
        described.write_text(json.dumps(chain.to_json()), encoding="utf-8")
        with served(chain) as address:
            yield {
                "beacon": DRAND,
                "beacon_notice": NOTICE_S,
                "drand_chain": str(described),
                "drand_servers": [address],
            }
    elif fairness.beacon == NONE:
        yield {"beacon": NONE}
    else:
        source, _ = read_source(fairness.beacon)
        moment = datetime.now(UTC) + timedelta(seconds=SOURCE_S)
        yield {"beacon": f"{source}@{moment.isoformat()}"}


class DrawWatch:
    """Follows and reports what is published about the draw, and enters the value of an organizer's own source.

    Args:
        folder: The rehearsal's folder.
        fairness: The organizer's settings.
        tell: Called with a sentence for each event.
    """

    def __init__(self, folder: RehearsalFolder, fairness: Fairness, tell: Callable[[str], object]) -> None:
        self._folder = folder
        self._fairness = fairness
        self._tell = tell
        self._waiting: dict[str, Draw] = {}
        self._named_at: dict[str, datetime] = {}
        self._seen = 0
        self._brought = False
        self.drawn: dict[str, RehearsedDraw] = {}

    def look(self, now: datetime) -> None:
        """Process what was published since the last look."""
        if self._fairness.beacon == NONE or (self.drawn and not self._waiting):
            return
        entries = self._folder.published(PATH) or []
        for entry in entries[self._seen :]:
            self._name(entry, now)
            self._take(entry)
        self._seen = len(entries)
        if not self._brought and any(
            draw.chain is None and draw.at <= now for draw in self._waiting.values()
        ):
            self._bring()

    def _name(self, entry: dict[str, Any], now: datetime) -> None:
        for phase in entry.get("draws", {}):
            draw = draws.named(entry, phase)
            if draw is None:
                continue
            self._waiting[phase] = draw
            self._named_at[phase] = datetime.fromisoformat(entry["made_at"])
            what = "the value" if draw.round is None else f"round {draw.round}"
            left = max(0.0, (draw.at - now).total_seconds())
            self._tell(
                f"{phase}: scoring starts when {what} of {draw.source} is known, in {left:.0f} s; until then, files are"
                " only downloaded."
            )

    def _take(self, entry: dict[str, Any]) -> None:
        for phase, value in entry.get("drawn", {}).items():
            draw = self._waiting.pop(phase)
            self.drawn[phase] = RehearsedDraw(
                phase=phase,
                source=draw.source,
                round=draw.round,
                value=str(value["value"]),
                waited_s=(draw.at - self._named_at[phase]).total_seconds(),
                real_wait=real_wait(self._fairness),
            )
            self._tell(self.drawn[phase].sentence)

    def _bring(self) -> None:
        """Enter the value, as the organizer does."""
        sources = ", ".join(dict.fromkeys(draw.source for draw in self._waiting.values()))
        self._tell(
            f"The value of {sources} is due. In the real challenge, you now run `neuco-worker challenge commit --beacon"
            f" VALUE` with the published value; here, “{PRACTICE_VALUE}” is used."
        )
        with open_session(self._folder.configuration) as session:
            commit(session, reason="", beacon=PRACTICE_VALUE)
        self._brought = True


def real_wait(fairness: Fairness) -> str:
    """Describe what the first score waits for in the real challenge."""
    if fairness.beacon == DRAND:
        return f"scoring begins at least {draws.in_words(fairness.beacon_notice)} after the commitment"
    source, moment = read_source(fairness.beacon)
    return (
        f"scoring starts when {source} has published its value ({moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC) and"
        " you have run `neuco-worker challenge commit --beacon VALUE`"
    )
