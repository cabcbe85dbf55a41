"""Which submission is scored next, and the call that makes EvalAI show it as running.

EvalAI shows when scoring began. So that no team can see another team's timing, no more submissions run at once than the configuration
allows, and a team's next file waits until the answer to the one before has left. Ten files of one team do not delay another team's first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from worker.answers import answers
from worker.answers.turns import begun, next_in_turn
from worker.challenge.context import Context, seconds
from worker.challenge.setups import intact_record
from worker.evalai import Client, Submission
from worker.fairness.published import is_held
from worker.intake.calls import Call
from worker.runtime.acts import NotDue
from worker.state import State, SubmissionRow, Transaction


def next_to_run(context: Context, tx: Transaction, now: datetime) -> SubmissionRow | None:
    """Choose what is scored next, if there is room, as :func:`worker.answers.turns.next_in_turn` does."""
    configuration = context.configuration
    fetched = tx.submissions([State.FETCHED])
    waiting = [row for row in fetched if row.can_go_on(now) and row.phase in configuration.phases]
    if not waiting or tx.is_paused("pause") or is_held(tx):
        return None
    waiting = begun(tx, configuration, waiting, now)
    attempts = tx.open_attempts()
    running = [
        row
        for row in tx.submissions([State.SCORING])
        if row.pk in attempts or row.can_go_on(now)  # otherwise it waits for a person or its next try
    ]
    if len(running) >= configuration.scoring.at_once:
        return None
    busy = answers.unreleased(tx, now, grid=seconds(configuration.submission.answer_grid))
    busy |= {row.team_key for row in running if row.team_key is not None}
    climbing = _climbing(tx)
    free = [row for row in waiting if row.team_key not in busy and (row.team_key, row.phase) not in climbing]
    return next_in_turn(tx, free)


def _climbing(tx: Transaction) -> frozenset[tuple[int | None, str | None]]:
    """Return the teams and phases with a ladder on which the next answer depends on one that EvalAI does not have yet."""
    unanswered = [row for row in tx.submissions([State.SCORED]) if row.posted is None and not row.disputed]
    return frozenset(
        (row.team_key, row.phase)
        for row in unanswered
        if row.team_key is not None
        and (record := intact_record(tx, row.phase or "")) is not None
        and record.rules.ladder_step is not None
    )


@dataclass(kw_only=True, eq=False, repr=False)
class SetRunning(Call[Submission]):
    """Make EvalAI show a submission as running; its child starts with the next step.

    Attributes:
        pk: The submission, whose facts are fresh.
    """

    name = "running"
    pk: int

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Check that it is still the next one."""
        chosen = next_to_run(self.context, tx, now)
        if chosen is None or chosen.pk != self.pk:
            raise NotDue

    def perform(self, resource: Client) -> Submission:
        """Set its status; EvalAI measures the execution time from now on."""
        self.context.store.check_lead()  # another leader may have answered it
        return resource.set_running(self.pk)

    def outcome(self, tx: Transaction, result: Submission, now: datetime) -> None:
        """Move the submission to scoring."""
        tx.note(self.pk, evalai_shows=tx.known(self.pk).showing(status=result.status))
        tx.resolve_alert(f"{self.name}:{self.pk}")
        tx.move(self.pk, State.FETCHED, State.SCORING, running_at=now)
