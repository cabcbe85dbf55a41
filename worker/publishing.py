"""Publishing: from the score matrix to a pushed board, without ever making scoring wait.

Two errands in a lane of their own: the board is computed from values read out of the database, then stored there (the history is ours, not
the repository's); then it is rendered and pushed. What is pushed is always made from the stored boards, so a push that was lost or
interrupted is simply made again.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from leaderboard.publisher import Published, Publisher
from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker.board_history import BoardHistory
from worker.context import Context, seconds
from worker.fairness import commitments, receipts
from worker.lanes import Lane
from worker.office import Office
from worker.rounds import (
    Draft,
    compute,
    keep_boards,
    publisher_settings,
    push,
    read_material,
    record_push,
)
from worker.sharing import PUBLISHER
from worker.state import LOG_UNSEEN, Transaction
from worker.states import State

_Wishes = tuple[int, str | None]
"""What asked for rounds so far: this process's count, and the mark that commands leave in the database."""


class Publishing:
    """Keeps the repository in step with the score matrix.

    Args:
        context: The worker's surroundings.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._publisher = Publisher(publisher_settings(context.configuration))
        self._history = BoardHistory()
        self._lane: Lane[Any] = Lane("git", context.wake)
        self._begun_at: datetime | None = None
        self._not_before: datetime | None = None
        self._draft: Draft | None = None
        self._led = not context.sharing.shared
        self._closes_at: datetime | None = None  # the open receipts' moment; it can only come later than this
        self._wishes = 0  # for another round, of this process
        self._serving: _Wishes | None = None  # as they were when the round under way read the database
        self._served: _Wishes | None = None
        self.tries = 0
        self.last_error: NeucoError | None = None

    @property
    def busy(self) -> bool:
        """Whether a round is under way."""
        return self._lane.busy or self._draft is not None

    def _close_batch(self, now: datetime) -> None:
        """Publish the open receipts when their fixed moment has come, whether or not there are any.

        A batch carries the time at which it is made, also when it is late: nothing that is published is dated back.
        """
        if self._closes_at is not None and now < self._closes_at:
            return
        every_s = self._context.configuration.leaderboard.receipts_every
        with self._context.store.read() as tx:
            entries, lines, unseen = tx.commitments(), tx.batches(), tx.fact(LOG_UNSEEN)
        if not entries or unseen:  # a batch beside those that the public log has would be a fork of it
            return
        begun_at = datetime.fromisoformat(entries[0][0]["made_at"])
        due = receipts.due_at(begun_at, receipts.made_at(lines[-1]) if lines else None, every_s)
        if due > now:
            self._closes_at = due
            return
        with self._context.store.write() as tx:
            if len(tx.batches()) == len(lines):  # else a reveal has published them in this moment
                receipts.close_batch(tx, made_at=tx.promise_time(now))
        self.renew()

    def due(self) -> bool:
        """Tell whether the repository may be behind."""
        with self._context.store.read() as tx:
            behind = self._led and self._served != self._wanted(tx)
            return behind or bool(tx.submissions([State.POSTED]))

    def collect(self, now: datetime) -> bool:
        """Take in a finished computation or push."""
        return self._lane.collect(now)

    def step(self, now: datetime) -> bool:
        """Begin the next part of a round, if one is due."""
        if self._lane.busy or not self._leads(now):
            return False
        if self._draft is not None:
            draft = self._draft
            self._lane.start(
                lambda: self._push(draft),
                done=lambda published, at: self._pushed(draft, published, at),
                failed=self._failed,
            )
            return True
        every = seconds(self._context.configuration.leaderboard.publish_every)
        if self._begun_at is not None and now - every < self._begun_at <= now:
            return False
        if self._not_before is not None and now < self._not_before <= now + timedelta(seconds=120):
            return False
        self._close_batch(now)
        if not self.due():
            return False
        with self._context.store.read() as tx:
            # First: what is wished for while the rest is read asks for another round.
            self._serving = self._wanted(tx)
            material = read_material(tx, self._context.configuration, self._context.phases, self._history)
        self._begun_at = now
        self._lane.start(lambda: compute(material, now), done=self._computed, failed=self._failed)
        return True

    def _leads(self, now: datetime) -> bool:
        """Tell whether pushing is ours; whoever becomes the publisher begins with a round of its own."""
        leads = self._context.sharing.leads(PUBLISHER, now)
        if leads != self._led:
            self._draft, self._led = None, leads
            self.renew()
        return leads

    def reload(self) -> None:
        """Take up a changed configuration with the next round."""
        self._publisher = Publisher(publisher_settings(self._context.configuration))
        self._closes_at = None
        self.renew()

    def renew(self) -> None:
        """Make a round even if no submission asks for one, and another one if one is under way: what boards are made of has changed."""
        self._wishes += 1

    def lift_interval(self) -> None:
        """Let the next round begin although `publish_every` has not passed since the last one: nothing else is left to wait for."""
        self._begun_at = None

    def _wanted(self, tx: Transaction) -> _Wishes:
        return self._wishes, tx.round_asked()

    def stop(self) -> None:
        """Kill the git process that may be running, because the worker ends."""
        self._publisher.stop()

    def _computed(self, draft: Draft, now: datetime) -> None:
        with self._context.store.write() as tx:
            kept = keep_boards(tx, draft)
        if kept:
            self._draft = draft
        else:
            self._begun_at = None  # somebody has decided or published something meanwhile: at once once more

    def _push(self, draft: Draft) -> Published:
        self._context.checkpoint("before call push")
        published = push(self._publisher, draft)
        self._context.checkpoint("after call push")
        return published

    def _pushed(self, draft: Draft, published: Published, now: datetime) -> None:
        self._draft = None
        self.tries, self._not_before, self.last_error = 0, None, None
        self._served = self._serving
        with self._context.store.write() as tx:
            record_push(tx, draft, published, now=now)
        if published.changed:
            self._context.log.info("Board pushed.", event_key="board.pushed", commit=published.commit)

    def _failed(self, error: NeucoError, now: datetime) -> None:
        self._draft = None
        if isinstance(error, receipts.LogIsAhead):  # at once once more, from what the state knows by then
            with self._context.store.write() as tx:
                taken = receipts.take_over(tx, error)
            if taken:
                self._context.log.warning(error.message, event_key=error.code, lines=len(error.lines))
            self._begun_at, self._closes_at = None, None
            return
        self.last_error = error
        self._not_before = self._context.retry_at(now, self.tries)
        self._begun_at = None
        self.tries += 1
        self._context.log.warning(error.sentence, event_key=error.code, tries=self.tries)
        if isinstance(error, OrganizerError) or self.tries >= 3:
            self._context.trouble("leaderboard.push", error, now=now)


def publish_now(office: Office) -> Published:
    """Compute and push the boards at once, whether or not a daemon runs.

    Raises:
        NeucoError: As :meth:`leaderboard.publisher.Publisher.publish`.
    """
    publisher = Publisher(publisher_settings(office.configuration))
    while True:
        draft = _make_draft(office, office.configuration.phases)
        with office.store.write() as tx:
            _keep_draft(tx, draft)
            tx.ask_for_round()  # should this process die, or fail to push, a daemon does it
        try:
            published = push(publisher, draft)
            break
        except receipts.LogIsAhead as error:
            with office.store.write() as tx:
                receipts.take_over(tx, error)
        except InfrastructureError as error:
            with office.store.read() as tx:
                committed = commitments.commitment_file(tx)
            if error.code != commitments.UNKNOWN or committed == draft.basis.promises.get(commitments.PATH):
                raise  # else a daemon has committed and pushed since we read
    with office.store.write() as tx:
        record_push(tx, draft, published, now=office.now)
    return published


def freeze(office: Office, phase: str) -> None:
    """Close a phase on the board that is due now: what was answered until this moment stands on it, nothing that comes later.

    Raises:
        OrganizerError: If there is no such phase.
        InfrastructureError: If the daemon made a board at the same moment.
    """
    office.check_phase(phase)
    draft = _make_draft(office, [phase])
    setup = office.phase(phase) if draft.basis.records[phase] is None else None
    with office.store.write() as tx:
        _keep_draft(tx, draft)
        if tx.phase_record(phase) != draft.basis.records[phase]:  # a rescore would be closed out
            raise _busy()
        if setup is not None:
            tx.record_phase(phase, protocol_hash=setup.protocol.hash, tasks=setup.tasks)
        tx.freeze_phase(phase, at=office.now)
        tx.ask_for_round()
        tx.log("frozen", actor=office.actor, now=office.now, phase=phase)


def thaw(office: Office, phase: str) -> None:
    """Let a phase's board move again.

    Raises:
        OrganizerError: If there is no such phase.
    """
    office.check_phase(phase)
    with office.store.write() as tx:
        tx.freeze_phase(phase, at=None)
        tx.ask_for_round()
        tx.log("thawed", actor=office.actor, now=office.now, phase=phase)


def _make_draft(office: Office, phases: Collection[str]) -> Draft:
    with office.store.read() as tx:
        material = read_material(tx, office.configuration, phases, BoardHistory())
    return compute(material, office.clock())


def _keep_draft(tx: Transaction, draft: Draft) -> None:
    if not keep_boards(tx, draft):
        raise _busy()


def _busy() -> InfrastructureError:
    return InfrastructureError(
        "The daemon or another command changed the board at the same moment.",
        cure="Try again.",
        code="board.busy",
    )
