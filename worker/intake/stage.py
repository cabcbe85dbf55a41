"""The intake stage: decide which call to EvalAI comes next.

What is due is read from the database at each step. The first listing of the whole challenge comes before everything but late answers. After
that the order is: lookups of the authors of scored submissions and of the one that is scored next, answers, the submission that is scored
next, new facts, lookups of other authors, the whole listing, the latest submissions, the phases, the queue, and what the whole listing
lacks. Messages only name submissions, and one listing has the facts of all: so known submissions are scored and answered first, and
the queue gets the calls that are left.

An idle worker makes about 14 calls a minute with the default settings: 12 to the queue, 2 for the latest submissions, and three in
ten minutes for the whole listing, the challenge and its phases. The budget keeps everything together within its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from worker.answers import answers
from worker.challenge.configuration import Configuration
from worker.challenge.context import Context, Job, seconds
from worker.evalai import Budget, Client
from worker.fairness.published import UNCOMPARED, is_held
from worker.intake.answering import PostAnswer
from worker.intake.calls import Call, CallRunner
from worker.intake.hosts import HOSTS, next_lookup, unknown_authors
from worker.intake.phases import PHASES, ReadPhases
from worker.intake.queue import POLL, ReceiveMessage
from worker.intake.reading import (
    RECENT,
    RECONCILE,
    Connect,
    ListSubmissions,
    ReadSubmission,
    Reconcile,
)
from worker.intake.running import SetRunning, next_to_run
from worker.intake.session import BATCH_WINDOW, Session
from worker.runtime.acts import Start
from worker.state import (
    ACTIVE,
    ANSWERED,
    DECIDED,
    State,
    SubmissionRow,
    Transaction,
)

# An older reading is not enough before `running` is sent, because that call would revive a cancelled submission.
FRESH_TO_RUN = timedelta(seconds=3)
# How long before an answer's moment on the grid its submission is read.
LOOK_AHEAD = timedelta(seconds=4)
# Before an answer leaves, no older reading is relied upon, and none from before the answer was known.
FRESH_TO_ANSWER = LOOK_AHEAD + timedelta(seconds=2)
# From when on an answer is late.
OVERDUE = timedelta(minutes=1)
DRAINED_POLLS = 2
# A short poll asks only some of SQS's servers: an empty result may have missed a message.
EMPTY_POLL_AGAIN = timedelta(seconds=1)
# How long the queue may go unread while all calls are needed for submissions that are known.
UNREAD_FOR = timedelta(minutes=1)
# Calls that a waiting submission will cost until it is answered: running, the answer, its part of the listings.
CALLS_AHEAD = 2.5
# The queue's share of a minute's calls when the remaining calls do not suffice for all waiting submissions.
QUEUE_SHARE = 0.25
# From this many due readings on, one listing is cheaper.
MANY = 2
# States in which missing facts are read: a submission is new, was just answered, its link has expired, or a message came after its end.
UNREAD = (State.RECEIVED, State.ACKNOWLEDGED, State.UPLOADING, State.CANCELLED, *ANSWERED)


class Intake:
    """Decides which call to EvalAI comes next.

    Attributes:
        jobs: The regular jobs.
        calls: The runner of the calls.
        session: What EvalAI told this process.

    Args:
        context: The worker's surroundings.
        client: EvalAI's client.
        budget: How many calls may leave.
        fresh_client: See :class:`worker.intake.calls.CallRunner`.
    """

    jobs = (POLL, RECENT, RECONCILE, PHASES, HOSTS)

    def __init__(
        self,
        context: Context,
        client: Client,
        budget: Budget,
        *,
        fresh_client: Callable[[Configuration], Client],
    ) -> None:
        self._context = context
        self._budget = budget
        self._timetable = context.timetable
        self.session = Session()
        self.calls = CallRunner(context, self.session, client, budget, fresh_client=fresh_client)

    @property
    def drained(self) -> bool:
        """Whether nothing is left to learn: the listing was compared and two polls found the queue empty, or a drain skips both."""
        reconciled = self._timetable.done_at(RECONCILE) is not None
        with self._context.store.read() as tx:
            drains = tx.is_paused("drain")
        return drains or (reconciled and self.session.empty_polls >= DRAINED_POLLS)

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self.calls.busy

    def next_answer_at(self, now: datetime) -> datetime | None:
        """Return the moment of the answer grid that the next answer waits for; None if none waits, or only after a failure."""
        with self._context.store.read() as tx:
            ready = [row for row in tx.submissions(DECIDED) if row.tries == 0 and self._waits(row, now)]
        return min((row.due_at for row in ready), default=None)

    def reload(self) -> None:
        """Apply a changed configuration: its token may be another one, and EvalAI may have other phases now."""
        self.session.outdated = True
        self.calls.reload()

    def starts(self, tx: Transaction, now: datetime) -> Iterator[Start]:
        """Yield the start of the next call."""
        if self.calls.busy or self.calls.fatal is not None:
            return
        chosen = None if self.session.remote is None else next_to_run(self._context, tx, now)
        if (call := self.next_call(tx, chosen, now)) is not None:
            yield partial(self.calls.start, call, now)

    def next_call(self, tx: Transaction, chosen: SubmissionRow | None, now: datetime) -> Call[Any] | None:
        """Return the most urgent call, None if nothing is due; a submission was chosen to be scored next, or none."""
        session = self.session
        if session.remote is None:
            return self._connect(now)
        if not self._budget.allows(now):
            return self._answer(tx, now)  # the rest of the budget is reserved for answers
        if session.outdated and (connect := self._connect(now)):
            return connect
        drains = tx.is_paused("drain")
        reconcile = None if drains else self._regular(RECONCILE, Reconcile, now)
        # Changes from the time when no worker ran decide what follows. But an answer that is late leaves first, after its facts were read
        # again: so there is progress even if the worker is killed again and again before the listing is complete.
        if self._timetable.done_at(RECONCILE) is None:
            late = any(row.due_at < now - OVERDUE for row in tx.submissions(DECIDED))
            if late and tx.fact(UNCOMPARED):
                return None  # the listing would delay the answers for longer than the comparison does
            if call := (self._answer(tx, now) if late else None) or reconcile:
                return call
        unknown = unknown_authors(session, tx, now)
        lookup = partial(next_lookup, self._context, session, self.calls, tx, now, unknown=unknown)
        return (
            lookup(urgent=True, chosen=chosen)
            or self._answer(tx, now)
            or self._running(tx, chosen, now)
            or self._news(tx, now)
            or lookup()
            or reconcile
            or (None if drains else self._recent(tx, now))
            or self._regular(PHASES, ReadPhases, now)
            or (None if drains else self._poll(tx, now))
            or self._unlisted(tx, now)
        )

    # the calls, most urgent first

    def _connect(self, now: datetime) -> Call[Any] | None:
        return self._unless_failed(Connect, now, configuration=self._context.configuration)

    def _answer(self, tx: Transaction, now: datetime) -> Call[Any] | None:
        due, stale = self._pending_answers(tx, now)
        if (due or stale) and is_held(tx):
            return None
        if due:
            phase = self._context.configuration.phases[due[0].phase or ""]
            return PostAnswer(
                context=self._context, session=self.session, pk=due[0].pk, row=due[0], phase=phase
            )
        return self._reading(tx, stale, now, answer=True) if stale else None

    def _pending_answers(
        self, tx: Transaction, now: datetime
    ) -> tuple[list[SubmissionRow], list[SubmissionRow]]:
        """Return the submissions whose answers may leave now, and those that must be read before theirs may."""
        due, stale = [], []
        for row in sorted(tx.submissions(DECIDED), key=lambda row: row.due_at):
            ahead = timedelta() if row.tries else LOOK_AHEAD  # after a failure, it is read at the moment
            if self._waits(row, now + ahead) or row.disputed:
                continue
            # EvalAI was read after the answer was decided; a decision in the future means that the clock was set back
            later = row.read_at is not None and (row.decided_at <= row.read_at or row.decided_at > now)
            settled = later and self._fresh(row, FRESH_TO_ANSWER, now)
            if not settled or row.phase not in self._context.configuration.phases:
                # if its phase was removed from the configuration, the next reading puts it on hold
                stale.append(row)
            elif not self._waits(row, now):
                due.append(row)
        return due, stale

    def _running(self, tx: Transaction, chosen: SubmissionRow | None, now: datetime) -> Call[Any] | None:
        if chosen is None:
            return None
        if not self._fresh(chosen, FRESH_TO_RUN, now):
            return self._reading(tx, [chosen], now, ahead=1)
        return SetRunning(context=self._context, session=self.session, pk=chosen.pk)

    def _fresh(self, row: SubmissionRow, limit: timedelta, now: datetime) -> bool:
        """Return whether EvalAI's facts about it are recent; a moment in the future means that the clock was set back."""
        received_at = self.session.received_at(row)
        return received_at is not None and now - limit <= received_at <= now

    def _news(self, tx: Transaction, now: datetime) -> Call[Any] | None:
        """Read new submissions and those that must be read again; while others are in progress, new ones are collected for one listing."""
        unread = [row for row in tx.submissions(UNREAD, unread=True) if not row.waits(now)]
        if not unread:
            return None
        new = all(now - BATCH_WINDOW < row.first_seen_at <= now for row in unread)
        if new and tx.submissions([State.ACKNOWLEDGED, State.FETCHED, State.SCORING]):
            return None
        return self._reading(tx, unread, now)

    def _reading(
        self,
        tx: Transaction,
        submissions: list[SubmissionRow],
        now: datetime,
        *,
        answer: bool = False,
        ahead: int = 0,
    ) -> Call[Any] | None:
        """Read facts again: a single submission by its own address, several (or a new one, which others may join) by one listing.

        After a listing that failed, and until the next is due, one after another is read by its own address.
        """
        missed = [row for row in submissions if row.pk in self.session.missed]
        to_read = {row.pk: row for row in submissions}
        # One listing serves all that must be read soon.
        if all(row.submitted_at is not None for row in submissions):
            soon = tx.submissions([State.ACKNOWLEDGED, State.FETCHED, *DECIDED])
            to_read |= {row.pk: row for row in soon if row.submitted_at is not None}
        alone = len(to_read) < MANY and submissions[0].state is not State.RECEIVED
        if missed or alone or not self.calls.due("listing", now):
            pk = (missed or submissions)[0].pk
            return ReadSubmission(
                context=self._context, session=self.session, pk=pk, answer=answer, ahead=ahead
            )
        times = [row.submitted_at for row in to_read.values() if row.submitted_at is not None]
        return ListSubmissions(
            context=self._context,
            session=self.session,
            expected=[row.pk for row in submissions],
            since=min(times, default=tx.last_submitted_at()),
            answer=answer,
            ahead=ahead,
        )

    def _regular(self, job: Job, kind: type[Call[Any]], now: datetime, **fields: Any) -> Call[Any] | None:
        return self._unless_failed(kind, now, **fields) if self._timetable.due(job) else None

    def _unless_failed(self, kind: type[Call[Any]], now: datetime, **fields: Any) -> Call[Any] | None:
        """Return a call, unless one of its kind has failed a moment ago."""
        due = self.calls.due(kind.name, now)
        return kind(context=self._context, session=self.session, **fields) if due else None

    def _recent(self, tx: Transaction, now: datetime) -> Call[Any] | None:
        """List the latest submissions: an upload may have no message, or none yet."""
        return self._regular(RECENT, ListSubmissions, now, since=tx.last_submitted_at())

    def _poll(self, tx: Transaction, now: datetime) -> Call[Any] | None:
        return self._unless_failed(ReceiveMessage, now) if self._poll_is_due(tx, now) else None

    def _unlisted(self, tx: Transaction, now: datetime) -> Call[Any] | None:
        """Read a submission that the whole listing lacks: anybody can move and delete hundreds, and no other submission waits for that."""
        queues = int(QUEUE_SHARE * self._budget.per_minute)
        if not self.session.unlisted or not self._budget.allows(now, keep=queues):
            return None
        # If the call cannot begin or fails, the next comparison finds it again.
        pk = self.session.unlisted.pop(0)
        return ReadSubmission(context=self._context, session=self.session, pk=pk)

    def _poll_is_due(self, tx: Transaction, now: datetime) -> bool:
        """Return whether to poll the queue, if calls are left: at intervals, and after a message until the queue is empty."""
        due, polled_at = self._timetable.due(POLL), self._timetable.done_at(POLL)
        if polled_at is None or (due and not polled_at <= now < polled_at + UNREAD_FOR):
            return True
        unsure = self.session.empty_polls < DRAINED_POLLS and now - polled_at >= EMPTY_POLL_AGAIN
        return (due or unsure or self.session.empty_polls == 0) and self._may_call_queue(tx, now)

    def _may_call_queue(self, tx: Transaction, now: datetime) -> bool:
        """Return whether a call may go to the queue; submissions that will be scored and answered in the next minute come first."""
        paused = tx.is_paused("pause")
        states = ACTIVE - {State.FETCHED, State.SCORING} if paused else ACTIVE
        waiting = sum(row.hold is None for row in tx.submissions(states))
        most = (1 - QUEUE_SHARE) * self._budget.per_minute
        return self._budget.allows(now, keep=int(min(most, CALLS_AHEAD * waiting)))

    def _waits(self, row: SubmissionRow, now: datetime) -> bool:
        """Return whether it is too early for an answer."""
        return answers.waits(row, now, grid=seconds(self._context.configuration.submission.answer_grid))
