"""EvalAI's interface for challenge hosts: one method per endpoint, typed records, typed errors, a rate limit."""

from __future__ import annotations

from worker.evalai.backoff import Retry
from worker.evalai.client import Client
from worker.evalai.errors import (
    LinkExpired,
    NotFound,
    NotPermitted,
    Rejected,
    Throttled,
    TokenRefused,
    Unintelligible,
    Unreachable,
)
from worker.evalai.rate_limit import WINDOW, Budget
from worker.evalai.records import Account, Challenge, DatasetSplit, Message, Phase, PhaseSplit, Submission
from worker.evalai.transport import is_loopback, token_expiry
from worker.evalai.user_agent import USER_AGENT

__all__ = [
    "USER_AGENT",
    "WINDOW",
    "Account",
    "Budget",
    "Challenge",
    "Client",
    "DatasetSplit",
    "LinkExpired",
    "Message",
    "NotFound",
    "NotPermitted",
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
    "is_loopback",
    "token_expiry",
]
