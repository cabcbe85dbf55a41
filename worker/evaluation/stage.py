"""The evaluation stage: what is scored next."""

from __future__ import annotations

from datetime import datetime

from worker import answers
from worker.challenge.setups import PhaseSetup
from worker.context import Context, seconds
from worker.evaluation.act import ScoreSubmission
from worker.fair_queue import next_in_turn
from worker.runtime.child_runner import ChildRunner
from worker.runtime.files import FileStore
from worker.state import Tracked
from worker.states import State


class Evaluation:
    """Has one submission after the other scored.

    Args:
        context: The worker's surroundings.
        files: Stored submission files.
    """

    def __init__(self, context: Context, files: FileStore) -> None:
        self._context = context
        self._files = files
        self._runner = ChildRunner(context.store, wake=context.wake, checkpoint=context.checkpoint)

    @property
    def busy(self) -> bool:
        """Whether a child is at work."""
        return bool(self._runner.acts)

    @property
    def stages(self) -> dict[int, str]:
        """How far each child is: submission to starting, reading or scoring."""
        return {act.pk: act.stage for act in self._runner.acts if isinstance(act, ScoreSubmission)}

    def head(self, now: datetime) -> int | None:
        """Choose what is scored next: round-robin between teams, oldest first within a team.

        Ten files of one team do not hold up another team's first. A team's next file waits until the answer to the one before has left:
        EvalAI shows when a file was begun, which would otherwise tell when the one before was done, answer grid or not.
        """
        grid = seconds(self._context.configuration.submission.answer_grid)
        with self._context.store.read() as tx:
            stored = tx.submissions([State.FETCHED, State.SCORING])
            if not stored:
                return None
            waiting = answers.unreleased(tx, now, grid=grid)
            ready = [
                known
                for known in stored
                if not known.waits(now)
                and not _held(known)
                and (known.state is State.SCORING or known.team_key not in waiting)
            ]
            begun = next((known for known in ready if known.state is State.SCORING), None)
            chosen = begun or next_in_turn(tx, ready)
        return None if chosen is None else chosen.pk

    def start(self, known: Tracked, setup: PhaseSetup, now: datetime) -> bool:
        """Start the child for a submission that EvalAI shows as running, or fetch its file again if that is gone."""
        if known.file_hash is None:
            return False
        file = self._files.find(known.file_hash)
        if file is None:
            with self._context.store.write() as tx:
                tx.move(known.pk, State.SCORING, State.FETCHED)
                tx.move(known.pk, State.FETCHED, State.ACKNOWLEDGED, file_hash=None)
            return True
        act = ScoreSubmission(self._context, self._files, known, setup, file)
        return self._runner.start(act, now, cgroup=self._context.cgroup)

    def look(self, now: datetime) -> bool:
        """Look after the child."""
        return self._runner.look(now)

    def stop(self, now: datetime) -> None:
        """End the child because the worker ends; the submission is scored again after the next start."""
        self._runner.stop(now)


def _held(known: Tracked) -> bool:
    """Tell whether only a person can help; other faults are retried and go on by themselves once fixed."""
    return known.hold is not None and known.hold.startswith("facts.")
