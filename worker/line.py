"""The line to EvalAI: one call at a time, within the budget; and when it is tried again after a failure.

All calls go through this one lane, one after another, so that answers are never overtaken by readings that are older. A refused token or
a closed budget holds every errand up; any other failure only the errand that failed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker.budget import Budget
from worker.configuration import Configuration
from worker.context import Context
from worker.evalai import Client, Throttled, TokenRefused
from worker.lanes import Lane
from worker.state.records import LONGEST_WAIT

ALL = "all"  # the back-off that holds for every errand
OUTAGE = timedelta(minutes=1)  # shorter ones come and go, and nobody has to act


class Line:
    """Runs one errand at a time.

    Args:
        context: The worker's surroundings.
        client: EvalAI's client.
        budget: How many calls may leave.
        fresh_client: Makes a client with the token that the configuration points to now; asked after a refusal and a reload.
    """

    def __init__(
        self,
        context: Context,
        client: Client,
        budget: Budget,
        *,
        fresh_client: Callable[[Configuration], Client] | None = None,
    ) -> None:
        self._context = context
        self._client = client
        self._fresh_client = fresh_client
        self._budget = budget
        self._lane: Lane[Any] = Lane("evalai", context.wake)
        self._tries: dict[str, int] = {}
        self._not_before: dict[str, datetime] = {}
        self._reloaded = False
        # When EvalAI began to give no usable answer; None while it answers.
        self.silent_since: datetime | None = None
        self.fatal: NeucoError | None = None
        self.last_error: NeucoError | None = None

    @property
    def failing(self) -> bool:
        """Whether the last try of some errand failed."""
        return any(tries > 0 for tries in self._tries.values())

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._lane.busy

    def collect(self, now: datetime) -> bool:
        """Take in a finished call."""
        return self._lane.collect(now)

    def due(self, name: str, now: datetime) -> bool:
        """Tell whether an errand's back-off is over; a moment too far off is from before the clock was set back."""
        moment = self._not_before.get(name)
        return moment is None or not now < moment <= now + LONGEST_WAIT

    def reload(self) -> None:
        """Try everything at once with the token that the configuration points to now: what failed may have been mended."""
        self._reloaded = True
        self._forget()

    def _forget(self) -> None:
        self._tries.clear()
        self._not_before.clear()

    def _renew_client(self) -> None:
        """Take up the token that the configuration points to now; without a readable one the old one is tried on."""
        if self._fresh_client is None:
            return
        with contextlib.suppress(NeucoError):
            fresh = self._fresh_client(self._context.configuration)
            self._client.close()
            self._client = fresh

    def start(
        self,
        name: str,
        call: Callable[[Client], Any],
        done: Callable[[Any, datetime], None],
        now: datetime,
        *,
        failed: Callable[[NeucoError, datetime], None] | None = None,
        pk: int | None = None,
        answer: bool = False,
    ) -> bool:
        """Make the call of an errand, if its turn and the budget allow it; tell whether it is under way.

        Args:
            name: The errand's name, for its back-off and its kill points.
            call: Asks EvalAI; runs beside the loop and touches no state of ours.
            done: What follows from the outcome, in the loop.
            now: The time.
            failed: What follows from an error; without it the errand backs off under its name.
            pk: The submission that the call is for.
            answer: Whether the call may use the budget's reserve.
        """
        if not self._budget.allows(now, answer=answer) or not self.due(ALL, now):
            return False
        if self._reloaded or self._tries.get(ALL):
            self._reloaded = False
            self._renew_client()
        self._budget.spend(now)
        calls_before = self._client.calls
        if pk is not None:
            with self._context.store.write() as tx:
                tx.count_call(pk)

        def work() -> Any:
            self._context.checkpoint(f"before call {name}")
            result = call(self._client)
            self._context.checkpoint(f"after call {name}")
            return result

        def count_more(at: datetime) -> None:
            """Count what an errand of several calls has sent beyond its first; how many, only EvalAI's answers tell."""
            if (more := self._client.calls - calls_before - 1) > 0:
                self._budget.spend(at, more)

        def succeed(result: Any, at: datetime) -> None:
            count_more(at)
            self._tries.pop(name, None)
            self._not_before.pop(name, None)
            self._tries.pop(ALL, None)
            self._not_before.pop(ALL, None)
            self.last_error = None
            self._answered(at)
            self._context.over("evalai.token", now=at)
            try:
                done(result, at)
            except OrganizerError as error:
                self.fatal = error

        def fail(error: NeucoError, at: datetime) -> None:
            count_more(at)
            self._failed(name, error, at, failed)
            # A call that was made before the reload says nothing about what is configured now.
            if self._reloaded:
                self._forget()

        self._lane.start(work, done=succeed, failed=fail)
        return True

    def _failed(
        self,
        name: str,
        error: NeucoError,
        at: datetime,
        failed: Callable[[NeucoError, datetime], None] | None,
    ) -> None:
        self.last_error = error
        tries = self._tries.get(name, 0)
        self._tries[name] = tries + 1
        self._context.log.warning(error.sentence, event_key=error.code, errand=name, tries=tries + 1)
        if isinstance(error, InfrastructureError) and not isinstance(error, Throttled):
            self._unanswered(error, at)
        else:
            self._answered(at)
        if isinstance(error, Throttled):
            self._budget.close(at, at + timedelta(seconds=max(1.0, error.retry_after_s)))
        elif isinstance(error, TokenRefused):
            self._tries[ALL] = self._tries.get(ALL, 0) + 1
            self._not_before[ALL] = self._context.retry_at(at, self._tries[ALL] - 1)
            self._context.trouble("evalai.token", error, now=at)
        elif isinstance(error, OrganizerError) and name == "connect":
            self.fatal = error
        if failed is not None:
            failed(error, at)
        else:
            self._not_before[name] = self._context.retry_at(at, tries)

    def _answered(self, at: datetime) -> None:
        """Note that EvalAI answers, be it with a refusal."""
        self.silent_since = None
        self._context.over("evalai.unreachable", now=at)

    def _unanswered(self, error: NeucoError, at: datetime) -> None:
        """Note that a call got no usable answer, and tell the organizer if none has for a minute."""
        if self.silent_since is None or at < self.silent_since:  # the clock was set back
            self.silent_since = at
        if at - self.silent_since >= OUTAGE:
            self._context.trouble("evalai.unreachable", error, now=at)
