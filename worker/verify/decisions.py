"""The organizers' decisions during a phase, and whether a scored submission counts: its place on the final board, or what kept it off."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import takewhile

from leaderboard import DecisionKind
from leaderboard.ranking import counted, row_key
from leaderboard.rendering import Row, rank_changes
from scoring.printable import name_some
from worker.fairness import membership
from worker.fairness.decisions import decisions as decided
from worker.fairness.decisions import minute
from worker.fairness.events import SubmissionEvent
from worker.fairness.replay import PhaseReplay
from worker.verify.revealed import RevealedPhase
from worker.verify.timeline import SLACK
from worker.verify.verdict import Verdict, believed, consistent, not_revealed, require


def decisions(phase: RevealedPhase) -> Iterator[Verdict]:
    """Report the rules at the start, and the organizers' decisions since: rules, tasks, removals, late baselines, the close."""
    first = phase.replay.decisions.events[0]
    rules = ", ".join(
        f"{name}: {json.dumps(value)}" for name, value in first.rules.model_dump(mode="json").items()
    )
    yield consistent(f"its rules at the start: {rules}")
    sentences = []
    for decision in decided(phase.replay):
        changed = "" if decision.kind is DecisionKind.OTHER else effect(phase, decision.at)
        sentences.append(f"{decision.text} on {minute(decision.at)}{because(decision.reason)}{changed}")
    sentences += _after_the_close(phase.replay)
    if not sentences:
        yield consistent("its rules never changed, and no entry was taken off the board")
        return
    yield consistent(f"decisions by the organizers: {'; '.join(sentences)}")


def because(reason: str) -> str:
    """Return a decision's reason in parentheses, if there is one."""
    return f" ({reason})" if reason else ""


def effect(phase: RevealedPhase, moment: datetime) -> str:
    """Return what the first board after a decision changed in the ranks; nothing if no rank changed."""
    changes = rank_changes(phase.boards, moment)
    return f", which changed these ranks: {name_some(changes)}" if changes else ""


def _after_the_close(replay: PhaseReplay) -> Iterator[str]:
    """Report the submissions that would count if the board had not been closed before."""
    rules, closed = replay.rules(replay.end), replay.frozen_at
    if rules is None or closed is None:
        return
    for entry, history in replay.submissions.items():
        facts, then = history.events[-1], history.at(closed)
        counts = membership.kept_off(facts, rules) is None and replay.score(entry, replay.end) is not None
        if counts and (then is None or not then.answered or replay.score(entry, closed) is None):
            yield f"submission {facts.submission} of {facts.team} was answered after the board was closed"


def counting(phase: RevealedPhase, entry: str, before: str = "") -> Verdict:
    """Return where a scored submission is on the final board, which other one counts for its team, or what takes it off.

    Args:
        phase: The revealed phase.
        entry: The submission's pseudonym; its facts are open.
        before: What to say first: of which submissions it is a later run.

    Raises:
        Fault: If it should be on the board, or the organizers took it off.
        LookupError, ValueError, TypeError, AttributeError, RecursionError: If what was revealed has another form.
    """
    replay = phase.replay
    if (needed := replay.unknown_phase) is not None:
        return not_revealed(f"its rules ask for a score in phase {needed}, which has not been revealed")
    facts = replay.submissions[entry].events[-1]
    who = f"{before}submission {facts.submission} of team {facts.team}"
    if facts.superseded_by is None or facts.answered:
        return _counting(phase, facts, who)
    again = f"{who} was run again at EvalAI as submission {facts.superseded_by}"
    following = replay.entry_of(facts.superseded_by)
    if following is None:
        return believed(f"{again}. That one has not been revealed: it was refused, or is private")
    return counting(phase, following, f"{again}. ")


def _counting(phase: RevealedPhase, facts: SubmissionEvent, who: str) -> Verdict:
    replay = phase.replay
    rows = {row.submission: row for row in phase.final_rows}
    if facts.submission in rows:
        return consistent(f"{who} counts on the final board {_at(rows[facts.submission])}")
    rules = replay.decisions.events[-1].rules
    if (decided := _decided(replay, facts)) is not None:
        return consistent(f"{who} is not on the final board: {decided}")
    reason = membership.kept_off(facts, rules)
    require(reason in (None, membership.PRIVATE), f"{who} is not on the final board: {reason}")
    snapshot = replay.snapshot(replay.closed_at)
    entries = () if snapshot is None else snapshot.entries
    ours = next((entry for entry in entries if entry.submission == facts.submission), None)
    if snapshot is None or ours is None:
        return _late(phase, facts, who)
    if not ours.public:
        return consistent(f"{who} was sent as private: it is on no board")
    counts = {row_key(row.entry): row.entry.submission for row in counted(snapshot)}[row_key(ours)]
    return consistent(
        f"{who} does not count: submission {counts} of the same team counts {_at(rows[counts])}; by the rules, the"
        f" {snapshot.rules.selection.value} one counts"
    )


def _decided(replay: PhaseReplay, facts: SubmissionEvent) -> str | None:
    """Return how the organizers took a submission off the board: what they decided, when and why; None if they did not."""
    events = replay.submissions[facts.entry].events
    if facts.removed is not None:
        at = _since([event.at for event in events], [event.removed is not None for event in events])
        by_itself = replay.registered[facts.entry].events[-1].removed is not None
        what = "it" if by_itself else "its team with all its submissions"
        return f"the organizers disqualified {what} on {minute(at)}{because(facts.removed)}"
    if facts.public_at_first and not facts.public:
        at = _since([event.at for event in events], [not event.public for event in events])
        reason = next(event.reason for event in events if event.at == at)
        return f"the organizers made it private on {minute(at)}{because(reason)}"
    return None


def _since(moments: Sequence[datetime], holds: Sequence[bool]) -> datetime:
    """Return the moment since when something has held without a break until the last moment."""
    return list(takewhile(lambda place: place[1], zip(reversed(moments), reversed(holds), strict=True)))[-1][
        0
    ]


def _late(phase: RevealedPhase, facts: SubmissionEvent, who: str) -> Verdict:
    """Return the verdict on a submission that is not on the final board although nothing keeps it off: was it answered too late?

    A close is registered at once. A backdated one cannot exclude what was answered before it was registered.
    """
    replay, closed_at = phase.replay, phase.replay.closed_at
    answered_at = next(event.at for event in replay.submissions[facts.entry].events if event.answered)
    decided_at = next(
        (event.at for event in replay.decisions.events if event.frozen_at == closed_at), closed_at
    )
    require(
        answered_at > closed_at and (decided_at - closed_at <= SLACK or answered_at >= decided_at),
        f"{who} is not on the final board, and nothing published says why",
    )
    sentence = (
        f"{who} is on no board: the board was closed on {minute(closed_at)}, and the submission was answered on"
        f" {minute(answered_at)}"
    )
    if replay.scores[facts.entry].events[0].at > closed_at:
        return consistent(sentence)
    return believed(f"{sentence}; it had been scored before that")


def _at(row: Row) -> str:
    """Describe the rank of a row."""
    if row.rank is not None:
        return f"at rank {row.rank} with mean Q {row.q_text}"
    why = "as a baseline" if row.baseline else "out of competition"
    return f"without a rank ({why}) with mean Q {row.q_text}"
