"""Verification: check that a public repository shows what was committed to, with nothing but that repository."""

from __future__ import annotations

from worker.verify.checks import verdicts
from worker.verify.report import Report, make_report
from worker.verify.timeline import older_verdicts
from worker.verify.verdict import Status, Verdict
from worker.verify.witness import entry_of, key_in, receipt_verdicts

__all__ = [
    "Report",
    "Status",
    "Verdict",
    "entry_of",
    "key_in",
    "make_report",
    "older_verdicts",
    "public",
    "receipt_verdicts",
    "recompute",
    "verdicts",
]
