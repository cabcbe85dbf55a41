"""EvalAI's interface for challenge hosts: one method per endpoint, typed records, typed errors, and a rate limit."""

from __future__ import annotations

from worker.evalai.client import Client
from worker.evalai.errors import (
    AccountRefused,
    NotFound,
    NotPermitted,
    Rejected,
    Throttled,
    TokenRefused,
    Unintelligible,
    Unreachable,
)
from worker.evalai.numbers import Numbered, contradiction, could_be_of
from worker.evalai.pacing import WINDOW, Budget, Retry, backoff
from worker.evalai.records import (
    Author,
    Challenge,
    DatasetSplit,
    Described,
    Message,
    Phase,
    PhaseSplit,
    Submission,
)

__all__ = [
    "WINDOW",
    "AccountRefused",
    "Author",
    "Budget",
    "Challenge",
    "Client",
    "DatasetSplit",
    "Described",
    "Message",
    "NotFound",
    "NotPermitted",
    "Numbered",
    "Phase",
    "PhaseSplit",
    "Rejected",
    "Retry",
    "Submission",
    "Throttled",
    "TokenRefused",
    "Unintelligible",
    "Unreachable",
    "backoff",
    "contradiction",
    "could_be_of",
    "pacing",
    "records",
]
