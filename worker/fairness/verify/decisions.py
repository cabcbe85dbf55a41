"""The organizers' decisions during a phase: when, why, which submissions they kept off the board, and what they did to the ranks."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime
from itertools import pairwise

from leaderboard import Board
from scoring.printable import name_some
from worker.fairness import membership
from worker.fairness.events import PhaseEvent, SubmissionEvent
from worker.fairness.fold import PhaseFold
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

CHECK = "decisions"


def decisions(phase: RevealedPhase) -> Verdict:
    """Report the organizers' decisions: rules, tasks, removals, choices, hidden teams, the close."""
    sentences = [*_changes(phase), *_removals(phase), *_marks(phase), *_after_the_close(phase.fold)]
    sentences += [f"on {minute(note.at)} it was noted: {note.text.rstrip('.')}" for note in phase.fold.notes]
    if not sentences:
        return phase.consistent(CHECK, "its rules never changed, and no entry was taken off the board")
    return phase.consistent(CHECK, f"decisions by the organizers: {'; '.join(sentences)}")


def minute(moment: datetime) -> str:
    """Write a time to the minute."""
    return moment.isoformat()[:16]


def because(reason: str) -> str:
    """Return a decision's reason in parentheses, if there is one."""
    return f" ({reason})" if reason else ""


def effect(phase: RevealedPhase, moment: datetime) -> str:
    """Return what the first board after a decision changed in the ranks; nothing if no rank changed."""
    place = bisect_left([board.made_at for board in phase.boards], moment)
    before, after = (_ranks(phase.boards[number : number + 1]) for number in (place - 1, place))
    if not before or not after:
        return ""
    moved = [
        f"{team} {before.get(team, 'none')} → {after.get(team, 'none')}"
        for team in {**before, **after}
        if before.get(team) != after.get(team)
    ]
    return f", which changed these ranks: {name_some(moved)}" if moved else ""


def _ranks(boards: tuple[Board, ...]) -> dict[str, int]:
    return {row.team: row.rank for board in boards for row in board.standings if row.numbered}


def _changes(phase: RevealedPhase) -> Iterator[str]:
    fold = phase.fold
    for earlier, later in pairwise(fold.decisions.events):
        changes = [*_rules(earlier, later), *_scoring(phase, earlier, later)]
        if later.chosen != earlier.chosen:
            chosen = [str(pk) for team, pk in later.chosen.items() if earlier.chosen.get(team) != pk]
            changes.append(
                f"the organizers chose which submission of a team counts ({', '.join(chosen) or 'none anymore'})"
            )
        if later.frozen_at != earlier.frozen_at:
            changes.append(_close(later))
        if changes:
            yield f"{', '.join(changes)} on {minute(later.at)}{because(later.reason)}{effect(phase, later.at)}"


def _rules(earlier: PhaseEvent, later: PhaseEvent) -> Iterator[str]:
    names = earlier.rules.changed(later.rules)
    before, after = asdict(earlier.rules), asdict(later.rules)
    if names:
        values = ", ".join(
            f"{name}: {json.dumps(before[name])} to {json.dumps(after[name])}" for name in names
        )
        yield f"the rules {', '.join(names)} changed ({values})"


def _scoring(phase: RevealedPhase, earlier: PhaseEvent, later: PhaseEvent) -> Iterator[str]:
    """Report a change of tasks or protocol; a public value that was mixed into the splits is reported elsewhere."""
    before, after = (replace(phase.protocol_of(event), secret_commitment="") for event in (earlier, later))
    if (later.tasks, after) == (earlier.tasks, before):
        return
    again = any(scores.moments[0] < later.at for scores in phase.fold.scores.values())
    then = ", and all submissions were scored again" if again else " before the first score"
    yield f"the tasks or the protocol changed{then}"


def _close(decided: PhaseEvent) -> str:
    if decided.frozen_at is None:
        return "the board was reopened"
    closed, registered = minute(decided.frozen_at), minute(decided.at)
    return "the board was closed" if closed == registered else f"the board was closed as of {closed}"


def _removals(phase: RevealedPhase) -> Iterator[str]:
    fold = phase.fold
    for history in fold.submissions.values():
        for earlier, later in pairwise([None, *history.events]):
            if later is None:
                continue
            who, when = f"submission {later.submission} of {later.team}", minute(later.at)
            if earlier is not None and membership.taken_off(earlier) and not membership.taken_off(later):
                yield f"{who} was put back on {when}{because(later.reason)}{effect(phase, later.at)}"
            reason = _reason(fold, later)
            before = None if earlier is None else _reason(fold, earlier)
            had_place = earlier is not None and before is None
            if reason and (had_place or membership.taken_off(later) not in (None, before)):
                yield f"{who} was taken off on {when}: {reason}{effect(phase, later.at)}"


def _marks(phase: RevealedPhase) -> Iterator[str]:
    """Report the submissions that became baselines, which have no rank, and the teams that got another name."""
    named: dict[tuple[str | None, str | None], datetime] = {}
    for history in phase.fold.submissions.values():
        for earlier, later in pairwise(history.events):
            if later.baseline and not earlier.baseline:
                yield (
                    f"submission {later.submission} of {later.team} was marked as a baseline on {minute(later.at)}"
                    f"{effect(phase, later.at)}"
                )
            if later.team != earlier.team:
                named.setdefault((earlier.team, later.team), later.at)
    for (before, after), at in named.items():
        yield f"team {before} has been called {after} since {minute(at)}"


def _reason(fold: PhaseFold, facts: SubmissionEvent) -> str | None:
    """Return what keeps a submission off the board by the rules at that time; before there are rules, what takes it off."""
    rules = fold.rules(facts.at)
    return membership.taken_off(facts) if rules is None else membership.kept_off(facts, rules)


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
