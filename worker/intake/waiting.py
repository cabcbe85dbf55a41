"""What unanswered submissions wait for: the opening of their phase, the end of a pause, a public random value, a person, or another try.

EvalAI cancels what has waited for two weeks, in all challenges, so nothing may wait that long without a word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from scoring.printable import count_of, name_some
from worker.answers.turns import is_early
from worker.challenge.configuration import Configuration
from worker.evaluation.outcomes import HOPELESS
from worker.fairness import commitments
from worker.fairness.published import is_held
from worker.intake import changes
from worker.state import ACTIVE, HOPELESS_TRIES, PAUSE, UNSCORED, State, SubmissionRow, Transaction

TOO_LONG = timedelta(days=3)
WAITING = "submission.waiting"
PAUSED, PAUSED_LONG = "challenge.paused", timedelta(hours=1)
NAMED = 20  # submissions that an alert names
ITS_TURN = "its turn"


def reasons(
    tx: Transaction, configuration: Configuration, rows: Iterable[SubmissionRow], now: datetime
) -> dict[int, str]:
    """Return what unanswered submissions wait for, by pk, in their order."""
    if is_held(tx):
        return dict.fromkeys(
            (row.pk for row in rows), "the leaderboard's repository to be compared with the state"
        )
    paused, undrawn = tx.is_paused("pause"), commitments.waiting(tx)
    return {row.pk: _reason(configuration, row, now, paused=paused, undrawn=undrawn) for row in rows}


def _reason(
    configuration: Configuration, row: SubmissionRow, now: datetime, *, paused: bool, undrawn: Collection[str]
) -> str:
    if row.hold is not None:
        return f"the organizers (on hold: {row.hold})"
    if row.state is State.FETCHED and is_early(configuration, row, now):
        return f"the opening of phase {row.phase} on {configuration.phases[row.phase or ''].opens:%Y-%m-%d %H:%M} UTC"
    if row.state is State.FETCHED and row.phase in undrawn:
        return f"the public random value of phase {row.phase}"
    if row.state in (State.FETCHED, State.SCORING) and paused:
        return "the end of the pause (`neuco-worker challenge pause --undo`)"
    return "another try after a failure" if row.tries else ITS_TURN


def summary(waits: Mapping[int, str]) -> str:
    """Say how many submissions wait for what, and which is the oldest of each."""
    by_reason: dict[str, list[int]] = {}
    for pk, reason in waits.items():
        by_reason.setdefault(reason, []).append(pk)
    return "; ".join(f"{len(pks)} for {reason}, the oldest is {pks[0]}" for reason, pks in by_reason.items())


def tell_of_pause(tx: Transaction, *, now: datetime) -> None:
    """Raise an alert about a pause that has lasted for an hour; its end resolves it."""
    pause = tx.pause()
    if pause is not None and now - datetime.fromisoformat(pause.since) >= PAUSED_LONG:
        tx.raise_alert(PAUSE, PAUSED, pause.sentence, now=now)


def tell(tx: Transaction, configuration: Configuration, *, now: datetime) -> None:
    """Raise one alert each about what has waited for days, what EvalAI failed, and what it cancelled; resolve those about nothing."""
    old = [
        row for row in tx.submissions(ACTIVE) if row.posted is None and changes.waited(row, now) >= TOO_LONG
    ]
    text = (
        f"{count_of(len(old), 'submission has', 'submissions have')} waited for more than three days:"
        f" {summary(reasons(tx, configuration, old, now))}. EvalAI cancels what has waited for 14 days."
    )
    tx.set_alert(WAITING, WAITING, text if old else None, now=now)
    failed = [row for row in tx.submissions(UNSCORED) if changes.timed_out(row, now)]
    text = (
        f"EvalAI shows {count_of(len(failed), 'submission')} as failed that had waited for hours, perhaps because of its queue's time"
        f" limit: {_named(failed)}. The worker scores them all the same, and its answers replace that."
    )
    tx.set_alert(changes.TIMED_OUT, changes.TIMED_OUT, text if failed else None, now=now)
    given_up = [
        row
        for row in tx.submissions([State.CANCELLED])
        if row.hold == changes.GIVEN_UP and row.excluded is None
    ]
    text = (
        f"EvalAI shows {count_of(len(given_up), 'submission')} as cancelled that had waited for 14 days without an answer:"
        f" {_named(given_up)}. EvalAI's maintenance does this, and so may a team. To have one scored and"
        " answered after all, run `neuco-worker challenge retry NUMBER`; if its team withdrew it, `neuco-worker challenge follow NUMBER`."
    )
    tx.set_alert(changes.GIVEN_UP, changes.GIVEN_UP, text if given_up else None, now=now)
    if all(row.tries < HOPELESS_TRIES for row in tx.submissions([State.FETCHED, State.SCORING])):
        tx.resolve_alert(HOPELESS)


def _named(rows: Sequence[SubmissionRow]) -> str:
    return name_some([str(row.pk) for row in rows], NAMED)
