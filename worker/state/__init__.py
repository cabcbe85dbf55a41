"""The durable state: tables, rows as values, and the verbs that read and write them."""

from __future__ import annotations

from worker.state.cycles import Completed
from worker.state.leadership import Deposed, Leader
from worker.state.lock import LeaderLock, leader_lock
from worker.state.notices import LOG_UNSEEN, PROMISED, RESTORED, REVEALED
from worker.state.records import Alert, Owed, Tracked
from worker.state.store import Store, Transaction
from worker.state.wanted_files import WantedFile

__all__ = [
    "LOG_UNSEEN",
    "PROMISED",
    "RESTORED",
    "REVEALED",
    "Alert",
    "Completed",
    "Deposed",
    "Leader",
    "LeaderLock",
    "Owed",
    "Store",
    "Tracked",
    "Transaction",
    "WantedFile",
    "leader_lock",
]
