"""Verification: check that a public repository shows what was committed to, with nothing but that repository."""

from __future__ import annotations

from worker.fairness.verify.checks import verdicts
from worker.fairness.verify.report import Report, make_report
from worker.fairness.verify.timeline import older_verdicts
from worker.fairness.verify.verdict import Verdict, Worth
from worker.fairness.verify.witness import entry_of, receipt_verdicts

__all__ = [
    "Report",
    "Verdict",
    "Worth",
    "entry_of",
    "make_report",
    "older_verdicts",
    "public",
    "receipt_verdicts",
    "recompute",
    "verdicts",
]
