"""Checks that what is registered about a submission fits together: its facts, its scores, and the value that was shown.

The register ties events to a submission by a pseudonym. If a score could be under another submission's pseudonym, or a permanent fact could
change, one team could get the credit for another's submission.

A score that passes them may still be invented. Only recomputing it from the submission's file excludes that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from scoring.engines import TOLERANCE
from scoring.printable import all_of
from scoring.protocol import ids_hash
from scoring.tasks import TaskType
from worker.fairness import membership
from worker.fairness.decisions import minute
from worker.fairness.events import ChallengeEvent, ScoreEvent
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

CHECK = "facts"
FIXED = ("submission", "team_key", "submitted_at", "public_at_first")  # as first seen; these never change
ONCE_KNOWN = ("file", "content")
# a score repeats these as they were when it was registered
BOUND = ("submission", "team_key", "team", "public_at_first", "own")


def belong(phase: RevealedPhase) -> Verdict:
    """Check that facts and scores of every open entry fit together."""
    for look in _LOOKS:
        for fault in look(phase):
            return phase.contradicted(CHECK, fault)
    if not phase.fold.submissions:
        return phase.consistent(CHECK, "no submission is open")
    return phase.consistent(
        CHECK,
        "the scores and the value shown for every entry belong to its submission, team and file",
    )


def _openings(phase: RevealedPhase) -> Iterator[str]:
    """Find entries of another phase, entries that are both open and closed, and two entries of one submission."""
    fold = phase.fold
    for _, event in phase.events:
        if not isinstance(event, ChallengeEvent) and event.phase != phase.name:
            yield f"the event {event.kind} of {event.at.isoformat()} is of another phase"
    for entry in sorted(fold.private & {*fold.submissions, *fold.scores}):
        yield f"entry {entry} was revealed as private in one place and in full in another"
    for entry, history in fold.submissions.items():
        if fold.entry_of(history.events[0].submission) != entry:
            yield f"submission {history.events[0].submission} is registered as two entries"


def _changes(phase: RevealedPhase) -> Iterator[str]:
    """Find permanent facts that have changed."""
    for history in phase.fold.submissions.values():
        known: dict[str, object] = {}
        for facts in history.events:
            if facts.answered and facts.refused:
                yield f"submission {facts.submission} is registered as answered with a score and as refused on {minute(facts.at)}"
            for name in (*FIXED, *ONCE_KNOWN):
                value = getattr(facts, name)
                if (name in FIXED or value is not None or name in known) and known.setdefault(
                    name, value
                ) != value:
                    yield f"the {name} of submission {facts.submission} changed on {minute(facts.at)}; it never can"


def _scores(phase: RevealedPhase) -> Iterator[str]:
    """Find scores that do not belong to the submission of their entry, and those from before it or before the rules."""
    fold = phase.fold
    for entry, history in fold.scores.items():
        for score in history.events:
            facts = fold.submissions[entry].at(score.at) if entry in fold.submissions else None
            who = f"a score of {minute(score.at)} for submission {score.submission}"
            if facts is None or fold.rules(score.at) is None:
                yield f"{who} was registered before {'the submission' if facts is None else 'the rules of the board'}"
                return
            differing = [name for name in BOUND if getattr(score, name) != getattr(facts, name)]
            differing += [
                name
                for name in ONCE_KNOWN
                if getattr(facts, name) not in (None, getattr(score, name) or getattr(facts, name))
            ]
            if differing:
                yield f"{who} has another {differing[0]} than the register"


def _shown(phase: RevealedPhase) -> Iterator[str]:
    """Find shown values that do not follow at their time; the ladders of private submissions are not fully open."""
    fold = phase.fold
    for history in fold.scores.values():
        for moment, score in zip(history.moments, history.events, strict=True):
            if not score.public_at_first and (rules := fold.rules(moment)) and rules.ladder_step is not None:
                continue
            follows = fold.shown_value(score, moment)
            if (score.q_mean, score.counts) != (follows.value, follows.counts):
                yield (
                    f"submission {score.submission} was shown {_value(score.q_mean, score.counts)} on {minute(moment)},"
                    f" follows {_value(follows.value, follows.counts)}"
                )


def _value(q_mean: float | None, counts: bool | None) -> str:
    value = "no value" if q_mean is None else f"{q_mean}"
    return value if counts is None else f"{value} ({'counts' if counts else 'does not count'})"


def _bases(phase: RevealedPhase) -> Iterator[str]:
    """Find decisions whose epsilon is not the one of their protocol."""
    for event in phase.fold.decisions.events:
        if event.epsilon != phase.protocol_of(event).recipe.epsilon:
            yield f"the epsilon registered on {minute(event.at)} is not the one of the protocol"


def _rows(phase: RevealedPhase) -> Iterator[str]:
    """Find cells whose rows are not those of the task; they decide which tasks are resampled together."""
    known: dict[tuple[str, str], str] = {}
    for task in phase.manifest.tasks:
        if task.file in phase.labels:
            rows = ids_hash(tuple(identifier for identifier, _ in phase.labels[task.file]))
            known[task.identifier, task.version] = rows
    for history in phase.fold.scores.values():
        for score in history.events:
            for name, cell in score.cells.items():
                if known.setdefault((name, cell.version), cell.row_set) != cell.row_set:
                    yield f"submission {score.submission} was scored on other rows than those of task {name}"


_LOOKS: tuple[Callable[[RevealedPhase], Iterator[str]], ...] = (
    _openings,
    _changes,
    _scores,
    _bases,
    _shown,
    _rows,
)


def unscored(phase: RevealedPhase) -> Verdict | None:
    """Report the submissions that would count in the end if they had scores on the final tasks; None if there are none."""
    fold = phase.fold
    rules = fold.rules(fold.end)
    if rules is None:
        return None
    without = [
        str(history.events[-1].submission)
        for entry, history in fold.submissions.items()
        if membership.kept_off(history.events[-1], rules) is None and fold.score(entry, fold.end) is None
    ]
    if not without:
        return None
    return phase.believed(
        "unscored",
        (
            f"submission {', '.join(without)} has no score on the final tasks and is on no board; that it could not be"
            " scored is taken on trust"
        ),
    )


BEST = 1.0  # of R2 and of F1
WORST = {TaskType.REGRESSION: -math.inf, TaskType.CLASSIFICATION: 0.0}


def possible(phase: RevealedPhase) -> Verdict:
    """Check that every fold score is possible, that there are as many as promised, and that equal files have equal scores."""
    scored: dict[tuple[str, ...], tuple[int, Sequence[float]]] = {}
    for submission, records in phase.records.items():
        for record in records:
            for task, cell in record.cells.items():
                if (fault := _fault(phase, record, task, cell.folds)) is not None:
                    return phase.contradicted(
                        "possible", f"submission {submission} has {fault} in task {task}"
                    )
                key = (record.content, record.protocol, task, cell.version)
                other, folds = scored.setdefault(key, (submission, cell.folds))
                if largest_difference(cell.folds, folds) > TOLERANCE:
                    return phase.contradicted(
                        "possible",
                        f"submissions {other} and {submission} have two different scores of one content in task {task}",
                    )
    if not phase.records:
        return phase.consistent("possible", "no score is open")
    return phase.consistent(
        "possible",
        (
            f"the fold scores of {all_of(len(phase.records), 'entry', 'entries')} are possible values, are as many as announced, and"
            " are the same for equal files"
        ),
    )


def _fault(phase: RevealedPhase, record: ScoreEvent, task: str, folds: Sequence[float]) -> str | None:
    """Return what is impossible about one task's fold scores."""
    protocol, scores = phase.protocol_of(record), np.array(folds)
    if len(folds) != protocol.folds:
        return f"{len(folds)} fold scores instead of {protocol.folds}"
    allowed = min(protocol.recipe.max_failed_folds, protocol.folds - 1)
    if (failed := int(np.isnan(scores).sum())) > allowed:
        return f"{failed} failed folds, where {allowed} are allowed,"
    impossible = scores[(scores > BEST) | (scores < WORST[phase.types_of(record)[task]])]
    return f"an impossible fold score of {impossible[0]:.6g}" if impossible.size else None


def largest_difference(computed: Sequence[float], published: Sequence[float]) -> float:
    """Return the largest difference: absolute up to 1, relative beyond (R2 is unbounded below); infinite if only one of two failed."""
    ours, theirs = np.array(computed), np.array(published)
    if ours.shape != theirs.shape or not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return float("inf")
    return float(np.nanmax(np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs)), initial=0.0))
