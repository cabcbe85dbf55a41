"""The place of a revealed entry on the final board, or why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leaderboard import Selection, Standing
from leaderboard.rendering import Row, public_rows
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict


def place(phase: RevealedPhase, entry: Mapping[str, Any], check: str) -> Verdict:
    """Return the verdict whether a revealed entry counts on the final board and, if not, why."""
    submission = int(entry["submission"])
    who = f"submission {submission} of team {entry['team']}"
    if not phase.boards:
        return phase.contradicted(check, f"{who} is on no board: no board was revealed")
    rows = public_rows(phase.boards[-1], phase.rules)
    for row in rows:
        if row.submission == submission:
            return phase.consistent(check, f"{who} counts on the final board {at(row)}")
    stood = [
        (number, standing)
        for number, board in enumerate(phase.boards, 1)
        for standing in board.standings
        if standing.submission == submission
    ]
    if not stood:
        return phase.contradicted(check, f"{who} was revealed but was never on a board")
    number, standing = stood[-1]
    for row in rows:
        if row.key == standing.key:
            return _replaced(phase, who, standing, row, check)
    since = phase.boards[number].made_at.isoformat(timespec="seconds")
    hidden = entry["team"] in phase.rules.hidden_teams
    reason = "by then, the rules hid this team" if hidden else "nothing published says why"
    return phase.contradicted(
        check,
        f"{who} is not on the final board: it was at rank {standing.rank} until board {number}, and was removed"
        f" at {since}; {reason}",
    )


def _replaced(phase: RevealedPhase, who: str, standing: Standing, row: Row, check: str) -> Verdict:
    """Return the verdict whether the rules explain that another submission of a team counts."""
    rules = phase.rules
    other = next(one for one in phase.boards[-1].standings if one.submission == row.submission)
    chosen = rules.chosen.get(standing.team_key)
    if rules.selection in (Selection.BEST, Selection.LADDER):
        explained = other.q_mean >= standing.q_mean
    elif rules.selection is Selection.CHOSEN and chosen is not None:
        explained = other.submission == chosen
    else:
        explained = other.submission > standing.submission
    told = f"{who} does not count: submission {row.submission} of the same team counts {at(row)}"
    if explained:
        return phase.consistent(check, f"{told}; by the rules, the {rules.selection.value} one counts")
    return phase.contradicted(check, f"{told}; by the rules, the {rules.selection.value} one should")


def final_row(phase: RevealedPhase, submission: int) -> Row | None:
    """Return the row of a submission on the final board, if it has one."""
    rows = public_rows(phase.boards[-1], phase.rules) if phase.boards else ()
    return next((row for row in rows if row.submission == submission), None)


def at(row: Row) -> str:
    """Describe the rank of a row."""
    if row.rank is not None:
        return f"at rank {row.rank} with mean Q {row.q_text}"
    why = "as a baseline" if row.baseline else "out of competition"
    return f"without a rank ({why}) with mean Q {row.q_text}"
