"""The submissions of a challenge for its organizer: number, team, state, value, and what they wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leaderboard import PhaseSnapshot
from leaderboard.ranking import from_json
from leaderboard.rendering import printed, public_rows
from leaderboard.report import awards
from scoring.errors import OrganizerError
from scoring.metrics import shown as shown_value
from scoring.printable import count_of
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import not_recorded, read_record
from worker.evaluation.answers import Answer
from worker.fairness.membership import is_baseline
from worker.fairness.register import LATEST, RegisterReplay, disqualified_teams, submission_facts
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
        counts: Whether the last board shows it.
        baseline: Whether it is the organizers' own, under a name that the rules list.
        disqualified: Why it is disqualified, or its team; None if neither is.
        waits_for: What it waits for; None if it needs no answer.
    """

    row: SubmissionRow
    shown: str
    counts: bool
    baseline: bool
    disqualified: str | None
    waits_for: str | None

    @property
    def kind(self) -> str | None:
        """What sets it apart from a public submission of a participant."""
        if self.row.own:
            return "baseline" if self.baseline else "the organizers' own"
        return "private" if self.row.public is False else None

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
        if self.disqualified is not None:
            notes.append(f"disqualified: {self.disqualified}")
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
            "counts": self.counts,
            "own": row.own,
            "baseline": self.baseline,
            "hold": row.hold,
            "hold_reason": row.hold_reason,
            "next_try_at": row.not_before.isoformat() if row.tries and row.not_before else None,
            "tries": row.tries,
            "waits_for": self.waits_for,
            "disqualified": self.disqualified,
            "rerun_as": row.superseded_by,
        }


def submissions(
    session: OrganizerSession,
    *,
    phase: str | None = None,
    team: str | None = None,
    state: str | None = None,
) -> list[ListedSubmission]:
    """Return the matching submissions, oldest first.

    Args:
        session: The challenge.
        phase: Codename.
        team: A part of the team's name, ignoring case, or EvalAI's number of it.
        state: One of the states, or ``held``.

    Raises:
        OrganizerError: If there is no such phase or state.
    """
    if phase is not None:
        session.check_phase(phase)
    states = _states(state)
    with session.store.read() as tx:
        phases = session.configuration.phases
        boards = [from_json(text) for name in phases if (text := tx.newest_board(name)) is not None]
        counted = {standing.submission for board in boards for standing in board.standings}
        records, teams = {name: read_record(tx, name) for name in phases}, disqualified_teams(tx)
        waits = waiting.reasons(tx, session.configuration, tx.submissions(ACTIVE), session.now)
        return [
            ListedSubmission(
                row=row,
                shown=_shown(row, records.get(row.phase or "")),
                counts=row.pk in counted,
                baseline=_is_baseline(row, records.get(row.phase or "")),
                disqualified=row.excluded or teams.get(row.team_key or 0),
                waits_for=waits.get(row.pk),
            )
            for row in tx.submissions(states, phase=phase)
            if (state != HELD or row.hold is not None) and (team is None or _is_of(row, team))
        ]


def snapshot(session: OrganizerSession, phase: str) -> PhaseSnapshot:
    """Return everything that decides a phase's board now.

    Raises:
        OrganizerError: If there is no such phase, or it has not begun.
    """
    session.check_phase(phase)
    with session.store.read() as tx:
        now = RegisterReplay().at(tx)[phase].snapshot(LATEST)
    if now is None:
        raise not_recorded(phase)
    return now


def last_boards(session: OrganizerSession, phase: str | None = None) -> list[dict[str, Any]]:
    """Return the last boards, JSON-ready: what participants see, and the submission behind each row.

    Raises:
        OrganizerError: If there is no such phase.
    """
    if phase is not None:
        session.check_phase(phase)
    names = list(session.configuration.phases) if phase is None else [phase]
    with session.store.read() as tx:
        return [_last_board(tx, name) for name in names]


def _last_board(tx: Transaction, name: str) -> dict[str, Any]:
    record, text = tx.phase_record(name), tx.newest_board(name)
    frozen_at = None if record is None else record.frozen_at
    board = None if text is None else from_json(text)
    rows = () if board is None else public_rows(board, board.rounding)
    return {
        "phase": name,
        "sequence": 0 if board is None else board.sequence,
        "made_at": None if board is None else board.made_at.isoformat(),
        "frozen_at": None if frozen_at is None else frozen_at.isoformat(),
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
    }


def _states(state: str | None) -> list[State] | None:
    if state in (None, HELD):
        return None
    try:
        return [State(state)]
    except ValueError:
        raise OrganizerError(
            f"There is no submission state {state!r}.",
            cure=f"The states are: {', '.join([*State, HELD])}.",
            code="submission.state",
        ) from None


def _is_baseline(row: SubmissionRow, record: PhaseRecord | None) -> bool:
    return record is not None and is_baseline(submission_facts(row), record.rules)


def _is_of(row: SubmissionRow, team: str) -> bool:
    return team.casefold() in (row.team or "").casefold() or team == str(row.team_key)


def _shown(row: SubmissionRow, record: PhaseRecord | None) -> str:
    """Return the value of a submission as boards and answers have it; empty before it is scored."""
    if row.q_mean is None or record is None:
        return ""
    rules = record.rules
    answered = None if row.posted is None else Answer.from_json(row.posted).value
    value = shown_value(row.q_mean, rules.decimals, rules.ladder_step) if answered is None else answered
    return printed(value, rules.decimals, rules.ladder_step)
