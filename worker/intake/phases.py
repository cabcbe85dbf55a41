"""What EvalAI shows of our phases: read regularly, for the page, and compared with what the organizers have decided.

Anybody in the host team may pause a phase there, move its end, or forget to open it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar

from worker.challenge.configuration import Configuration
from worker.challenge.context import Job
from worker.challenge.sections import PhaseSection
from worker.evalai import Client, Described, Phase
from worker.intake.calls import Call
from worker.intake.waiting import tell_of_pause
from worker.state import AT_EVALAI, Transaction

PHASES = Job("phases", lambda configuration: configuration.evalai.reconcile_every)
UNLIMITED = 100_000  # EvalAI's default for each limit
END_MOVED, PAUSED, NOT_OPEN, STILL_OPEN = "phase.end_moved", "phase.paused", "phase.not_open", "phase.open"
OPEN = (
    "The board of phase {0} is closed, but EvalAI takes submissions to it, which do not count. End the phase at EvalAI, or open the board"
    " again with `neuco-worker board close --phase {0} --undo`."
)


class ReadPhases(Call[tuple[list[Phase], Described]]):
    """Read the phases, and the challenge, which can be paused as a whole."""

    name = "phases"
    unhurried: ClassVar[bool] = True

    def perform(self, resource: Client) -> tuple[list[Phase], Described]:
        """Read both."""
        return resource.phases(), resource.page()

    def outcome(self, tx: Transaction, result: tuple[list[Phase], Described], now: datetime) -> None:
        """Record deadlines and limits, and tell what the organizers may not know, or may have forgotten."""
        phases, page = result
        paused = page.said.get("is_submission_paused") is True
        record_terms(tx, self.context.configuration, phases, now=now)
        tell_of_pause(tx, now=now)  # while submissions are not received, no other call is regular
        for phase in phases:
            tell(tx, self.context.configuration, phase, paused=paused, now=now)

    def recorded(self, result: tuple[list[Phase], Described], now: datetime) -> None:
        """Note when it was done; other phases, or other settings of theirs that decide an answer, are read as at the start."""
        self.context.timetable.done(PHASES, now)
        remote = self.session.remote
        if remote is not None and _decisive(result[0]) != _decisive(remote.listed):
            self.session.outdated = True


def _decisive(phases: Sequence[Phase]) -> set[tuple[int, str, bool]]:
    return {(phase.pk, phase.codename, phase.disable_logs) for phase in phases}


def record_terms(
    tx: Transaction, configuration: Configuration, phases: Sequence[Phase], *, now: datetime
) -> None:
    """Record what the page says of the phases, and tell that an end was moved.

    The first push follows by itself.
    """
    before = tx.document(AT_EVALAI)
    terms = {phase.codename: _terms(phase, configuration.phases.get(phase.codename), now) for phase in phases}
    if terms == before:
        return
    tx.set_fact(AT_EVALAI, json.dumps(terms))
    if before:
        tx.request_publish()
    for codename in terms.keys() & before.keys():
        then, ends = before[codename].get("ends_at"), terms[codename].get("ends_at")
        if then != ends:
            text = f"The end of phase {codename} was moved at EvalAI, from {_minute(then)} to {_minute(ends)}. The board shows the new one."
            tx.raise_alert(f"{END_MOVED}:{codename}", END_MOVED, text, now=now, happened=True)


def tell(tx: Transaction, configuration: Configuration, phase: Phase, *, paused: bool, now: datetime) -> None:
    """Raise an alert if EvalAI takes submissions of participants to a closed phase, or none to an open one; resolve it when that ends.

    Args:
        tx: An open write transaction.
        configuration: Has the days of the openings.
        phase: What EvalAI shows of a phase.
        paused: Whether the whole challenge is paused.
        now: The time.
    """
    key, settings = f"phase:{phase.codename}", configuration.phases.get(phase.codename)
    record = tx.phase_record(phase.codename)
    closed = record is not None and record.closed_at is not None
    found = None if settings is None else _differs(settings, phase, paused=paused, closed=closed, now=now)
    if found is None:
        tx.resolve_alert(key)
    else:
        tx.raise_alert(key, *found, now=now)


def _differs(
    settings: PhaseSection, phase: Phase, *, paused: bool, closed: bool, now: datetime
) -> tuple[str, str] | None:
    """Return code and text of what differs from the organizers' decisions."""
    name, paused = phase.codename, paused or phase.is_submission_paused
    if closed:
        return (STILL_OPEN, OPEN.format(name)) if phase.is_active and not paused else None
    if settings.opens_later(now) or (phase.end_date is not None and phase.end_date <= now):
        return None
    if paused:
        text = f"EvalAI takes no submissions to phase {name}: it is paused there (is_submission_paused). Resume it at EvalAI."
        return PAUSED, text
    if settings.opens is None or (phase.is_active and phase.is_public):
        return None
    why = "is not public (is_public)" if phase.is_active else "has not begun"
    return NOT_OPEN, (
        f"Phase {name} opened on {settings.opens:%Y-%m-%d %H:%M} UTC (phases.{name}.opens), but at EvalAI it {why}, so participants cannot"
        " submit. Open it there."
    )


def _terms(phase: Phase, settings: PhaseSection | None, now: datetime) -> dict[str, Any]:
    limits = {
        "per_day": phase.max_submissions_per_day,
        "per_month": phase.max_submissions_per_month,
        "in_all": phase.max_submissions,
    }
    limited = {name: limit for name, limit in limits.items() if limit is not None and limit < UNLIMITED}
    opens_at = settings.opens if settings is not None and settings.opens_later(now) else None
    moments = {"opens_at": opens_at, "ends_at": phase.end_date}
    return limited | {name: moment.isoformat() for name, moment in moments.items() if moment is not None}


def _minute(moment: str | None) -> str:
    return "none" if moment is None else f"{datetime.fromisoformat(moment):%Y-%m-%d %H:%M} UTC"
