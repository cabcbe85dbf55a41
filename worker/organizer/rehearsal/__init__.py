"""The rehearsal: the real configuration, tasks, folds and worker, against a sandbox instead of EvalAI."""

from __future__ import annotations

from worker.organizer.rehearsal.folder import RehearsalFolder, removed_if_refused
from worker.organizer.rehearsal.rehearsal import play, rehearse
from worker.organizer.rehearsal.report import PhaseReport, Rehearsal, RehearsedSubmission

__all__ = [
    "PhaseReport",
    "Rehearsal",
    "RehearsalFolder",
    "RehearsedSubmission",
    "entries",
    "play",
    "rehearse",
    "removed_if_refused",
]
