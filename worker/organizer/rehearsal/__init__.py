"""The rehearsal: the real configuration, tasks and folds, and the real worker, against an EvalAI of our own."""

from __future__ import annotations

from worker.organizer.rehearsal.rehearsal import rehearse
from worker.organizer.rehearsal.report import PhaseReport, Rehearsal, RehearsedSubmission

__all__ = ["PhaseReport", "Rehearsal", "RehearsedSubmission", "entries", "rehearse"]
