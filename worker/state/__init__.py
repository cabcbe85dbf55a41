"""The durable state: tables, rows as values, and the methods that read and write them."""

from __future__ import annotations

from worker.state.database import LeaderLock, leader_lock, refused
from worker.state.notices import (
    ALERT_CODES,
    AT_EVALAI,
    ATTESTED,
    LOG_UNSEEN,
    PAUSE,
    RESTORED,
    REVEALED,
    Completed,
    Deposed,
    Leader,
    Pause,
    StateFailed,
    alert_code,
)
from worker.state.rows import (
    HOPELESS_TRIES,
    HOPELESS_WAIT,
    LONGEST_WAIT,
    Alert,
    AttemptRow,
    CellRow,
    Event,
    Owed,
    PhaseRow,
    SubmissionRow,
)
from worker.state.states import ACTIVE, ANSWERED, COUNTED, UNSCORED, Attempt, OutboxKind, Outcome, State
from worker.state.store import Store, Transaction

__all__ = [
    "ACTIVE",
    "ALERT_CODES",
    "ANSWERED",
    "ATTESTED",
    "AT_EVALAI",
    "COUNTED",
    "HOPELESS_TRIES",
    "HOPELESS_WAIT",
    "LOG_UNSEEN",
    "LONGEST_WAIT",
    "PAUSE",
    "RESTORED",
    "REVEALED",
    "UNSCORED",
    "Alert",
    "Attempt",
    "AttemptRow",
    "CellRow",
    "Completed",
    "Deposed",
    "Event",
    "Leader",
    "LeaderLock",
    "OutboxKind",
    "Outcome",
    "Owed",
    "Pause",
    "PhaseRow",
    "State",
    "StateFailed",
    "Store",
    "SubmissionRow",
    "Transaction",
    "alert_code",
    "database",
    "leader_lock",
    "refused",
]
