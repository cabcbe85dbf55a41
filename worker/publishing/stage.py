"""The publishing stage: decide whether boards are made or pushed next.

A publish cycle has two acts. The first makes the boards from the database and stores them there, so the history is the database's and not
the repository's. The second pushes the stored boards, so a push that was lost or interrupted is simply made again. Neither act ever
delays scoring.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from leaderboard.git import Publisher
from scoring.errors import NeucoError
from worker.challenge.context import Context
from worker.evalai import Retry
from worker.fairness import commitments, receipts
from worker.fairness.register import RegisterFold, register
from worker.publishing.board_history import BoardHistory
from worker.publishing.boards import MakeBoards, PendingBoards, PublishAct
from worker.publishing.pushing import PushBoard, publisher_settings
from worker.runtime import Job, Runner
from worker.state import LOG_UNSEEN, State, Transaction


class Publishing:
    """Keeps the repository in step with the score cells.

    Args:
        context: The worker's surroundings.
        fold: Everything that is registered.
    """

    def __init__(self, context: Context, fold: RegisterFold) -> None:
        self._context = context
        self._settings = publisher_settings(context.configuration)
        self._publisher = Publisher(self._settings)
        self._history = BoardHistory()
        self._fold = fold
        self._runner: Runner[Publisher] = Runner(
            "git", context.store, wake=context.wake, checkpoint=context.checkpoint
        )
        self._pending: PendingBoards | None = None  # stored, but not pushed yet
        self._retry = Retry()
        # when the open receipts are due; a new value can only be later
        self._closes_at: datetime | None = None
        self.last_error: NeucoError | None = None

    @property
    def busy(self) -> bool:
        """Whether a cycle is under way."""
        return self._runner.busy or self._pending is not None

    @property
    def tries(self) -> int:
        """How many cycles in a row have failed."""
        return self._retry.tries

    def due(self) -> bool:
        """Return whether the repository may be behind."""
        with self._context.store.read() as tx:
            return self._is_behind(tx)

    def collect(self, now: datetime) -> bool:
        """Process the boards that were made, or the result of a push."""
        ended = self._runner.collect(now)
        if ended is None:
            return False
        if ended.given_up:  # its thread may still use the old publisher, which accepts no more work
            self._publisher = Publisher(self._settings)
        if ended.error is not None:
            self._failed(ended.error, now)
        elif isinstance(ended.act, MakeBoards):
            if ended.act.kept:
                self._pending = ended.result
            else:
                self.lift_interval()  # something was decided or published meanwhile: begin the next cycle at once
        else:
            self._pending, self.last_error = None, None
            self._retry.clear()
        return True

    def step(self, now: datetime) -> bool:
        """Begin the next act, if one is due."""
        if self._runner.busy:
            return False
        self._close_batch(now)
        act = self.next_act(now)
        if act is None:
            return False
        if isinstance(act, MakeBoards):
            self._context.timetable.done(Job.PUBLISH, now)
        self._runner.start(act, self._publisher, now)
        return True

    def next_act(self, now: datetime) -> PublishAct[Any] | None:
        """Return the next act, None if nothing is due."""
        context = self._context
        if self._pending is not None:
            return PushBoard(context, self._pending, tries=self.tries)
        with context.store.read() as tx:
            if not self._may_begin(tx, now) or not self._is_behind(tx):
                return None
            generation = tx.requested_publish()
        return MakeBoards(context, generation, self._history, self._fold, tries=self.tries)

    def reload(self) -> None:
        """Apply a changed configuration in the next cycle."""
        self._settings = publisher_settings(self._context.configuration)
        self._publisher = Publisher(self._settings)
        self._closes_at = None

    def lift_interval(self) -> None:
        """Let the next cycle begin before `publish_every` has passed since the last one, because nothing else is left to wait for."""
        self._context.timetable.ask(Job.PUBLISH)

    def stop(self) -> None:
        """Kill a running git process because the worker ends; after a reload, it may belong to an earlier publisher."""
        self._runner.stop()

    def _is_behind(self, tx: Transaction) -> bool:
        behind = tx.requested_publish() > tx.completed_publish().generation
        return behind or bool(tx.submissions([State.POSTED]))

    def _may_begin(self, tx: Transaction, now: datetime) -> bool:
        """Return whether a cycle may begin now: its interval has passed, or a command waits for it."""
        if self._pending is not None or not self._retry.due(now):
            return False
        return self._context.timetable.due(Job.PUBLISH, now) or tx.publish_awaited()

    def _close_batch(self, now: datetime) -> None:
        """Publish the open receipts at their fixed times, even if there are none.

        A batch carries the time at which it is made, even if it is late, because nothing that is published may be backdated.
        """
        if self._closes_at is not None and now < self._closes_at:
            return
        with self._context.store.read() as tx:
            if not self._may_begin(tx, now):
                return
            entries, unseen = commitments.public(tx), tx.fact(LOG_UNSEEN)
            number, last = tx.last_batch()
        if not entries or unseen:  # a batch that does not follow the public log would fork it
            return
        due = receipts.due_at(entries, last)
        if due > now:
            self._closes_at = due
            return
        with self._context.store.write() as tx:
            if tx.last_batch()[0] == number:  # otherwise a reveal has just published them
                receipts.close_batch(tx, made_at=register(tx, now))
            tx.request_publish()

    def _failed(self, error: NeucoError, now: datetime) -> None:
        """Schedule the next cycle: later, or at once if the public log had lines that the state lacked."""
        self._pending = None
        self.lift_interval()
        if isinstance(error, receipts.LogIsAhead):
            self._closes_at = None
            return
        self.last_error = error
        self._retry.failed(now, again_at=self._context.retry_at(now, self.tries))
        self._context.log.warning(error.sentence, event_key=error.code, tries=self.tries)
