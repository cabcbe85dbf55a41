"""Whether a scored submission counts: its place on the final board, or what kept it off or took it off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from leaderboard import Entry, PhaseSnapshot, Selection, Standing
from leaderboard.ranking import counted, row_key
from leaderboard.rendering import Row, public_rows
from worker.challenge.records import PhaseRules
from worker.fairness import membership
from worker.fairness.verify.decisions import without_hiding
from worker.fairness.verify.replay import Register
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

RUNS = 20  # length of a followed chain of re-runs
SLACK = timedelta(minutes=15)  # a close carries the time of its board, which may take this long to make


def counting(phase: RevealedPhase, entry: str, check: str, others: Mapping[str, Register]) -> Verdict:
    """Return where a scored submission is on the final board, which other one counts for its team, or what takes it off.

    Args:
        phase: The revealed phase.
        entry: The submission's pseudonym; its facts are open.
        check: Name of the verdict.
        others: The registers of all revealed phases, by codename.

    Raises:
        LookupError, ValueError, TypeError, AttributeError: If what was revealed has another form.
    """
    register, told = phase.register, ""
    for _ in range(RUNS):
        facts = register.submissions[entry].events[-1]
        again = facts["superseded_by"]
        if again is None or facts["answered"]:
            break
        told += f"Submission {facts['submission']} of team {facts['team']} was run again at EvalAI as submission {again}. "
        following = (
            name for name, one in register.submissions.items() if one.events[-1]["submission"] == again
        )
        if (found := next(following, None)) is None:
            return phase.believed(
                check, f"{told}That one has not been revealed: it was refused, or is private"
            )
        entry = found
    verdict = _counting(phase, entry, check, others)
    return replace(verdict, sentence=f"{told}{verdict.sentence}")


def _counting(phase: RevealedPhase, entry: str, check: str, others: Mapping[str, Register]) -> Verdict:
    register = phase.register
    facts = register.submissions[entry].events[-1]
    shown: dict[str, Any] = {"submission": int(facts["submission"]), "team": str(facts["team"])}
    who = f"submission {shown['submission']} of team {shown['team']}"
    if (row := _final_row(phase, facts["submission"])) is not None:
        return phase.consistent(check, f"{who} counts on the final board {_at(row)}")
    rules = register.rules(register.end)
    if rules is None:
        return phase.contradicted(check, f"{who} is not on the final board: no rules are registered")
    reason = membership.kept_off(facts, rules)
    if reason not in (None, membership.PRIVATE):
        told = f"{who} is not on the final board: {reason}, registered on {_since(register, entry, rules)}"
        if membership.is_off_by_evalai(facts):
            return phase.believed(check, f"{told}; only EvalAI can show whether that is so")
        return phase.contradicted(check, told)
    if facts["team"] in rules.hidden_teams:
        effect = _effect(phase, facts, others)
        since = _hidden_since(register, facts["team"])
        return phase.contradicted(
            check, f"{who} is not on the final board: the rules hide this team since {since}{effect}"
        )
    snapshot = register.snapshot(
        register.closed_at, epsilon=phase.epsilon_at(register.closed_at), elsewhere=None
    )
    ours = None if snapshot is None else _entry(snapshot, shown["submission"])
    if snapshot is None or ours is None:
        return _late(phase, entry, shown, check)
    if not ours.public:
        when = "is" if rules.visibility == "current" else "was sent as"
        return phase.consistent(check, f"{who} {when} private: it is on no board")
    return _by_selection(phase, snapshot, ours, shown, check)


def _late(phase: RevealedPhase, entry: str, shown: Mapping[str, Any], check: str) -> Verdict:
    """Return the verdict that a submission was answered after the board was closed, or that nothing explains why it is not on it.

    A close is registered at once. A backdated one cannot exclude what was answered before it was registered.
    """
    register, closed_at = phase.register, phase.register.closed_at
    closed = register.decisions.events[-1]["frozen_at"]
    decided = (one["at"] for one in register.decisions.events if one["frozen_at"] == closed)
    answered = next((one["at"] for one in register.submissions[entry].events if one["answered"]), None)
    if closed is None or answered is None or datetime.fromisoformat(answered) <= closed_at:
        return _unexplained(phase, shown, check)
    decided_at = datetime.fromisoformat(next(decided))
    if decided_at - closed_at > SLACK and datetime.fromisoformat(answered) < decided_at:
        return _unexplained(phase, shown, check)
    who = f"submission {shown['submission']} of team {shown['team']}"
    told = f"{who} is on no board: the board was closed on {closed[:16]}, and the submission was answered on {answered[:16]}"
    if register.scores[entry].moments[0] > closed_at:
        return phase.consistent(check, told)
    return phase.believed(check, f"{told}; it had been scored before that")


def _by_selection(
    phase: RevealedPhase, snapshot: PhaseSnapshot, ours: Entry, shown: Mapping[str, Any], check: str
) -> Verdict:
    """Return which submission of the team counts, by computing the selection again."""
    who, rule = f"submission {shown['submission']} of team {shown['team']}", snapshot.rules.selection.value
    rows = {row_key(one.entry): one.entry.submission for one in counted(snapshot)}
    counts = rows.get(row_key(ours))
    if counts is not None and counts != ours.submission:
        row = _final_row(phase, counts)
        if row is not None:
            told = f"submission {counts} of the same team counts {_at(row)}"
            return phase.consistent(
                check, f"{who} does not count: {told}; by the rules, the {rule} one counts"
            )
        told = f"submission {counts} of the same team should count, but is not on the final board"
        return phase.contradicted(check, f"{who} does not count: {told}")
    standing = phase.boards[-1].standings if phase.boards else ()
    for other in standing:
        row = _final_row(phase, other.submission)
        if row is not None and other.key == row_key(ours):
            told = f"submission {other.submission} of the same team counts {_at(row)}"
            return phase.contradicted(
                check, f"{who} does not count: {told}; by the rules, the {rule} one should"
            )
    return _unexplained(phase, shown, check)


def _entry(snapshot: PhaseSnapshot, submission: int) -> Entry | None:
    return next((entry for entry in snapshot.entries if entry.submission == submission), None)


def _since(register: Register, entry: str, rules: PhaseRules) -> str:
    """Return when the newest facts that keep an entry off the board were first registered."""
    moment = ""
    for facts in reversed(register.submissions[entry].events):
        if membership.kept_off(facts, rules) is None:
            break
        moment = facts["at"]
    return moment[:16]


def _hidden_since(register: Register, team: str) -> str:
    moment, reason = "", ""
    for fields in reversed(register.decisions.events):
        if team not in fields["rules"]["hidden_teams"]:
            break
        moment, reason = fields["at"], fields["reason"]
    return f"{moment[:16]} ({reason})" if reason else moment[:16]


def _effect(phase: RevealedPhase, facts: membership.Facts, others: Mapping[str, Register]) -> str:
    """Return the rank that a submission would have if no team were hidden, if it is known."""
    board = without_hiding(phase, others)
    for row in () if board is None else board.standings:
        if row.submission == facts["submission"]:
            return f"; without that rule it would be at rank {row.rank} with mean Q {row.q_mean:.3f}"
    return ""


def _unexplained(phase: RevealedPhase, shown: Mapping[str, Any], check: str) -> Verdict:
    """Return the verdict on a submission that is not on the final board, although nothing in the register keeps it off."""
    submission = shown["submission"]
    who = f"submission {submission} of team {shown['team']}"
    if not phase.boards:
        return phase.contradicted(check, f"{who} is on no board: no board was revealed")
    stood = [
        (number, standing)
        for number, board in enumerate(phase.boards, 1)
        for standing in board.standings
        if standing.submission == submission
    ]
    if not stood:
        return phase.contradicted(check, f"{who} was revealed but was never on a board")
    number, standing = stood[-1]
    for row in public_rows(phase.boards[-1], phase.rules):
        if row.key == standing.key:
            return _replaced(phase, who, standing, row, check)
    since = phase.boards[number].made_at.isoformat(timespec="seconds")
    return phase.contradicted(
        check,
        f"{who} is not on the final board: it was at rank {standing.rank} until board {number}, and was removed"
        f" at {since}; nothing published says why",
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
    told = f"{who} does not count: submission {row.submission} of the same team counts {_at(row)}"
    if explained:
        return phase.consistent(check, f"{told}; by the rules, the {rules.selection.value} one counts")
    return phase.contradicted(check, f"{told}; by the rules, the {rules.selection.value} one should")


def _final_row(phase: RevealedPhase, submission: int) -> Row | None:
    """Return the row of a submission on the final board, if it has one."""
    rows = public_rows(phase.boards[-1], phase.rules) if phase.boards else ()
    return next((row for row in rows if row.submission == submission), None)


def _at(row: Row) -> str:
    """Describe the rank of a row."""
    if row.rank is not None:
        return f"at rank {row.rank} with mean Q {row.q_text}"
    why = "as a baseline" if row.baseline else "out of competition"
    return f"without a rank ({why}) with mean Q {row.q_text}"
