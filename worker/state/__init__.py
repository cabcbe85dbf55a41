"""The durable state: tables, rows as values, and the verbs that read and write them."""

from __future__ import annotations

from worker.state.notices import LOG_UNSEEN, PROMISED, RESTORED, REVEALED
from worker.state.records import Alert, Owed, Tracked
from worker.state.store import Store, Transaction

__all__ = [
    "LOG_UNSEEN",
    "PROMISED",
    "RESTORED",
    "REVEALED",
    "Alert",
    "Owed",
    "Store",
    "Tracked",
    "Transaction",
]
