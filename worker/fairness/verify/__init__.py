"""Verification: does a public repository show a fair challenge? It needs nothing but that repository."""

from __future__ import annotations

from worker.fairness.verify.checks import PHASE_CHECKS, verdicts
from worker.fairness.verify.ledger import GROWING, receipt_verdicts
from worker.fairness.verify.verdict import Truth, Verdict

__all__ = [
    "GROWING",
    "PHASE_CHECKS",
    "Truth",
    "Verdict",
    "public",
    "receipt_verdicts",
    "recompute",
    "verdicts",
]
