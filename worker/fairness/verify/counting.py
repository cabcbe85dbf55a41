"""Whether a scored submission counts: its place on the final board, or what kept it off or took it off."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from leaderboard.ranking import counted, row_key
from leaderboard.rendering import Row, public_rows
from worker.challenge.records import PhaseRules
from worker.fairness import membership
from worker.fairness.events import SubmissionEvent
from worker.fairness.verify.decisions import minute, without_hiding
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

RUNS = 20  # length of a followed chain of re-runs
SLACK = timedelta(minutes=15)  # a close carries the time of its board, which may take this long to make


def counting(phase: RevealedPhase, entry: str, check: str) -> Verdict:
    """Return where a scored submission is on the final board, which other one counts for its team, or what takes it off.

    Args:
        phase: The revealed phase.
        entry: The submission's pseudonym; its facts are open.
        check: Name of the verdict.

    Raises:
        LookupError, ValueError, TypeError, AttributeError: If what was revealed has another form.
    """
    fold, reruns = phase.fold, ""
    facts = fold.submissions[entry].events[-1]
    for _ in range(RUNS):
        if facts.superseded_by is None or facts.answered:
            break
        reruns += f"Submission {facts.submission} of team {facts.team} was run again at EvalAI as submission {facts.superseded_by}. "
        following = fold.entry_of(facts.superseded_by)
        if following is None:
            return phase.believed(
                check, f"{reruns}That one has not been revealed: it was refused, or is private"
            )
        facts = fold.submissions[following].events[-1]
    verdict = _counting(phase, facts, check)
    return replace(verdict, sentence=f"{reruns}{verdict.sentence}")


def _counting(phase: RevealedPhase, facts: SubmissionEvent, check: str) -> Verdict:
    fold, who = phase.fold, f"submission {facts.submission} of team {facts.team}"
    if (row := _final_row(phase, facts.submission)) is not None:
        return phase.consistent(check, f"{who} counts on the final board {_at(row)}")
    rules = fold.rules(fold.end)
    if rules is None:
        return phase.contradicted(check, f"{who} is not on the final board: no rules are registered")
    reason = membership.kept_off(facts, rules)
    if reason not in (None, membership.PRIVATE):
        sentence = f"{who} is not on the final board: {reason}, registered on {_since(phase, facts, rules)}"
        if membership.is_off_by_evalai(facts):
            return phase.believed(check, f"{sentence}; only EvalAI can show whether that is so")
        return phase.contradicted(check, sentence)
    if facts.team in rules.hidden_teams:
        return phase.contradicted(
            check, f"{who} is not on the final board: the rules hide this team since {_hidden(phase, facts)}"
        )
    snapshot = fold.snapshot(fold.closed_at)
    entries = () if snapshot is None else snapshot.entries
    ours = next((entry for entry in entries if entry.submission == facts.submission), None)
    if snapshot is None or ours is None:
        return _late(phase, facts, check)
    if not ours.public:
        when = "is" if rules.visibility == "current" else "was sent as"
        return phase.consistent(check, f"{who} {when} private: it is on no board")
    counts = {row_key(one.entry): one.entry.submission for one in counted(snapshot)}.get(row_key(ours))
    row = None if counts is None else _final_row(phase, counts)
    if row is None or counts == ours.submission:
        return _unexplained(phase, facts, check)
    return phase.consistent(
        check,
        f"{who} does not count: submission {counts} of the same team counts {_at(row)}; by the rules, the"
        f" {snapshot.rules.selection.value} one counts",
    )


def _late(phase: RevealedPhase, facts: SubmissionEvent, check: str) -> Verdict:
    """Return the verdict that a submission was answered after the board was closed, or that nothing explains why it is not on it.

    A close is registered at once. A backdated one cannot exclude what was answered before it was registered.
    """
    fold, closed_at = phase.fold, phase.fold.frozen_at
    answered = (event.at for event in fold.submissions[facts.entry].events if event.answered)
    answered_at = next(answered, None)
    if closed_at is None or answered_at is None or answered_at <= closed_at:
        return _unexplained(phase, facts, check)
    decided_at = next(event.at for event in fold.decisions.events if event.frozen_at == closed_at)
    if decided_at - closed_at > SLACK and answered_at < decided_at:
        return _unexplained(phase, facts, check)
    sentence = (
        f"submission {facts.submission} of team {facts.team} is on no board: the board was closed on {minute(closed_at)}, and the"
        f" submission was answered on {minute(answered_at)}"
    )
    if fold.scores[facts.entry].moments[0] > closed_at:
        return phase.consistent(check, sentence)
    return phase.believed(check, f"{sentence}; it had been scored before that")


def _unexplained(phase: RevealedPhase, facts: SubmissionEvent, check: str) -> Verdict:
    """Return the verdict on a submission that is not on the final board, although nothing in the register keeps it off."""
    last = next(
        (
            board.sequence
            for board in reversed(phase.boards)
            if facts.submission in {row.submission for row in board.standings}
        ),
        None,
    )
    where = "it was on no board" if last is None else f"board {last} was the last with it"
    return phase.contradicted(
        check,
        f"submission {facts.submission} of team {facts.team} is not on the final board, and nothing published says why: {where}",
    )


def _since(phase: RevealedPhase, facts: SubmissionEvent, rules: PhaseRules) -> str:
    """Return when the newest facts that keep an entry off the board were first registered."""
    moment: datetime = facts.at
    for event in reversed(phase.fold.submissions[facts.entry].events):
        if membership.kept_off(event, rules) is None:
            break
        moment = event.at
    return minute(moment)


def _hidden(phase: RevealedPhase, facts: SubmissionEvent) -> str:
    """Return since when the rules hide a team, why, and what rank it would have otherwise."""
    since = phase.fold.decisions.events[-1]
    for event in reversed(phase.fold.decisions.events):
        if facts.team not in event.rules.hidden_teams:
            break
        since = event
    reason = f" ({since.reason})" if since.reason else ""
    board = without_hiding(phase)
    for row in () if board is None else board.standings:
        if row.submission == facts.submission:
            reason += f"; without that rule it would be at rank {row.rank} with mean Q {row.q_mean:.3f}"
    return f"{minute(since.at)}{reason}"


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
