"""The durable state: tables, rows as values, and the methods that read and write them."""

from __future__ import annotations

from worker.state.alerts import ALERT_CODES, alert_code
from worker.state.database import LeaderLock, leader_lock, refused
from worker.state.facts import AT_EVALAI, ATTESTED, LOG_UNSEEN, RESTORED, REVEALED
from worker.state.leadership import Deposed, Leader, StateFailed
from worker.state.pauses import PAUSE, Pause
from worker.state.publish_cycles import Completed
from worker.state.rows import (
    ALERT_AFTER_TRIES,
    HOPELESS_TRIES,
    HOPELESS_WAIT,
    LONGEST_LOOK,
    LONGEST_WAIT,
    Alert,
    AttemptRow,
    CellRow,
    Event,
    PhaseRow,
    SubmissionRow,
)
from worker.state.states import ACTIVE, ANSWERED, COUNTED, DECIDED, UNSCORED, Outcome, State
from worker.state.store import Store, Transaction

__all__ = [
    "ACTIVE",
    "ALERT_AFTER_TRIES",
    "ALERT_CODES",
    "ANSWERED",
    "ATTESTED",
    "AT_EVALAI",
    "COUNTED",
    "DECIDED",
    "HOPELESS_TRIES",
    "HOPELESS_WAIT",
    "LOG_UNSEEN",
    "LONGEST_LOOK",
    "LONGEST_WAIT",
    "PAUSE",
    "RESTORED",
    "REVEALED",
    "UNSCORED",
    "Alert",
    "AttemptRow",
    "CellRow",
    "Completed",
    "Deposed",
    "Event",
    "Leader",
    "LeaderLock",
    "Outcome",
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
