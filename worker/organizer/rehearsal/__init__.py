"""The rehearsal: the real configuration, tasks and folds, and the real worker, against an EvalAI of our own."""

from __future__ import annotations

from worker.organizer.rehearsal.course import rehearse
from worker.organizer.rehearsal.verdict import PhaseReport, Played, Rehearsal

__all__ = ["PhaseReport", "Played", "Rehearsal", "entries", "rehearse"]
