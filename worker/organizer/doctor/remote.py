"""The doctor's calls to EvalAI: a few that only read, with their answers kept. The queue is never asked for a message."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeVar

import requests

from worker.challenge.configuration import Configuration
from worker.daemon import make_client
from worker.evalai import Challenge, Phase, PhaseSplit, Throttled

TIMEOUT_S = (5.0, 20.0)
WAITS = 5  # for one call, each until EvalAI accepts calls again

Wait = Callable[[float, str], None]
T = TypeVar("T")


class Remote:
    """Asks EvalAI what can be asked without any effect.

    Args:
        configuration: Names server, token, challenge and queue.
        clock: Returns the time of this machine.
        wait: Waits for the given seconds, with the reason.

    Raises:
        OrganizerError: If the token is missing or invalid.
    """

    def __init__(self, configuration: Configuration, *, clock: Callable[[], datetime], wait: Wait) -> None:
        self._wait = wait
        self.skew_s: float | None = None
        self.script_url: str | None = None  # the address of a file in the same storage as submissions
        session = requests.Session()

        def heard(response: requests.Response, *_: Any, **__: Any) -> None:
            """Note what the client ignores: the server's time (from the newest answer), and where files are stored."""
            date = response.headers.get("Date")
            with contextlib.suppress(TypeError, ValueError):  # an invalid date, or one without a time zone
                self.skew_s = (parsedate_to_datetime(date) - clock()).total_seconds() if date else self.skew_s
            try:
                document = response.json()
            except requests.JSONDecodeError:
                return
            if isinstance(document, dict) and isinstance(document.get("evaluation_script"), str):
                self.script_url = document["evaluation_script"]

        session.hooks["response"].append(heard)
        self._session = session
        self._client = make_client(configuration, session=session, timeout_s=TIMEOUT_S, clock=clock)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @property
    def expiry(self) -> datetime | None:
        """When the token expires; None for a token without an expiry date."""
        return self._client.expiry

    def challenge(self) -> Challenge:
        """Return the challenge behind the queue: a worker's first call."""
        return self._ask(self._client.challenge)

    def phases(self) -> Sequence[Phase]:
        """Return EvalAI's phases."""
        return self._ask(self._client.phases)

    def splits(self) -> dict[tuple[int, str], PhaseSplit]:
        """Return EvalAI's phase splits by phase and the dataset split's codename."""
        splits = self._ask(self._client.phase_splits)
        names = {
            pk: self._ask(partial(self._client.dataset_split, pk)).codename
            for pk in {s.dataset_split_pk for s in splits}
        }
        return {(split.phase_pk, names[split.dataset_split_pk]): split for split in splits}

    def _ask(self, call: Callable[[], T]) -> T:
        """Make a call; if EvalAI throttles it, wait as long as EvalAI asks, and repeat it."""
        for _ in range(WAITS):
            try:
                return call()
            except Throttled as error:
                seconds = math.ceil(error.retry_after_s)
                why = (
                    "This account's calls to EvalAI are used up for this minute (a running worker shares them):"
                    f" waiting {seconds} s, as EvalAI asks."
                )
            self._wait(seconds, why)
        return call()
