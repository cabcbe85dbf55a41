"""The evaluation stage: score what EvalAI shows as running."""

from __future__ import annotations

from datetime import datetime

from scoring.errors import NeucoError
from worker.challenge.context import Context
from worker.challenge.setups import PhaseSetup, alert_key
from worker.evaluation.act import ScoreSubmission
from worker.evaluation.outcomes import requeue
from worker.fairness.published import is_held
from worker.fairness.register import RegisterReplay
from worker.runtime.child_acts import ChildRunner
from worker.runtime.storage import FileStore
from worker.state import Attempt, Outcome, State, SubmissionRow


class Evaluation:
    """Has submissions scored, as many at once as the intake sets to running.

    Attributes:
        runner: Runs the children that score.

    Args:
        context: The worker's surroundings.
        files: Stored submission files.
        replay: Everything that is registered.
    """

    def __init__(self, context: Context, files: FileStore, replay: RegisterReplay) -> None:
        self._context = context
        self._files = files
        self._replay = replay
        self.runner = ChildRunner(context.store, wake=context.wake, checkpoint=context.checkpoint)

    @property
    def busy(self) -> bool:
        """Whether a child is running."""
        return bool(self.runner.acts)

    def step(self, now: datetime) -> bool:
        """Follow the children, and start one for each submission that waits for it."""
        moved = self.runner.look(now)
        for row in self._waiting(now):
            moved |= self._begin(row, now)
        return moved

    def _waiting(self, now: datetime) -> list[SubmissionRow]:
        """Return the submissions to start: the intake chose them, and EvalAI shows them as running. None are started during a pause."""
        with self._context.store.read() as tx:
            rows = tx.submissions([State.SCORING])
            if not rows or tx.is_paused("pause") or is_held(tx):
                return []
            begun = tx.open_attempts(Attempt.EVALUATE)
        return [row for row in rows if row.pk not in begun and row.can_go_on(now)]

    def _begin(self, row: SubmissionRow, now: datetime) -> bool:
        """Start a submission's child, or have its file fetched again if it is gone."""
        setup = self._on_record(row, now)
        if setup is None or row.file_hash is None:
            return False
        file = self._files.find(row.file_hash)
        if file is None:
            with self._context.store.write() as tx:
                tx.move(row.pk, State.SCORING, State.FETCHED)
                tx.move(row.pk, State.FETCHED, State.ACKNOWLEDGED, file_hash=None)
            return True
        act = ScoreSubmission(
            context=self._context, files=self._files, pk=row.pk, setup=setup, file=file, replay=self._replay
        )
        return self.runner.start(act, now)

    def _on_record(self, row: SubmissionRow, now: datetime) -> PhaseSetup | None:
        """Return the recorded phase of a submission; if that is impossible, return the submission to the queue."""
        phase = row.phase or ""
        # The phase was removed from the configuration; the next reading puts the submission on hold.
        if phase not in self._context.configuration.phases:
            with self._context.store.write() as tx:
                tx.move(row.pk, State.SCORING, State.FETCHED, read_at=None)
            return None
        try:
            setup = self._context.phase(phase)
        except NeucoError as error:
            # it waits for the right secret or an intact record; other phases continue
            retry_at = self._context.retry_at(now, row.tries)
            with self._context.store.write() as tx:
                requeue(tx, row, error, Outcome.FAILED, retry_at=retry_at)
                tx.report(alert_key(phase), error, now=now)
            return None
        self._context.clear_alert(alert_key(phase))
        return setup
