"""Answers: what a participant gets to see, and when.

Everything that leaves is built here, from an allow-list: the rounded mean Q, notes about the participant's own file, or the faults of that
file. Times are on a grid, since EvalAI shows `execution_time` to the second and the time of scoring would tell the number of tasks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from scoring.errors import MESSAGE_LIMIT, ParticipantError
from scoring.quality import shown
from worker.state import LONGEST_WAIT, OutboxKind, Transaction


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is posted to EvalAI; decided once, stored, and repeated byte for byte if need be.

    Attributes:
        status: ``"finished"`` or ``"failed"``.
        stdout: JSON document of a finished one, else empty.
        stderr: Faults of a failed one, else empty.
        value: Rounded mean Q of a finished one.
    """

    status: str
    stdout: str = ""
    stderr: str = ""
    value: float | None = None

    def to_json(self) -> str:
        """Write it for the database."""
        return json.dumps(self.__dict__, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Answer:
        """Read what :meth:`to_json` wrote."""
        return cls(**json.loads(text))


def finished(
    q_mean: float,
    *,
    decimals: int,
    notes: tuple[str, ...],
    zarr_suffix_removed: bool,
    receipt: Mapping[str, Any] | None = None,
) -> Answer:
    """Answer a scored submission.

    Args:
        q_mean: Unrounded mean Q.
        decimals: To round to.
        notes: About the participant's own file.
        zarr_suffix_removed: Whether ids had such a suffix.
        receipt: What lets the participant prove later what was scored, see :mod:`worker.fairness.receipts`.

    Raises:
        ValueError: If mean Q is not finite: that is never an answer.
    """
    value = shown(q_mean, decimals)
    document: dict[str, object] = {
        "status": "completed",
        "q_mean": value,
        "more_than_allowed_probes_failed": False,
        "zarr_suffix_removed": zarr_suffix_removed,
        "notes": list(notes),
    }
    if receipt is not None:
        document["receipt"] = dict(receipt)
    return Answer(status="finished", stdout=json.dumps(document), value=value)


def failed(error: ParticipantError) -> Answer:
    """Answer a submission whose file is wrong, in the words of its faults."""
    return Answer(status="failed", stderr=error.message[:MESSAGE_LIMIT])


def release_at(now: datetime, *, running_at: datetime | None, grid_s: float) -> datetime:
    """Return when an answer that is ready now may leave: the next multiple of the grid after ``running``."""
    if grid_s <= 0 or running_at is None:
        return now
    elapsed = max(0.0, (now - running_at).total_seconds())
    return running_at + timedelta(seconds=grid_s * max(1, math.ceil(elapsed / grid_s)))


def unreleased(tx: Transaction, now: datetime, *, grid: timedelta) -> frozenset[int]:
    """Return the teams (by key) with an answer that is ready and waits for its moment.

    A moment beyond back-off and grid is from before the clock was set back, and nobody waits for it.
    """
    pks = [
        owed.submission
        for owed in tx.owed(OutboxKind.POST)
        if now < owed.not_before <= now + LONGEST_WAIT + grid
    ]
    found = (tx.get(pk) for pk in pks)
    return frozenset(row.team_key for row in found if row is not None and row.team_key is not None)
