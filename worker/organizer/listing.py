"""The submissions of a challenge for its organizer: number, team, state, value, and what they wait for."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leaderboard import Rules
from leaderboard.ranking import from_json
from leaderboard.rendering import public_rows, rounded
from leaderboard.report import awards
from scoring.errors import OrganizerError
from scoring.printable import count_of
from scoring.quality import shown as shown_value
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import read_record
from worker.organizer.session import OrganizerSession
from worker.state import State, SubmissionRow, Transaction

HELD = "held"


@dataclass(frozen=True, kw_only=True)
class ListedSubmission:
    """One submission.

    Attributes:
        number: EvalAI's number.
        phase: Codename; None until it is known.
        team: Name of the team as EvalAI shows it; untrusted text, like the method.
        team_number: EvalAI's number of the team.
        method: Name of the method.
        submitted_at: When it was submitted, aware UTC.
        state: Its state.
        at_evalai: The status that EvalAI last showed.
        public: Whether EvalAI shows it to everybody now.
        q_mean: Its value; None before it is scored.
        shown: Its value with the decimals, and in the steps, that boards and answers have; empty before it is scored.
        counts: Whether the last board shows it.
        own: Whether the organizers submitted it themselves.
        baseline: Whether EvalAI marks it as a baseline.
        hold: Code of the problem that a person must settle.
        hold_reason: The same as a sentence.
        next_try_at: When it is tried again, if a try has failed.
        tries: Failed tries since the last success.
        disqualified: The reason, if it was taken off the board.
        rerun_as: Number of its re-run at EvalAI.
    """

    number: int
    phase: str | None
    team: str | None
    team_number: int | None
    method: str | None
    submitted_at: datetime | None
    state: str
    at_evalai: str | None
    public: bool | None
    q_mean: float | None
    shown: str
    counts: bool
    own: bool
    baseline: bool
    hold: str | None
    hold_reason: str | None
    next_try_at: datetime | None
    tries: int
    disqualified: str | None
    rerun_as: int | None

    @property
    def notes(self) -> tuple[str, ...]:
        """Special facts about it, the most urgent first."""
        notes = []
        if self.hold is not None:
            notes.append(f"held: {self.hold_reason or self.hold} ({self.hold})")
        if self.next_try_at is not None:
            notes.append(f"{count_of(self.tries, 'failed attempt')}, next at {self.next_try_at:%H:%M:%S} UTC")
        if self.disqualified is not None:
            notes.append(f"disqualified: {self.disqualified}")
        if self.rerun_as is not None:
            notes.append(f"re-run as {self.rerun_as}")
        if self.baseline:
            notes.append("baseline")
        elif self.own:
            notes.append("the organizers' own")
        if self.public is False:
            notes.append("private")
        return tuple(notes)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        times = ("submitted_at", "next_try_at")
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return values | {name: None if values[name] is None else values[name].isoformat() for name in times}


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
        counted = _on_boards(tx, session)
        records = {name: read_record(tx, name) for name in session.configuration.phases}
        rows = tx.submissions(states, phase=phase)
        return [
            _listed(row, records.get(row.phase or ""), counted)
            for row in rows
            if (state != HELD or row.hold is not None) and (team is None or _is_of(row, team))
        ]


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
    record = tx.phase_record(name)
    frozen_at = None if record is None else record.frozen_at
    shown: dict[str, Any] = {
        "phase": name,
        "sequence": 0,
        "made_at": None,
        "frozen_at": None if frozen_at is None else frozen_at.isoformat(),
        "awards": "",
        "entries": [],
    }
    for text in tx.boards(name, after=tx.last_board(name) - 1):
        board = from_json(text)
        rows = public_rows(board, board.rules_then(Rules()))
        shown |= {
            "sequence": board.sequence,
            "made_at": board.made_at.isoformat(),
            "awards": awards(rows),
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
    return shown


def _states(state: str | None) -> list[State] | None:
    if state is None or state == HELD:
        return None
    known = [*(str(one) for one in State), HELD]
    if state in known:
        return [State(state)]
    near = difflib.get_close_matches(state, known, n=1)
    raise OrganizerError(
        f"There is no submission state {state!r}{f'; did you mean {near[0]}?' if near else '.'}",
        cure=f"The states are: {', '.join(known)}.",
        code="submission.state",
    )


def _on_boards(tx: Transaction, session: OrganizerSession) -> frozenset[int]:
    """Return the submissions that the last board of each phase shows."""
    last = [
        text
        for name in session.configuration.phases
        for text in tx.boards(name, after=tx.last_board(name) - 1)
    ]
    return frozenset(standing.submission for text in last for standing in from_json(text).standings)


def _is_of(row: SubmissionRow, team: str) -> bool:
    return team.casefold() in (row.team or "").casefold() or team == str(row.team_key)


def _listed(row: SubmissionRow, record: PhaseRecord | None, counted: frozenset[int]) -> ListedSubmission:
    shown = ""
    if row.q_mean is not None and record is not None:
        rules = record.rules
        shown = rounded(shown_value(row.q_mean, rules.decimals, rules.ladder_step), rules.decimals)
    return ListedSubmission(
        number=row.pk,
        phase=row.phase,
        team=row.team,
        team_number=row.team_key,
        method=row.method,
        submitted_at=row.submitted_at,
        state=str(row.state),
        at_evalai=row.remote_status,
        public=row.public_now,
        q_mean=row.q_mean,
        shown=shown,
        counts=row.pk in counted,
        own=row.own,
        baseline=row.baseline,
        hold=row.hold,
        hold_reason=row.hold_reason,
        next_try_at=row.not_before if row.tries else None,
        tries=row.tries,
        disqualified=row.excluded,
        rerun_as=row.superseded_by,
    )
