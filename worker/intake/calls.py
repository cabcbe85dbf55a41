"""Calls to EvalAI: one at a time, within the account's budget, and with a back-off after a failure.

All calls go through one runner, one after another, so that a reading that began before an answer was sent is never recorded after it. A
refused token or an exhausted budget delays every call; any other failure delays only the submission that the call is about or, if it is
about none, calls of the same kind.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, cast

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker.answers import answers
from worker.challenge.configuration import Configuration
from worker.challenge.context import Context, seconds
from worker.evalai import AccountRefused, Budget, Client, NotPermitted, Retry, Throttled, TokenRefused
from worker.intake.session import CLOCKS_AGREE, Session, clocks_differ
from worker.runtime.acts import Act, Result, Runner
from worker.state import ALERT_AFTER_TRIES, Transaction

ALL = "all"  # key of the back-off that holds for every call
LONGEST_UNHURRIED = timedelta(hours=1)  # between two tries of a call for which nothing waits
OUTAGE = timedelta(minutes=1)  # shorter outages end by themselves, and nobody must act


@dataclass(kw_only=True, eq=False, repr=False)
class Call(Act[Client, Result]):
    """An act on EvalAI.

    Attributes:
        context: The worker's surroundings.
        session: The session with EvalAI.
        pk: The submission that it is about, which alone is delayed by a failure; None if it is about none, or about many.
        answer: Whether an answer depends on it, so that it may use the budget's reserve.
        ahead: How many calls must be able to follow at once: a reading that becomes too old before `running` can be sent is wasted.
        began_at: When it began: what it reads was true at that moment or later.
        retry: How many calls of its name have failed in a row before it, and when the last of them did.
    """

    what: ClassVar[str] = "A call to EvalAI"
    time_out_s = 75.0  # in total; connecting and each read have time limits of their own
    context: Context
    session: Session
    pk: int | None = None
    answer: bool = False
    ahead: int = 0
    began_at: datetime = field(init=False)
    retry: Retry = field(init=False)
    unhurried: ClassVar[bool] = False
    """Whether nothing waits for it, so that it is tried again less and less often."""

    def give_up(self, resource: Client) -> None:
        """Let its thread send nothing later, when EvalAI may have been told something newer."""
        resource.give_up()

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Tell the organizer of an error that does not end by itself, and delay its submission.

        The runner repeats a call that is about no submission, and ends the alert once it succeeds.
        """
        tries, key = self.retry.tries, f"evalai.{self.name}"
        if self.pk is not None:
            row, grid = tx.known(self.pk), self.context.configuration.submission.answer_grid
            tries, key = row.tries, f"{self.name}:{self.pk}"
            again = self.context.retry_at(now, tries)
            if answers.waits(row, again, grid=seconds(grid)):
                again = row.due_at  # no failure makes an answer leave before its moment
            tx.note(self.pk, not_before=again, tries=tries + 1)
        if self.is_told(error, tries):
            tx.report(key, error, now=now)

    def is_told(self, error: NeucoError, tries: int) -> bool:
        """Return whether the organizer is told of an error after so many failed tries.

        A refused token has an alert of its own, and so has an outage: what may be one must have failed several times, and EvalAI must have
        answered another call since it failed last.
        """
        if not isinstance(error, InfrastructureError | NotPermitted):
            return not isinstance(error, TokenRefused)
        failed_at, silent_since = self.retry.failed_at, self.session.silent_since
        answered = silent_since is None or (failed_at is not None and failed_at < silent_since)
        return answered and tries + 1 >= ALERT_AFTER_TRIES


class CallRunner:
    """Makes one call at a time.

    Args:
        context: The worker's surroundings.
        session: The session with EvalAI.
        client: EvalAI's client.
        budget: How many calls may leave.
        fresh_client: Makes a client with the currently configured token; called after a refusal and after a reload.

    Attributes:
        clock_agrees: Whether our clock agrees with EvalAI's; None if no call has ended since there was a reason to compare them.
    """

    def __init__(
        self,
        context: Context,
        session: Session,
        client: Client,
        budget: Budget,
        *,
        fresh_client: Callable[[Configuration], Client],
    ) -> None:
        self._context = context
        self._session = session
        self._client = client
        self._fresh_client = fresh_client
        self._budget = budget
        self._runner: Runner[Client] = Runner(
            "evalai", context.store, wake=context.wake, checkpoint=context.checkpoint
        )
        self._retries: defaultdict[str, Retry] = defaultdict(Retry)
        self._reloaded = False
        self._calls_before = 0  # count of the client when the current call began
        self.clock_agrees: bool | None = None
        self._began_before = False  # whether the call under way began before our clock jumped
        self.fatal: NeucoError | None = None
        self.last_error: NeucoError | None = None
        self.refused: TokenRefused | None = None  # how EvalAI refused the token; None while it accepts it

    @property
    def failing(self) -> bool:
        """Whether the last try of some call failed."""
        return any(retry.tries > 0 for retry in self._retries.values())

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._runner.busy

    def due(self, name: str, now: datetime) -> bool:
        """Return whether a call's back-off is over."""
        return self._retries[name].due(now)

    def doubt_clock(self) -> None:
        """Compare the clocks again, because ours has jumped; a call that is under way cannot show how."""
        self.clock_agrees, self._began_before = None, self._runner.busy

    def reload(self) -> None:
        """Make every call at once, with the currently configured token, because the cause of a failure may have been fixed."""
        self._reloaded = True
        self._retries.clear()

    def tell_of_silence(self, now: datetime) -> None:
        """Tell the organizer that EvalAI has not answered a process that ends before this is an outage; the next answer ends the alert."""
        if self._session.silent_since is not None and self.last_error is not None:
            self._context.report("evalai.unreachable", self.last_error, now=now)

    def start(self, call: Call[Result], now: datetime) -> None:
        """Make a call, if the budget allows it."""
        keep = self._budget.reserve + call.ahead
        if not self._budget.allows(now, answer=call.answer, keep=keep) or not self.due(ALL, now):
            return
        if self._reloaded or isinstance(self.last_error, AccountRefused):
            self._reloaded = False
            self._renew_client()
        self._calls_before, self._client.ahead = self._client.calls, None
        call.began_at, call.retry, self._began_before = now, self._retries[call.name], False
        self._runner.start(call, self._client, now)
        if self.busy:
            self._budget.spend(now)

    def collect(self, now: datetime) -> None:
        """Process the result of a finished call."""
        ended = self._runner.collect(now)
        if ended is None:
            return
        call = cast("Call[Any]", ended.act)
        self._compare_clocks(now)
        # A call may consist of several requests; the others are counted now that their number is known.
        if (more := self._client.calls - self._calls_before - 1) > 0:
            self._budget.spend(now, more)
        if ended.given_up:  # its thread may still use the old client, which sends nothing more
            self._client.close()
            self._client = self._client.again()
        if ended.error is None:
            self._succeeded(call, now)
        else:
            self._failed(call, ended.error, now)
        if self._reloaded:  # the call may have begun with the old token or address
            self._retries.clear()
        self._note_answer(call, ended.error, now)

    def _succeeded(self, call: Call[Result], now: datetime) -> None:
        for name in (call.name, ALL):
            self._retries.pop(name, None)
        self.last_error = self.refused = None
        self._context.resolve_alerts(f"evalai.{call.name}", "evalai.token", "evalai.unreachable")

    def _failed(self, call: Call[Result], error: NeucoError, now: datetime) -> None:
        self.last_error = error
        retry, again_at = self._retries[call.name], now
        if call.unhurried:
            again_at += min(LONGEST_UNHURRIED, timedelta(minutes=2 ** min(retry.tries, 10)))
        elif call.pk is None:
            again_at = self._context.retry_at(now, retry.tries)
        retry.failed(now, again_at=again_at)
        self._context.log.warning(error.sentence, event_key=error.code, call=call.name, tries=retry.tries)
        if isinstance(error, Throttled):
            self._budget.close(now, now + timedelta(seconds=max(1.0, error.retry_after_s)))
        elif isinstance(error, TokenRefused):
            self.refused = error
            every = self._retries[ALL]
            every.failed(now, again_at=self._context.retry_at(now, every.tries))
            self._context.report("evalai.token", error, now=now)
        elif isinstance(error, OrganizerError):
            # It took the token, which an earlier start may have seen refused.
            if error.code != "evalai.redirected":
                self.refused = None
                self._context.resolve_alerts("evalai.token")
            if self._session.remote is None:  # at the start, there is no point in going on
                self.fatal = error

    def _renew_client(self) -> None:
        """Use the currently configured token; if it cannot be read, keep the old one."""
        with contextlib.suppress(NeucoError):
            fresh = self._fresh_client(self._context.configuration)
            self._client.close()
            self._client = fresh

    def _compare_clocks(self, now: datetime) -> None:
        """Compare our clock with EvalAI's, and tell the organizer if they differ by minutes."""
        ahead = self._client.ahead
        if self._began_before:
            return
        if ahead is None:
            # Without an answer, what was known before goes on; at the start, that our clock is right.
            self.clock_agrees = self.clock_agrees is not False
        elif abs(ahead) <= CLOCKS_AGREE:
            # At the start, too, because the worker before may have told the organizer.
            if not self.clock_agrees:
                self._context.resolve_alerts("clock")
            self.clock_agrees = True
        else:
            self.clock_agrees = False
            wrong = InfrastructureError(
                f"{clocks_differ(ahead)}, so the worker scores and publishes nothing: what it registers would have a wrong time for good.",
                hint="Set this machine's clock, for example with `timedatectl set-ntp true`. The worker then continues.",
                code="clock.wrong",
            )
            self._context.report("clock", wrong, now=now)

    def _note_answer(self, call: Call[Result], error: NeucoError | None, now: datetime) -> None:
        """Note a usable answer, or tell of an outage; a refusal is an answer, unless it is of our account, which may do nothing then."""
        session = self._session
        if not isinstance(error, InfrastructureError | NotPermitted):
            session.call_began_at, session.call_ended_at = call.began_at, now
            session.silent_since = None
            if error is not None:  # a success has ended the alert
                self._context.resolve_alerts("evalai.unreachable")
        elif session.silent_since is None or now < session.silent_since:  # the clock was set back
            session.silent_since = now
        elif now - session.silent_since >= OUTAGE:
            self._context.report("evalai.unreachable", error, now=now)
