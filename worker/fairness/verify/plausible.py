"""Checks of the revealed fold scores that need no file: each must be possible, and they must agree with each other.

A score that passes them may still be invented. Only recomputing it from the submission's file excludes that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from scoring.engines import TOLERANCE
from scoring.printable import all_of
from scoring.tasks import TaskType
from worker.fairness.events import ScoreEvent
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

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
