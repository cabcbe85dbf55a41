"""Named facts: single values, among them the latest time on any attestation."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from worker.state.schema import Tables, facts

RESTORED = "restored_from"  # set while the state comes from a backup: the time until which it is complete
ATTESTED = "promised_at"  # the latest time on any attestation
REVEALED = "revealed_at"  # when something was last revealed
AT_EVALAI = "at_evalai"  # deadlines and limits of the phases
LOG_UNSEEN = "log_unseen"  # set while a restored state may lack lines of the public log of receipts

_FACTS = sa.select(facts.c.name, facts.c.value)


class Facts(Tables):
    """Methods for facts."""

    @cached_property
    def _facts(self) -> dict[str, str]:
        """All facts by name, read once: during a transaction, nobody else changes what it sees."""
        return {row.name: row.value for row in self._connection.execute(_FACTS)}

    def fact(self, name: str) -> str | None:
        """Return a named fact."""
        return self._facts.get(name)

    def set_fact(self, name: str, value: str | None) -> None:
        """Set or remove a named fact."""
        self._connection.execute(facts.delete().where(facts.c.name == name))
        self._facts.pop(name, None)
        if value is not None:
            self._connection.execute(facts.insert().values(name=name, value=value))
            self._facts[name] = value

    def document(self, name: str) -> dict[str, Any]:
        """Return a named fact that is a JSON object, empty if it was never set."""
        document: dict[str, Any] = json.loads(self.fact(name) or "{}")
        return document

    def attestation_time(self, now: datetime) -> datetime:
        """Return the time to write on an attestation (a commitment, a receipt, a board, a reveal): later than on all earlier ones.

        Verifiers order attestations by these times, and a clock that is set back, or is behind another machine's, must not change the
        order.
        """
        last = self.fact(ATTESTED)
        at = now if last is None else max(now, datetime.fromisoformat(last) + timedelta(microseconds=1))
        self.set_fact(ATTESTED, at.isoformat())
        return at
