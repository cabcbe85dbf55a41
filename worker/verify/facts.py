"""Checks that what is registered about a submission fits together: its facts, its scores, and the value that was shown.

The register ties events to a submission by a pseudonym. If a score could be under another submission's pseudonym, or a permanent fact could
change, one team could get the credit for another's submission.

A score that passes them may still be invented. Only recomputing it from the submission's file excludes that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from scoring.engines import TOLERANCE
from scoring.evaluate import tested, tested_positives
from scoring.printable import all_of, count_of, name_some
from scoring.randomness import test_parts
from scoring.tasks import TaskType
from worker.fairness.decisions import minute, team_of
from worker.fairness.events import ScoreEvent, SubmissionEvent
from worker.fairness.membership import ShownValue
from worker.fairness.places import PRIVATE, Place
from worker.verify.revealed import RevealedPhase
from worker.verify.timeline import CLOCK_SLACK
from worker.verify.verdict import CheckEnded, Verdict, believed, consistent, require

CLOCKS_APART = timedelta(hours=2)  # by which the clocks of EvalAI and of the worker may differ
NAMED = 20  # entries on no board that are listed
KEPT = {
    (Place.REFUSED, ""): "it is said to be refused",
    (Place.TRIAL, ""): "it is taken for a trial",
    (Place.NOT_COUNTED, PRIVATE): "it is said to be private",
}
"""Places that leave an entry on no board by what the organizers say of it alone, and why."""
FIXED = ("submission", "team_key", "submitted_at", "public_at_first")  # as first seen; these never change
ONCE_KNOWN = ("file", "content")
# a score repeats these as they were when it was registered
BOUND = ("submission", "team_key", "public_at_first", "own", "content")
BEST = 1.0  # of R2 and of F1
ONE_EXPLAINED_IN = 50  # folds of a task, but always one, may differ by one sample at the threshold of F1
WORST = {TaskType.REGRESSION: -math.inf, TaskType.CLASSIFICATION: 0.0}


def belong(phase: RevealedPhase) -> Verdict:
    """Check that facts and scores of every open entry fit together."""
    _check_openings(phase)
    for history in phase.replay.submissions.values():
        first_values: dict[str, object] = {}
        was_own = False
        for facts in history.events:
            who = f"submission {facts.submission}"
            require(
                facts.own or not was_own,
                f"{who} was registered as the organizers' own, and on {minute(facts.at)} as a participant's; it never can",
            )
            was_own = facts.own
            require(
                not (facts.answered and facts.refused),
                f"{who} is registered as answered with a score and as refused on {minute(facts.at)}",
            )
            again = phase.replay.submissions.get(phase.replay.entry_of(facts.superseded_by or 0) or "")
            require(
                again is None or _repeats(again.events[-1], facts),
                f"{who} is registered as run again as submission {facts.superseded_by}, which is of another team or file,"
                " or was not sent in the same way",
            )
            for name in (*FIXED, *ONCE_KNOWN):
                value = getattr(facts, name)
                if name in FIXED or value is not None or name in first_values:
                    require(
                        first_values.setdefault(name, value) == value,
                        f"the {name} of {who} changed on {minute(facts.at)}; it never can",
                    )
    rows = {task.version: task.row_set for task in phase.tasks}
    parts = _committed_parts(phase)
    for score in _scores(phase):
        _check_owner(phase, score)
        _check_shown(phase, score)
        for task, cell in score.cells.items():
            require(
                rows.setdefault(cell.version, cell.row_set) == cell.row_set,
                f"submission {score.submission} was scored on other rows than those of task {task}",
            )
            require(
                parts.setdefault((cell.version, score.protocol), cell.test_parts) == cell.test_parts,
                f"folds of submission {score.submission} are registered as equal that differ in task {task}, or the other way round",
            )
    if not phase.replay.submissions:
        return consistent("no submission is open")
    return consistent(
        "the scores and the value shown for every entry belong to its submission, team and file"
    )


def _repeats(later: SubmissionEvent, earlier: SubmissionEvent) -> bool:
    """Return whether a submission can be a later run of another one, of which it has all that was first seen but the number."""
    known = (
        {getattr(facts, name) for facts in (earlier, later)} - {None} for name in (*FIXED[1:], *ONCE_KNOWN)
    )
    return later.submission > earlier.submission and all(len(values) < 2 for values in known)


def _scores(phase: RevealedPhase) -> Iterator[ScoreEvent]:
    """Return all open scores, entry by entry."""
    return chain.from_iterable(history.events for history in phase.replay.scores.values())


def _check_openings(phase: RevealedPhase) -> None:
    """Find entries of another phase, entries that are both open and closed, and two entries of one submission."""
    replay = phase.replay
    for _, event in phase.events:
        require(
            event.phase in (None, phase.name),
            f"the event {event.kind} of {event.at.isoformat()} is of another phase",
        )
    for decided in replay.decisions.events:
        require(
            decided.closed_at is None or decided.closed_at <= decided.at,
            f"on {minute(decided.at)}, the board was registered as closed at a later time",
        )
    both = sorted(replay.private & {*replay.submissions, *replay.scores})
    require(not both, f"entry {both[:1]} was revealed as private in one place and in full in another")
    for entry, history in replay.submissions.items():
        submission = history.events[0].submission
        require(replay.entry_of(submission) == entry, f"submission {submission} is registered as two entries")


def _check_owner(phase: RevealedPhase, score: ScoreEvent) -> None:
    """Check that a score belongs to the submission of its entry, and is not from before it or before the rules."""
    replay = phase.replay
    facts = replay.submissions[score.entry].at(score.at) if score.entry in replay.submissions else None
    who = f"a score of {minute(score.at)} for submission {score.submission}"
    if facts is None or replay.rules(score.at) is None:
        before = "the submission" if facts is None else "the rules of the board"
        raise CheckEnded(f"{who} was registered before {before}")
    differing = [name for name in BOUND if getattr(score, name) != getattr(facts, name)]
    require(not differing, f"{who} has another {', '.join(differing)} than the register")


def _check_shown(phase: RevealedPhase, score: ScoreEvent) -> None:
    """Check that a shown value follows at its time; the ladders of private submissions are not fully open."""
    rules = phase.replay.rules(score.at)
    if not score.public_at_first and rules is not None and rules.ladder_step is not None:
        return
    shown, follows = (
        ShownValue(value=score.q_mean, counts=score.counts),
        phase.replay.shown_value(score, score.at),
    )
    require(
        shown == follows,
        f"submission {score.submission} was shown {_value(shown)} on {minute(score.at)}, follows {_value(follows)}",
    )


def _value(shown: ShownValue) -> str:
    value = "no value" if shown.value is None else f"{shown.value}"
    return value if shown.counts is None else f"{value} ({'counts' if shown.counts else 'does not count'})"


def _committed_parts(phase: RevealedPhase) -> dict[tuple[str, str], tuple[int, ...]]:
    """Return which folds have equal test parts, by the version of their task and the protocol; they are resampled together."""
    return {
        (task.version, name): test_parts(tested(task.row_set, task.groups, promise.protocol, promise.key))
        for name, promise in phase.promised.items()
        for task in phase.tasks
    }


def scores(phase: RevealedPhase) -> Verdict:
    """Check that every score was made on tasks and by a protocol with an earlier commitment."""
    for record in _scores(phase):
        moments = [
            promise.public.made_at
            for promise in phase.promises
            if (promise.protocol.hash, promise.manifest.versions) == (record.protocol, record.versions)
        ]
        who = f"submission {record.submission} was scored"
        require(moments, f"{who} on tasks or by a protocol without a commitment")
        require(
            record.at >= min(moments) - CLOCK_SLACK,
            f"{who} before there was a commitment to its tasks",
        )
    entries = all_of(len(phase.records), "entry", "entries")
    return _of_scores(phase, f"the scores of {entries} were made after a commitment to their tasks")


def possible(phase: RevealedPhase) -> Verdict:
    """Check that every fold score is possible, that there are as many as promised, and that equal files have equal scores."""
    scored: dict[tuple[str, ...], tuple[int, Sequence[float]]] = {}
    for record in _scores(phase):
        for task, cell in record.cells.items():
            _check_folds(phase, record, task)
            key = (record.content, record.protocol, task, cell.version)
            other, folds = scored.setdefault(key, (record.submission, cell.folds))
            require(
                compare_folds(phase, cell.version, record.protocol, cell.folds, folds)[0] <= TOLERANCE,
                f"submissions {other} and {record.submission} have two different scores of one content in task {task}",
            )
    entries = all_of(len(phase.records), "entry", "entries")
    return _of_scores(
        phase,
        f"the fold scores of {entries} are possible values, are as many as announced, and are the same for equal files",
    )


def _of_scores(phase: RevealedPhase, sentence: str) -> Verdict:
    return consistent(sentence if phase.records else "no score is open")


def _check_folds(phase: RevealedPhase, record: ScoreEvent, task: str) -> None:
    """Check the number of one task's fold scores, and that each is possible."""
    protocol, cell = phase.promised[record.protocol].protocol, record.cells[task]
    scores, who = np.array(cell.folds), f"in task {task}, submission {record.submission} has"
    require(len(scores) == protocol.folds, f"{who} {len(scores)} fold scores instead of {protocol.folds}")
    allowed, failed = min(protocol.recipe.max_failed_folds, protocol.folds - 1), int(np.isnan(scores).sum())
    require(failed <= allowed, f"{who} {failed} failed folds, where {allowed} are allowed")
    impossible = scores[(scores > BEST) | (scores < WORST[phase.types[cell.version]])]
    require(not impossible.size, f"{who} an impossible fold score ({', '.join(map(str, impossible[:1]))})")


def compare_folds(
    phase: RevealedPhase, version: str, protocol: str, computed: Sequence[float], published: Sequence[float]
) -> tuple[float, int]:
    """Compare fold scores of one content on one task.

    On another processor or with another engine, a sample at the threshold of F1 may count differently. That explains the scores of few
    folds, or of none.

    Returns:
        The largest difference in the folds that this does not explain, absolute up to 1 and relative beyond (R2 is unbounded below), or
        infinity if only one of two scores failed; and the number of folds that it explains.
    """
    ours, theirs = np.array(computed), np.array(published)
    if ours.shape != theirs.shape or not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return math.inf, 0
    off = np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))
    explained = off > TOLERANCE
    if explained.any():
        explained &= off <= _steps(phase, version, protocol)
        explained &= explained.sum() <= max(1, len(off) // ONE_EXPLAINED_IN)
    return float(np.nanmax(off[~explained], initial=0.0)), int(explained.sum())


def _steps(phase: RevealedPhase, version: str, protocol: str) -> NDArray[np.float64] | float:
    """Return by how much one sample can change the score of each fold.

    F1 = 2 TP / (P + TP + FP) changes by at most 2 / P, the positive samples of the test part.
    """
    if phase.types[version] is not TaskType.CLASSIFICATION:
        return 0.0
    for task in phase.tasks:
        if task.version == version:
            promise = phase.promised[protocol]
            positives = tested_positives(task, promise.protocol, promise.key)
            return 2 / np.maximum(1, positives)
    return BEST  # its labels are not published


def received(phase: RevealedPhase) -> Iterator[Verdict]:
    """Check when open entries were received: after the first commitment, and not before they were sent.

    EvalAI gives numbers and times together, so times that run against the numbers by minutes are told, and those of one team in any case:
    they decide which submission is a team's last.
    """
    begun = phase.repository.commitments[0].made_at
    sent: list[tuple[int, datetime, int | None]] = []
    for history in phase.replay.submissions.values():
        first = history.events[0]
        require(
            first.at >= begun - CLOCK_SLACK,
            f"submission {first.submission} was registered on {minute(first.at)}, before the first commitment",
        )
        if first.submitted_at is not None:
            require(
                first.submitted_at <= first.at + CLOCKS_APART,
                f"submission {first.submission} was registered on {minute(first.at)}, but is said to have been sent on"
                f" {minute(first.submitted_at)}",
            )
            sent.append((first.submission, first.submitted_at, first.team_key))
    sent.sort()
    following = [(pair, CLOCK_SLACK) for pair in pairwise(sent)]
    by_team = pairwise(sorted(sent, key=lambda one: one[2] or 0))
    following += [((one, other), timedelta()) for one, other in by_team if one[2] == other[2]]
    found = dict.fromkeys(
        f"submission {later} ({minute(then)}) after submission {earlier} ({minute(before)})"
        for ((earlier, before, _), (later, then, _)), slack in following
        if then < before - slack
    )
    if backward := list(found):
        yield believed(
            f"by the times that are registered, these were sent earlier than a submission with a lower number: {name_some(backward)}. Which"
            " submission of a team was the last is decided by these times, and has to be taken on trust"
        )


def placed(phase: RevealedPhase) -> Verdict:
    """Count the entries in each place, and list those on no board without a decision.

    Raises:
        CheckEnded: If nothing that was published says why an entry is not on the board.
    """
    numbers, listed = Counter(placed.place for placed in phase.places.values()), []
    for entry, placed in phase.places.items():
        first, last = phase.replay.submissions[entry].events[0], placed.facts
        require(
            placed.place is not Place.NOWHERE,
            f"submission {first.submission} is not on the board, and nothing published says why",
        )
        is_closed = not last.answered and placed.by is not None and phase.replay.entry_of(placed.by) is None
        kept = KEPT.get((placed.place, placed.why))
        if kept is None and placed.place is not Place.OPEN and not is_closed:
            continue
        why = "scored, not answered" if entry in phase.replay.scores else "received, not scored"
        why += f", run again as submission {placed.by}, which is not open" if is_closed else ""
        why = kept or ("it has no score on the present tasks" if last.answered else why)
        days = (phase.document.revealed_at - first.at).total_seconds() / 86_400
        listed.append(
            f"submission {first.submission} of {team_of(first)} ({why}; registered on {minute(first.at)},"
            f" {days:.1f} days before the reveal)"
        )
    if not listed:
        words = ", ".join(f"{numbers[place]} {place}" for place in Place if place in numbers)
        return consistent(f"every open entry has one place: {words or 'there are none'}")
    return believed(
        f"{count_of(len(listed), 'entry is', 'entries are')} on no board, without a decision: {name_some(listed, NAMED)}. That nothing else"
        f" kept {'it' if len(listed) == 1 else 'them'} back is taken on trust"
    )
