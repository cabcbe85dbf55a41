"""The publishing stage: decide whether boards are made or pushed next.

A publish cycle has two acts. The first makes the boards from the database and stores them there, so the history is the database's and not
the repository's. The second pushes the stored boards, so a push that was lost or interrupted is simply made again. At the start of a
worker, and before a line of the log is signed, an act of its own looks whether the repository has anything signed that the state lacks;
every push looks again. Nothing is scored or answered before the first look. Parts of published files that their branch lacks are pushed
between two cycles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar

from leaderboard.git import OWN_FOLDERS, Published, Publisher
from leaderboard.rendering import HISTORY, recorded_boards
from scoring.errors import InfrastructureError, NeucoError
from worker.challenge.context import Context, seconds
from worker.challenge.setups import alert_key, read_record
from worker.evalai import Retry
from worker.fairness import receipts
from worker.fairness.published import BEHIND, UNCOMPARED, StateIsBehind, check_state, has_begun
from worker.fairness.register import RegisterReplay
from worker.publishing import files_branch
from worker.publishing.boards import (
    LOST_BOARDS,
    BoardHistory,
    Cycle,
    attestation_files,
    begin_cycle,
    check_boards,
    close_due_batch,
    keep_boards,
    lost_boards,
    make_boards,
)
from worker.publishing.files_branch import PushPart
from worker.publishing.pushing import (
    REPLACES_FOREIGN,
    PushAct,
    last_commit,
    message,
    place,
    publisher_settings,
    record_push,
    site_files,
)
from worker.publishing.reveals import open_news, with_news
from worker.runtime.acts import Act, Result, Runner, Start
from worker.state import LOG_UNSEEN, State, Transaction


@dataclass(kw_only=True, eq=False, repr=False)
class PublishAct(PushAct[Result]):
    """An act of a publish cycle.

    Attributes:
        generation: The cycle publishes everything that was requested up to this number.
    """

    generation: int = field(init=False)

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Tell callers that wait for the cycle and, if failures go on, the organizer; the cycle is made again."""
        tx.fail_publish(self.generation, error)
        tx.set_fact(UNCOMPARED, None)  # an unreachable repository delays no answers
        if isinstance(error, StateIsBehind):
            tx.set_fact(BEHIND, now.isoformat())
        if isinstance(error, StateIsBehind) or self.needs_organizer(error):
            tx.report("leaderboard.push", error, now=now)


@dataclass(kw_only=True, eq=False, repr=False)
class CompareState(PublishAct[bytes]):
    """Compare the public log with the state; if the state lacks nothing, close the batch that is due, so the log is never forked.

    A restored state takes over what it lacks of the log.

    Attributes:
        history: Boards so far.
    """

    name = "compare"
    what: ClassVar[str] = "The comparison of the public log with the state"
    history: BoardHistory

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Read what the state has."""
        self.generation = tx.requested_publish()
        self._last = last_commit(tx, self.configuration)
        self._ours = attestation_files(tx)
        self._boards = {name: self.history.read(tx, name) for name in self.configuration.phases}
        self._lost = lost_boards(tx)
        self._restored, self._added = tx.fact(LOG_UNSEEN) is not None, 0

    def perform(self, resource: Publisher) -> bytes:
        """Look which boards the challenge has published, and whether the state lacks anything; return its log as it must go on."""
        signer, log = self.context.signer, self._ours.get(receipts.PATH, b"")
        existing, own = resource.look(sign=signer.sign_commit, last=self._last)
        self._made = sorted(recorded_boards(own.get(HISTORY, b"")))
        for files in (existing, own) if self._restored else ():
            log = receipts.continued(files.get(receipts.PATH, b""), log, key=signer.public)
        ours = {**self._ours, receipts.PATH: log}
        check_state((existing, own), ours, key=signer.public, restored=self._restored)
        if not self._restored:
            check_boards(own.get(HISTORY), self._boards, self._lost)
        return log

    def outcome(self, tx: Transaction, result: bytes, now: datetime) -> None:
        """Close the batch; a restored state takes over what can be taken over before."""
        for name in (BEHIND, UNCOMPARED):
            tx.set_fact(name, None)
        if self._restored:
            tx.set_fact(LOST_BOARDS, json.dumps(self._made))
            self._added = receipts.take_over(tx, result, now=self._restored_at(now))
        close_due_batch(tx, self.context.signer, now=now)

    def recorded(self, result: bytes, now: datetime) -> None:
        """Say what a restored state lacked."""
        if self._added:
            sentence = (
                "The public log of receipts had lines that this state lacked. They were copied into it."
            )
            self.context.log.warning(sentence, event_key="leaderboard.log_ahead", lines=self._added)

    def _restored_at(self, now: datetime) -> datetime:
        """Return the time of a restore: after the second of every lost board, even if the clock of their machine was ahead."""
        made = (datetime.fromisoformat(at) + timedelta(seconds=1) for _, _, at in self._made)
        return max([now, *made])


@dataclass(kw_only=True, eq=False, repr=False)
class MakeBoards(PublishAct[Cycle]):
    """Register what decides the boards, make the new ones, and store them.

    Attributes:
        history: Boards so far.
        replay: Everything that is registered.
        kept: The cycle with the boards, once they are stored.
    """

    name = "boards"
    what: ClassVar[str] = "The making of boards"
    time_out_s = 900.0  # no network is involved, but a large challenge has much to compute
    history: BoardHistory
    replay: RegisterReplay
    kept: Cycle | None = field(init=False, default=None)

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Register and read what decides the boards."""
        phases = self.configuration.phases
        self.generation = tx.requested_publish()
        for name in phases:  # a damaged record must not stay unnoticed until somebody submits
            try:
                read_record(tx, name, anew=True)
            except InfrastructureError as error:
                tx.report(alert_key(name), error, now=now)
        self.cycle = begin_cycle(
            tx, self.context.signer, self.configuration, phases, self.history, replay=self.replay, now=now
        )

    def perform(self, resource: Publisher) -> Cycle:
        """Compute the boards."""
        return make_boards(self.cycle)

    def outcome(self, tx: Transaction, result: Cycle, now: datetime) -> None:
        """Store the boards, unless a decision was recorded meanwhile, and open what is new in revealed phases."""
        if not keep_boards(tx, result):
            return
        self.kept = result
        if with_news(tx):
            at = tx.attestation_time(now)
            open_news(tx, self.configuration, self.context.signer, now=at)
            site = replace(result.site, logged_at=receipts.logged_at(tx))
            self.kept = replace(result, site=site, attestations=attestation_files(tx))


@dataclass(kw_only=True, eq=False, repr=False)
class PushBoard(PublishAct[Published]):
    """Push the stored boards to the repository.

    Attributes:
        cycle: What the repository lacks.
    """

    name = "push"
    what: ClassVar[str] = "The push of the leaderboard"
    cycle: Cycle

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Look up the commit that was pushed last."""
        self.generation = self.cycle.generation
        self._last = last_commit(tx, self.configuration)
        self._replaces = tx.fact(REPLACES_FOREIGN) == place(self.configuration)

    def perform(self, resource: Publisher) -> Published:
        """Render the site on the tip of the branch and push it."""
        return resource.publish(
            partial(site_files, self.cycle, self.context.signer.public, self.context.store.check_lead),
            partial(message, self.cycle.site),
            sign=self.context.signer.sign_commit,
            last=self._last,
            folders=OWN_FOLDERS,
            replace_foreign=self._replaces,
        )

    def outcome(self, tx: Transaction, result: Published, now: datetime) -> None:
        """Record that the repository shows the boards."""
        record_push(tx, self.configuration, self.cycle, result, now=now)
        # While a part is missing, its push finds what happened to the branch.
        if not files_branch.missing(tx, self.configuration):
            files_branch.compare(tx, self.configuration, result.files, now=now)

    def recorded(self, result: Published, now: datetime) -> None:
        """Say what the repository shows now."""
        if result.changed:
            self.context.log.info("Board pushed.", event_key="board.pushed", commit=result.commit)


class Publishing:
    """Keeps the repository in step with the score cells.

    Args:
        context: The worker's surroundings.
        replay: Everything that is registered.
    """

    def __init__(self, context: Context, replay: RegisterReplay) -> None:
        self._context = context
        self._settings = publisher_settings(context.configuration)
        self._publisher = Publisher(self._settings)
        self._history = BoardHistory()
        self._replay = replay
        self._runner: Runner[Publisher] = Runner(
            "git", context.store, wake=context.wake, checkpoint=context.checkpoint
        )
        self._pending: Cycle | None = None  # its boards are stored, but not pushed yet
        self._retry = Retry()
        self._begun_at: datetime | None = None  # the last cycle, unless the next one may begin at once
        self._files_retry = Retry()
        self.last_error: NeucoError | None = None  # of the cycles since the last push

    @property
    def busy(self) -> bool:
        """Whether a cycle is under way."""
        return self._runner.busy or self._pending is not None

    def behind(self) -> bool:
        """Return whether the repository may be behind."""
        with self._context.store.read() as tx:
            return self._is_behind(tx) or bool(files_branch.missing(tx, self._context.configuration))

    def collect(self, now: datetime) -> None:
        """Process the boards that were made, or the result of a push."""
        ended = self._runner.collect(now)
        if ended is None:
            return
        if ended.given_up:  # its thread may still use the old publisher, which accepts no more work
            self._publisher = Publisher(self._settings)
        if isinstance(ended.act, PushPart):  # boards do not wait for one that cannot be pushed
            if ended.error is None:
                self._files_retry = Retry()
            else:
                self._again(self._files_retry, ended.error, now)
        elif ended.error is not None:
            self._failed(ended.error, now)
        elif isinstance(ended.act, CompareState):
            self._retry = Retry()
            self.lift_interval()  # whoever has a receipt waits for the line of the log
        elif isinstance(ended.act, MakeBoards):
            self._pending = ended.act.kept
            if self._pending is None:
                self.lift_interval()  # something was decided or published meanwhile: begin the next cycle at once
        else:
            self._pending, self.last_error = None, None
            self._retry = Retry()

    def starts(self, tx: Transaction, now: datetime) -> Iterator[Start]:
        """Yield the start of the next act."""
        if not self._runner.busy and (act := self.next_act(tx, now)) is not None:
            yield partial(self._begin, act, now)

    def _begin(self, act: Act[Publisher, Any], now: datetime) -> None:
        if isinstance(act, MakeBoards):
            self._begun_at = now
        self._runner.start(act, self._publisher, now)

    def next_act(self, tx: Transaction, now: datetime) -> Act[Publisher, Any] | None:
        """Return the next act, None if nothing is due."""
        if self._pending is not None:
            return PushBoard(context=self._context, cycle=self._pending, tries=self._retry.tries)
        if self._files_retry.due(now) and (parts := files_branch.missing(tx, self._context.configuration)):
            last, tries = len(parts) == 1, self._files_retry.tries
            return PushPart(context=self._context, part=parts[0], last=last, tries=tries)
        if not self._retry.due(now) or not has_begun(tx):
            return None
        if tx.fact(LOG_UNSEEN) or tx.fact(UNCOMPARED) or receipts.is_due(tx, now):
            return CompareState(context=self._context, history=self._history, tries=self._retry.tries)
        if not self._is_behind(tx) or (self._rests(now) and not tx.publish_awaited()):
            return None
        return MakeBoards(
            context=self._context, history=self._history, replay=self._replay, tries=self._retry.tries
        )

    def reload(self) -> None:
        """Apply a changed configuration in the next cycle."""
        self._settings = publisher_settings(self._context.configuration)
        self._publisher = Publisher(self._settings)

    def lift_interval(self) -> None:
        """Let the next cycle begin before `publish_every` has passed since the last one, because nothing else is left to wait for."""
        self._begun_at = None

    def stop(self) -> None:
        """Kill a running git process because the worker ends; after a reload, it may belong to an earlier publisher."""
        self._runner.stop()

    def _rests(self, now: datetime) -> bool:
        """Return whether `publish_every` has not passed since the last cycle; one in the future means that the clock was set back."""
        every = seconds(self._context.configuration.leaderboard.publish_every)
        return self._begun_at is not None and self._begun_at <= now < self._begun_at + every

    def _is_behind(self, tx: Transaction) -> bool:
        behind = tx.requested_publish() > tx.completed_publish().generation
        return behind or bool(tx.submissions([State.POSTED]))

    def _again(self, retry: Retry, error: NeucoError, now: datetime) -> None:
        """Schedule another try after an error."""
        retry.failed(now, again_at=self._context.retry_at(now, retry.tries))
        self._context.log.warning(error.sentence, event_key=error.code, tries=retry.tries)

    def _failed(self, error: NeucoError, now: datetime) -> None:
        """Schedule the next cycle."""
        self._pending = None
        self.lift_interval()
        self.last_error = error
        self._again(self._retry, error, now)
