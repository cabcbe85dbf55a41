"""The evaluation stage: score what EvalAI shows as running."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from scoring.errors import NeucoError
from worker.challenge.context import Context
from worker.challenge.setups import PhaseSetup, alert_key
from worker.evaluation.act import ScoreSubmission
from worker.evaluation.outcomes import requeue
from worker.fairness.published import is_held
from worker.fairness.register import RegisterReplay
from worker.runtime.acts import Start
from worker.runtime.child_acts import ChildRunner
from worker.runtime.storage import FileStore
from worker.state import Outcome, State, SubmissionRow, Transaction


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

    def starts(self, tx: Transaction, now: datetime) -> Iterator[Start]:
        """Yield the start of each submission that the intake has chosen, and EvalAI shows as running; of none during a pause."""
        rows = tx.submissions([State.SCORING])
        if not rows or tx.is_paused("pause") or is_held(tx):
            return
        begun = tx.open_attempts()
        for row in rows:
            if row.pk not in begun and row.can_go_on(now):
                yield partial(self._begin, row, now)

    def _begin(self, row: SubmissionRow, now: datetime) -> bool:
        """Start a submission's child, or have its file fetched again if it is gone."""
        setup = self._on_record(row, now)
        if setup is None:
            return True
        file = self._files.find(row.file_hash)
        if file is None:
            with self._context.store.write() as tx:
                tx.move(row.pk, State.SCORING, State.FETCHED)
                tx.move(row.pk, State.FETCHED, State.ACKNOWLEDGED, file_hash=None)
            return True
        act = ScoreSubmission(
            context=self._context, files=self._files, pk=row.pk, setup=setup, file=file, replay=self._replay
        )
        self.runner.start(act, now)
        return False

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
        self._context.resolve_alerts(alert_key(phase))
        return setup
