"""The organizers' decisions during a phase: when, why, which submissions they kept off the board, and what they did to the ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from leaderboard import DecisionKind
from leaderboard.rendering import rank_changes
from scoring.printable import name_some
from worker.fairness import membership
from worker.fairness.decisions import decisions as decided
from worker.fairness.decisions import minute
from worker.fairness.events import PhaseEvent
from worker.fairness.fold import PhaseFold
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

CHECK = "decisions"


def decisions(phase: RevealedPhase) -> Verdict:
    """Report the organizers' decisions: rules, tasks, removals, choices, hidden teams, the close."""

    def same_scoring(earlier: PhaseEvent, later: PhaseEvent) -> bool:
        before, after = (
            replace(phase.protocol_of(event), secret_commitment="") for event in (earlier, later)
        )
        return (earlier.tasks, before) == (later.tasks, after)

    sentences = []
    for decision in decided(phase.fold, same_scoring=same_scoring):
        changed = "" if decision.kind is DecisionKind.OTHER else effect(phase, decision.at)
        sentences.append(f"{decision.text} on {minute(decision.at)}{because(decision.reason)}{changed}")
    sentences += _after_the_close(phase.fold)
    if not sentences:
        return phase.consistent(CHECK, "its rules never changed, and no entry was taken off the board")
    return phase.consistent(CHECK, f"decisions by the organizers: {'; '.join(sentences)}")


def because(reason: str) -> str:
    """Return a decision's reason in parentheses, if there is one."""
    return f" ({reason})" if reason else ""


def effect(phase: RevealedPhase, moment: datetime) -> str:
    """Return what the first board after a decision changed in the ranks; nothing if no rank changed."""
    changes = rank_changes(phase.boards, moment)
    return f", which changed these ranks: {name_some(changes)}" if changes else ""


def _after_the_close(fold: PhaseFold) -> Iterator[str]:
    """Report the submissions that would count if the board had not been closed before."""
    rules, closed = fold.rules(fold.end), fold.frozen_at
    if rules is None or closed is None:
        return
    for entry, history in fold.submissions.items():
        facts, then = history.events[-1], history.at(closed)
        counts = membership.kept_off(facts, rules) is None and fold.score(entry, fold.end) is not None
        if counts and (then is None or not then.answered or fold.score(entry, closed) is None):
            yield f"submission {facts.submission} of {facts.team} was answered after the board was closed"
