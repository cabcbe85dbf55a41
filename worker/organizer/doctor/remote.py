"""EvalAI as the doctor sees it: a handful of reading calls, their answers kept. The queue is never asked for a message."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cached_property, partial
from typing import Any, TypeVar

import requests

from scoring.errors import NeucoError
from worker.challenge.configuration import Configuration
from worker.daemon import make_client
from worker.evalai import Challenge, Phase, PhaseSplit, Throttled, Unreachable

TIMEOUT_S = (5.0, 20.0)
WAITS = 5  # of one call; each ends when EvalAI said that it would take calls again

Wait = Callable[[float, str], None]
T = TypeVar("T")


class Remote:
    """Asks EvalAI what can be asked without effect.

    Args:
        configuration: Names server, token, challenge and queue.
        clock: Gives the time of this machine.
        wait: Lets so many seconds pass, and tells why.

    Raises:
        OrganizerError: The token is missing or cannot be one.
    """

    def __init__(self, configuration: Configuration, *, clock: Callable[[], datetime], wait: Wait) -> None:
        self._wait = wait
        self.skew_s: float | None = None
        self.script_url: str | None = None  # a file that EvalAI stores where it stores submissions
        session = requests.Session()

        def heard(response: requests.Response, *_: Any, **__: Any) -> None:
            """Keep what the client has no use for: the server's time (the newest answer counts), and where files are stored."""
            date = response.headers.get("Date")
            with contextlib.suppress(TypeError, ValueError):  # a date that is none, or one without a zone
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
        """When the token ends; None for one that does not say."""
        return self._client.expiry

    @cached_property
    def greeting(self) -> Challenge | NeucoError:
        """The challenge behind the queue, or why it was not given: the first call of a worker."""
        try:
            return self._ask(self._client.challenge)
        except NeucoError as error:
            return error

    @property
    def challenge(self) -> Challenge:
        """The challenge behind the queue.

        Raises:
            NeucoError: As it was refused.
        """
        if isinstance(self.greeting, NeucoError):
            raise self.greeting
        return self.greeting

    @cached_property
    def queue_breaks(self) -> bool:
        """Whether EvalAI fails on the queue alone, as it does when two challenges share one: asked by the challenge's number it answers."""
        if not isinstance(self.greeting, Unreachable):
            return False
        try:
            return bool(self.phases)
        except NeucoError:
            return False

    @cached_property
    def phases(self) -> Mapping[str, Phase]:
        """EvalAI's phases by codename."""
        return {phase.codename: phase for phase in self._ask(self._client.phases)}

    @cached_property
    def splits(self) -> Mapping[tuple[int, str], PhaseSplit]:
        """EvalAI's phase splits by phase and the dataset split's codename."""
        splits = self._ask(self._client.phase_splits)
        names = {
            pk: self._ask(partial(self._client.dataset_split, pk)).codename
            for pk in {s.dataset_split_pk for s in splits}
        }
        return {(split.phase_pk, names[split.dataset_split_pk]): split for split in splits}

    def _ask(self, call: Callable[[], T]) -> T:
        """Make a call; where EvalAI refuses it for this minute, wait as long as EvalAI asks, and make it again."""
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
