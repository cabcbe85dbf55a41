"""The submissions of a challenge for its organizer: number, team, state, value, and what they wait for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from leaderboard import PhaseSnapshot
from leaderboard.ranking import from_json, waiting_teams
from leaderboard.rendering import printed, public_rows
from leaderboard.report import awards
from scoring.errors import OrganizerError
from scoring.metrics import shown as shown_value
from scoring.printable import count_of
from worker.answers.answers import Answer
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import not_recorded, read_record
from worker.fairness.membership import is_baseline
from worker.fairness.places import Place, Placed, places
from worker.fairness.register import LATEST, RegisterReplay, replay_of, submission_facts
from worker.fairness.replay import PhaseReplay
from worker.intake import waiting
from worker.organizer.session import OrganizerSession
from worker.state import ACTIVE, State, SubmissionRow, Transaction

HELD = "held"


@dataclass(frozen=True, kw_only=True)
class ListedSubmission:
    """One submission.

    Attributes:
        row: What is known of it; the names of team and method are untrusted text.
        shown: The value that its team was shown, or would be shown now, as boards print it; empty before it is scored.
        baseline: Whether it is the organizers' own, under a name that the rules list.
        placed: Its place by the register; None before it is registered.
        waits_for: What it waits for; None if it needs no answer.
    """

    row: SubmissionRow
    shown: str
    baseline: bool
    placed: Placed | None
    waits_for: str | None

    @property
    def place(self) -> Place:
        """What became of it, in one word; a refusal is registered only with the next board or line of the log."""
        place = Place.OPEN if self.placed is None else self.placed.place
        return Place.REFUSED if place is Place.OPEN and self.row.state is State.FAILED else place

    @property
    def counts(self) -> bool:
        """Whether it is on the board."""
        return self.place is Place.COUNTS

    @property
    def kind(self) -> str | None:
        """What sets it apart from a submission of a participant that counts or waits."""
        if self.baseline or self.counts or self.place is Place.OPEN:
            return "baseline" if self.baseline else None
        return str(self.placed if self.placed and self.placed.place is self.place else self.place)

    @property
    def notes(self) -> tuple[str, ...]:
        """What has happened to it, the most urgent first."""
        row, notes = self.row, []
        if row.hold is not None:
            notes.append(f"held: {row.hold_reason or row.hold} ({row.hold})")
        if row.tries and row.not_before is not None:
            notes.append(f"{count_of(row.tries, 'failed attempt')}, next at {row.not_before:%H:%M:%S} UTC")
        if self.waits_for not in (None, waiting.ITS_TURN) and not notes:
            notes.append(f"waits for {self.waits_for}")
        if row.superseded_by is not None:
            notes.append(f"re-run as {row.superseded_by}")
        return tuple(notes)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        row = self.row
        return {
            "number": row.pk,
            "phase": row.phase,
            "team": row.team,
            "team_number": row.team_key,
            "method": row.method,
            "submitted_at": None if row.submitted_at is None else row.submitted_at.isoformat(),
            "state": str(row.state),
            "at_evalai": row.remote_status,
            "public": row.public,
            "q_mean": row.q_mean,
            "shown": self.shown,
            "place": self.place,
            "why": "" if self.placed is None else self.placed.why,
            "own": row.own,
            "baseline": self.baseline,
            "hold": row.hold,
            "hold_reason": row.hold_reason,
            "next_try_at": row.not_before.isoformat() if row.tries and row.not_before else None,
            "tries": row.tries,
            "waits_for": self.waits_for,
            "rerun_as": row.superseded_by,
        }


def submissions(
    session: OrganizerSession,
    *,
    phase: str | None = None,
    team: str | None = None,
    state: str | None = None,
    limit: int | None = None,
) -> list[ListedSubmission]:
    """Return the matching submissions, oldest first; or so many of them, newest first.

    Args:
        session: The challenge.
        phase: Codename.
        team: A part of the team's name, ignoring case, or EvalAI's number of it.
        state: One of the states, or ``held``.
        limit: How many.

    Raises:
        OrganizerError: If there is no such phase or state.
    """
    if phase is not None:
        session.check_phase(phase)
    states = _states(state)
    with session.store.read() as tx:
        phases = session.configuration.phases
        rows = [
            row
            for row in tx.submissions(states, phase=phase)
            if (state != HELD or (row.hold is not None and row.superseded_by is None))
            if team is None or team.casefold() in (row.team or "").casefold() or team == str(row.team_key)
        ]
        rows = rows if limit is None else rows[: -limit - 1 : -1]
        records, replays = {name: read_record(tx, name) for name in phases}, replay_of(tx, rows)
        placed = {
            each.facts.submission: each for name in phases for each in places(replays[name], LATEST).values()
        }
        waits = waiting.reasons(tx, session.configuration, tx.submissions(ACTIVE), session.now)
        return [
            ListedSubmission(
                row=row,
                shown=_shown(row, records.get(row.phase or "")),
                baseline=_is_baseline(row, records.get(row.phase or "")),
                placed=placed.get(row.pk),
                waits_for=waits.get(row.pk),
            )
            for row in rows
        ]


def snapshot(session: OrganizerSession, phase: str) -> PhaseSnapshot:
    """Return everything that decides a phase's board now, or decided it when it was closed.

    Raises:
        OrganizerError: If there is no such phase, or it has not begun.
    """
    session.check_phase(phase)
    with session.store.read() as tx:
        replay = RegisterReplay().at(tx)[phase]
    decides = replay.snapshot(replay.closed_at or LATEST)
    if decides is None:
        raise not_recorded(phase)
    return decides


def participation(session: OrganizerSession, phase: str) -> dict[str, Any]:
    """Return how many teams took part in a phase, how many files they sent each day (UTC), and how many failed, by code."""
    with session.store.read() as tx:
        rows = [row for row in tx.submissions(phase=phase) if not row.own]
    answers = [Answer.from_json(row.posted) for row in rows if row.posted is not None]
    return {
        "teams": len({row.team_key for row in rows}),
        "files": len(rows),
        "files_by_day": dict(
            sorted(Counter(f"{row.submitted_at or row.first_seen_at:%Y-%m-%d}" for row in rows).items())
        ),
        "failures_by_code": dict(
            Counter(answer.code for answer in answers if answer.status == "failed").most_common()
        ),
    }


def last_boards(session: OrganizerSession, phase: str | None = None) -> list[dict[str, Any]]:
    """Return the last boards, JSON-ready: what participants see, and the submission behind each row.

    Raises:
        OrganizerError: If there is no such phase.
    """
    if phase is not None:
        session.check_phase(phase)
    names = list(session.configuration.phases) if phase is None else [phase]
    with session.store.read() as tx:
        replays = RegisterReplay().at(tx)
        return [_last_board(tx, name, replays[name]) for name in names]


def _last_board(tx: Transaction, name: str, replay: PhaseReplay) -> dict[str, Any]:
    record, text, now = tx.phase_record(name), tx.newest_board(name), replay.snapshot(LATEST)
    closed_at = None if record is None else record.closed_at
    board = None if text is None else from_json(text)
    rows = () if board is None else public_rows(board, board.rounding)
    return {
        "phase": name,
        "sequence": 0 if board is None else board.sequence,
        "made_at": None if board is None else board.made_at.isoformat(),
        "closed_at": None if closed_at is None else closed_at.isoformat(),
        "awards": awards(rows) if rows else "",
        "entries": [
            {
                "rank": row.rank,
                "team": row.team,
                "q_mean": row.q_text,
                "rank_by_mean": row.rank_by_mean,
                "submission": row.submission,
                "baseline": row.baseline,
            }
            for row in rows
        ],
        # how many teams have values that are not shown before the phase is closed
        "withheld": len(waiting_teams(now)) if now and replay.withholds(LATEST) else 0,
    }


def _states(state: str | None) -> list[State] | None:
    if state not in (None, *State, HELD):
        raise OrganizerError(
            f"There is no submission state {state!r}.",
            hint=f"The states are: {', '.join([*State, HELD])}.",
            code="submission.state",
        )
    return None if state in (None, HELD) else [State(state)]


def _is_baseline(row: SubmissionRow, record: PhaseRecord | None) -> bool:
    return record is not None and is_baseline(submission_facts(row), record.rules)


def _shown(row: SubmissionRow, record: PhaseRecord | None) -> str:
    """Return the value of a submission as boards and answers have it; empty before it is scored."""
    if row.q_mean is None or record is None:
        return ""
    rules = record.rules
    answered = None if row.posted is None else Answer.from_json(row.posted).value
    value = shown_value(row.q_mean, rules.decimals, rules.ladder_step) if answered is None else answered
    return printed(value, rules.decimals, rules.ladder_step)
