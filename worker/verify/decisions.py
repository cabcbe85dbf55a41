"""The organizers' decisions during a phase, and whether a scored submission counts: its place on the final board, or what kept it off."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice, takewhile

from leaderboard import Decision, DecisionKind
from leaderboard.rendering import rank_changes
from scoring.printable import name_some
from worker.fairness.decisions import TAKEN_OFF, minute, team_of
from worker.fairness.decisions import decisions as decided
from worker.fairness.disclosure import reveal_path
from worker.fairness.events import SubmissionEvent
from worker.fairness.places import LATE, PRIVATE, Place
from worker.fairness.replay import PhaseReplay
from worker.verify.commits import times_added
from worker.verify.revealed import RevealedPhase
from worker.verify.timeline import SLACK
from worker.verify.verdict import CheckEnded, Verdict, believed, consistent, not_revealed, require


def decisions(phase: RevealedPhase) -> Iterator[Verdict]:
    """Report the rules at the start, and the organizers' decisions since: rules, tasks, removals, late baselines, the close."""
    first = phase.replay.decisions.events[0]
    rules = ", ".join(
        f"{name}: {json.dumps(value)}" for name, value in first.rules.model_dump(mode="json").items()
    )
    yield consistent(f"its rules at the start: {rules}")
    sentences = []
    for decision in decided(phase.replay):
        changes = [] if decision.kind is DecisionKind.OTHER else rank_changes(phase.boards, decision.at)
        effect = f" (on the next board, these ranks changed: {name_some(changes)})" if changes else ""
        sentences.append(f"{told(decision)}{effect}")
    sentences += [  # they would count if the board had not been closed before
        f"submission {placed.facts.submission} of {team_of(placed.facts)} was answered after the board was closed"
        for placed in phase.places.values()
        if (placed.place, placed.why) == (Place.NOT_COUNTED, LATE)
    ]
    if late := list(_sent_after_the_reveal(phase)):
        sentences.append(
            f"these count, although they were sent when its tasks were public: {name_some(late)}"
        )
    if not sentences:
        yield consistent("its rules never changed, and no entry was taken off the board")
        return
    yield consistent(f"what was decided or happened: {'; '.join(sentences)}")


def _sent_after_the_reveal(phase: RevealedPhase) -> Iterator[str]:
    """Yield the submissions that count and were sent after the phase's first reveal, which a plain folder does not show."""
    path = reveal_path(phase.name)
    for _, content in islice(phase.repository.versions(path), 1):
        for revealed_at in times_added(path, b"", content):
            for placed in phase.places.values():
                facts = placed.facts
                if placed.place is Place.COUNTS and facts.submitted_at and facts.submitted_at > revealed_at:
                    yield f"submission {facts.submission} of {team_of(facts)}, on {minute(facts.submitted_at)}"


def told(decision: Decision) -> str:
    """Return a decision with its time and its reason."""
    return f"{decision.text} on {minute(decision.at)}{because(decision.reason)}"


def because(reason: str) -> str:
    """Return a decision's reason in parentheses, if there is one."""
    return f" ({reason})" if reason else ""


AS_A_TRIAL = (
    "the organizers have registered your submission as a trial of their own: it is on no board. If you are not one of them, that is false,"
    " and this receipt proves that they answered you"
)
"""What the receipt of a trial is told."""
_UNEXPLAINED = {
    Place.TRIAL: TAKEN_OFF[Place.TRIAL],
    Place.OPEN: "its answer was taken back, or it has no score on the present tasks",
}
"""Places that an answered submission of a participant cannot have."""


def counting(phase: RevealedPhase, entry: str, before: str = "") -> Verdict:
    """Return where a scored submission is on the final board, which other one counts for its team, or what takes it off.

    Args:
        phase: The revealed phase.
        entry: The submission's pseudonym; its facts are open.
        before: What to say first: of which submissions it is a later run.

    Raises:
        CheckEnded: If nothing published says why it is not on the board, or it counts and is not there.
        LookupError, ValueError, TypeError, AttributeError, RecursionError: If what was revealed has another form.
    """
    replay = phase.replay
    if (needed := replay.unknown_phase) is not None:
        return not_revealed(f"its rules ask for a score in phase {needed}, which has not been revealed")
    placed = phase.places[entry]
    facts, by = placed.facts, placed.by
    who = f"{before}submission {facts.submission} of team {facts.team}"
    if by is not None and not facts.answered:
        again = f"{who} was run again at EvalAI as submission {by}"
        following = replay.entry_of(by)
        if following is None:
            return believed(f"{again}. That one has not been revealed: it was refused, or is private")
        return counting(phase, following, f"{again}; ")
    if placed.place is Place.COUNTS:
        return consistent(f"{who} counts on the final board {_at(phase, facts.submission)}")
    if placed.place is Place.REMOVED:
        return consistent(f"{who} is not on the final board: {_removed(replay, facts)}")
    if by is not None:
        rule = phase.rules.selection.value
        return consistent(
            f"{who} does not count: submission {by} of the same team counts {_at(phase, by)}; by the rules, the {rule} one counts"
        )
    if placed.place is Place.TRIAL and replay.registered[entry].events[0].own:
        return believed(AS_A_TRIAL)
    if placed.why == PRIVATE:
        return consistent(f"{who} was sent as private: it is on no board")
    if placed.why == LATE:
        return _late(phase, facts, who)
    reason = _UNEXPLAINED.get(placed.place, "nothing published says why")
    raise CheckEnded(f"{who} is not on the final board: {reason}")


def _removed(replay: PhaseReplay, facts: SubmissionEvent) -> str:
    """Return how the organizers took a submission off the board: what they decided, when and why."""
    events = replay.submissions[facts.entry].until(facts.at)
    if facts.removed is not None:
        at = _since(events, [event.removed is not None for event in events])
        registered = replay.registered[facts.entry].at(facts.at)
        what = "it" if registered and registered.removed is not None else "its team with all its submissions"
        return f"the organizers disqualified {what} on {minute(at)}{because(facts.removed)}"
    at = _since(events, [not event.public for event in events])
    reason = next(event.reason for event in events if event.at == at)
    return f"the organizers made it private on {minute(at)}{because(reason)}"


def _since(newest_first: Sequence[SubmissionEvent], holds: Sequence[bool]) -> datetime:
    """Return the moment since when something has held without a break."""
    return list(takewhile(lambda pair: pair[1], zip(newest_first, holds, strict=True)))[-1][0].at


def _late(phase: RevealedPhase, facts: SubmissionEvent, who: str) -> Verdict:
    """Return the verdict on a submission that was answered too late.

    A close is registered at once. A backdated one cannot exclude what was answered before it was registered.
    """
    replay, ends_at = phase.replay, phase.replay.ends_at
    answered_at = replay.answered_at[facts.entry]
    decided_at = next((event.at for event in replay.decisions.events if event.closed_at == ends_at), ends_at)
    require(
        decided_at - ends_at <= SLACK or answered_at >= decided_at,
        f"{who} is not on the final board, and nothing published says why",
    )
    sentence = (
        f"{who} is on no board: the board was closed on {minute(ends_at)}, and the submission was answered on"
        f" {minute(answered_at)}"
    )
    if replay.scores[facts.entry].events[0].at > ends_at:
        return consistent(sentence)
    return believed(f"{sentence}; it had been scored before that")


def _at(phase: RevealedPhase, submission: int) -> str:
    """Describe the rank of a submission on the last board."""
    row = phase.final_rows.get(submission)
    if row is None:
        raise CheckEnded(f"submission {submission} counts, but is not on the last board")
    if row.rank is not None:
        return f"at rank {row.rank} with mean Q {row.q_text}"
    why = "as a baseline" if row.baseline else "out of competition"
    return f"without a rank ({why}) with mean Q {row.q_text}"
