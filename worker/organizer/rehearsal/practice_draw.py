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
from worker.fairness.draws import DRAND, NONE
from worker.organizer.applying import enter_value
from worker.organizer.rehearsal.folder import RehearsalFolder
from worker.organizer.rehearsal.practice_chain import practice_chain, served
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


class PracticeValue:
    """Enters the value of an organizer's own source, once it is due, as the organizer does in the real challenge.

    Args:
        folder: The rehearsal's folder.
        tell: Called with a sentence when it does so.
    """

    def __init__(self, folder: RehearsalFolder, tell: Callable[[str], object]) -> None:
        self._folder = folder
        self._tell = tell
        self._entered = False

    def look(self, now: datetime) -> None:
        """Enter the value if a published commitment has named its source, and its moment has come."""
        if self._entered:
            return
        waiting = draws.waiting(self._folder.published(PATH) or []).values()
        due = [draw for draw in waiting if draw.chain is None and draw.at <= now]
        if not due:
            return
        self._entered = True
        self._tell(
            f"The value of {due[0].source} is due. In the real challenge, you now run `neuco-worker challenge apply --beacon"
            f" VALUE` with the published value; here, “{PRACTICE_VALUE}” is used."
        )
        with open_session(self._folder.configuration) as session:
            enter_value(session, PRACTICE_VALUE, reason="a practice value was mixed in")


def real_wait(fairness: Fairness) -> str:
    """Describe what the first score waits for in the real challenge."""
    if fairness.beacon == DRAND:
        return f"scoring begins at least {draws.in_words(fairness.beacon_notice)} after the commitment"
    source, moment = read_source(fairness.beacon)
    return (
        f"scoring starts when {source} has published its value ({moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC) and"
        " you have run `neuco-worker challenge apply --beacon VALUE`"
    )
