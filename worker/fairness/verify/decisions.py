"""The organizers' decisions during a phase: when, why, and which submissions they kept off the board."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime
from itertools import pairwise

from leaderboard import Board
from leaderboard.ranking import board as boards
from worker.fairness import membership
from worker.fairness.events import PhaseEvent, SubmissionEvent
from worker.fairness.fold import PhaseFold
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

CHECK = "decisions"


def decisions(phase: RevealedPhase) -> Verdict:
    """Report the organizers' decisions: rules, tasks, removals, choices, hidden teams, the close."""
    fold = phase.fold
    sentences = [
        *_changes(fold),
        *_removals(fold),
        *_marks(fold),
        *_hidden(phase),
        *_after_the_close(fold),
    ]
    sentences += [f"on {minute(note.at)} it was noted: {note.text.rstrip('.')}" for note in fold.notes]
    if not sentences:
        return phase.consistent(CHECK, "its rules never changed, and no entry was taken off the board")
    return phase.consistent(CHECK, f"decisions by the organizers: {'; '.join(sentences)}")


def minute(moment: datetime) -> str:
    """Write a time to the minute."""
    return moment.isoformat()[:16]


def _changes(fold: PhaseFold) -> Iterator[str]:
    for earlier, later in pairwise(fold.decisions.events):
        changes = [*_rules(earlier, later), *_scoring(fold, earlier, later)]
        if later.chosen != earlier.chosen:
            chosen = [str(pk) for team, pk in later.chosen.items() if earlier.chosen.get(team) != pk]
            changes.append(
                f"the organizers chose which submission of a team counts ({', '.join(chosen) or 'none anymore'})"
            )
        if later.frozen_at != earlier.frozen_at:
            changes.append(_close(later))
        if changes:
            reason = f" ({later.reason})" if later.reason else ""
            yield f"{', '.join(changes)} on {minute(later.at)}{reason}"


def _rules(earlier: PhaseEvent, later: PhaseEvent) -> Iterator[str]:
    names = earlier.rules.changed(later.rules)
    before, after = asdict(earlier.rules), asdict(later.rules)
    if names:
        values = ", ".join(
            f"{name}: {json.dumps(before[name])} to {json.dumps(after[name])}" for name in names
        )
        yield f"the rules {', '.join(names)} changed ({values})"


def _scoring(fold: PhaseFold, earlier: PhaseEvent, later: PhaseEvent) -> Iterator[str]:
    """Report a change of tasks or protocol."""
    if (later.tasks, later.protocol) == (earlier.tasks, earlier.protocol):
        return
    again = any(scores.moments[0] < later.at for scores in fold.scores.values())
    then = ", and all submissions were scored again" if again else " before the first score"
    yield f"the tasks or the protocol changed{then}"


def _close(decided: PhaseEvent) -> str:
    if decided.frozen_at is None:
        return "the board was reopened"
    closed, registered = minute(decided.frozen_at), minute(decided.at)
    return "the board was closed" if closed == registered else f"the board was closed as of {closed}"


def _removals(fold: PhaseFold) -> Iterator[str]:
    for history in fold.submissions.values():
        for earlier, later in pairwise([None, *history.events]):
            if later is None:
                continue
            who, when = f"submission {later.submission} of {later.team}", minute(later.at)
            if earlier is not None and membership.taken_off(earlier) and not membership.taken_off(later):
                why = f" ({later.reason})" if later.reason else ""
                yield f"{who} was put back on {when}{why}"
            reason = _reason(fold, later)
            before = None if earlier is None else _reason(fold, earlier)
            had_place = earlier is not None and before is None
            if reason and (had_place or membership.taken_off(later) not in (None, before)):
                yield f"{who} was taken off on {when}: {reason}"


def _marks(fold: PhaseFold) -> Iterator[str]:
    """Report the submissions that became baselines, which have no rank, and the teams that got another name."""
    named: dict[tuple[str | None, str | None], datetime] = {}
    for history in fold.submissions.values():
        for earlier, later in pairwise(history.events):
            if later.baseline and not earlier.baseline:
                yield f"submission {later.submission} of {later.team} was marked as a baseline on {minute(later.at)}"
            if later.team != earlier.team:
                named.setdefault((earlier.team, later.team), later.at)
    for (before, after), at in named.items():
        yield f"team {before} has been called {after} since {minute(at)}"


def _reason(fold: PhaseFold, facts: SubmissionEvent) -> str | None:
    """Return what keeps a submission off the board by the rules at that time; before there are rules, what takes it off."""
    rules = fold.rules(facts.at)
    return membership.taken_off(facts) if rules is None else membership.kept_off(facts, rules)


def _hidden(phase: RevealedPhase) -> Iterator[str]:
    """Report the teams that the final rules hide, and the places that this has cost them."""
    rules = phase.fold.rules(phase.fold.end)
    teams = () if rules is None else rules.hidden_teams
    board = without_hiding(phase) if teams else None
    for row in () if board is None else board.standings:
        if row.team in teams:
            yield f"the rules hide {row.team}, which would be at rank {row.rank} with mean Q {row.q_mean:.3f}"


def without_hiding(phase: RevealedPhase) -> Board | None:
    """Return the final board as it would be if no team were hidden; None if it cannot be computed."""
    end = phase.fold.end
    snapshot = None if phase.fold.unknown_phase is not None else phase.fold.snapshot(end)
    if snapshot is None:
        return None
    shown = replace(snapshot, rules=replace(snapshot.rules, hidden_teams=frozenset()))
    return boards.next_board(shown, (), at=end, replicates=1)


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
