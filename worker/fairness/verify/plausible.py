"""Checks of the revealed fold scores that need no file: each must be possible, and they must agree with each other.

A score that passes them may still be invented. Only recomputing it from the submission's file excludes that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from scoring.engines import TOLERANCE
from scoring.printable import all_of
from scoring.protocol import Protocol
from scoring.tasks import TaskType
from worker.fairness.events import ScoreEvent
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

BEST = 1.0  # of R2 and of F1
WORST = {TaskType.REGRESSION: -math.inf, TaskType.CLASSIFICATION: 0.0}


def possible(phase: RevealedPhase) -> Verdict:
    """Check that every fold score is possible, that there are as many as promised, and that no entry has two scores."""
    by_content: dict[tuple[str, ...], tuple[int, Sequence[float]]] = {}
    contents: dict[int, str] = {}
    for submission, records in phase.records.items():
        for record in records:
            content = record.content
            if contents.setdefault(submission, content) != content:
                return phase.contradicted(
                    "possible", f"submission {submission} was scored with two different contents"
                )
            for task, cell in record.cells.items():
                folds = cell.folds
                fault = _fault(phase, record, task, folds)
                if fault:
                    return phase.contradicted(
                        "possible", f"submission {submission} has {fault} in task {task}"
                    )
                key = (content, record.protocol, task, cell.version)
                other, known = by_content.setdefault(key, (submission, folds))
                if largest_difference(folds, known) > TOLERANCE:
                    return phase.contradicted("possible", _two_scores(submission, other, task))
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
    protocol, types = phase.protocol_of(record), phase.types_of(record)
    if len(folds) != protocol.folds:
        return f"{len(folds)} fold scores instead of {protocol.folds}"
    failed = sum(not math.isfinite(score) for score in folds)
    if failed > _may_fail(protocol):
        return f"{failed} failed folds, where {_may_fail(protocol)} are allowed,"
    worst = WORST[types[task]]
    for score in folds:
        if math.isfinite(score) and not worst <= score <= BEST:
            return f"an impossible fold score of {score:.6g}"
    return None


def _may_fail(protocol: Protocol) -> int:
    return min(protocol.recipe.max_failed_folds, protocol.folds - 1)


def _two_scores(submission: int, other: int, task: str) -> str:
    if submission == other:
        return f"submission {submission} has two different scores of one version of task {task}"
    return f"submissions {other} and {submission} have the same content and different scores in task {task}"


def largest_difference(computed: Sequence[float], published: Sequence[float]) -> float:
    """Return the largest difference: absolute up to 1, relative beyond (R2 is unbounded below); infinite if only one of two failed."""
    ours, theirs = np.array(computed), np.array(published)
    if ours.shape != theirs.shape or not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return float("inf")
    return float(np.nanmax(np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs)), initial=0.0))
