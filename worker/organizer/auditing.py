"""The audit: every submission and every step of the organizer, as records for a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from worker.state import Store

SUBMISSION_FIELDS = (
    "pk",
    "state",
    "phase",
    "team_key",
    "team",
    "method",
    "project_url",
    "publication_url",
    "submitted_at",
    "first_seen_at",
    "running_at",
    "scored_at",
    "answered_at",
    "public_at_first",
    "public_now",
    "created_by",
    "by_host",
    "baseline",
    "flagged",
    "deleted",
    "file_hash",
    "file_bytes",
    "content_hash",
    "q_mean",
    "excluded",
    "superseded_by",
    "reposts",
    "calls",
)


def records(store: Store) -> Iterator[dict[str, Any]]:
    """Yield one record per submission (with its attempts), per score cell and per step of the audit trail."""
    with store.read() as tx:
        for row in tx.submissions():
            attempts = [
                {
                    "kind": attempt.kind,
                    "worker": attempt.worker,
                    "outcome": attempt.outcome,
                    "opened_at": _text(attempt.opened_at),
                    "closed_at": _text(attempt.closed_at),
                    "reason": attempt.reason,
                    "peak_memory_bytes": attempt.peak_memory_bytes,
                }
                for attempt in tx.attempts(pk=row.pk)
            ]
            yield {
                "record": "submission",
                **{field: _text(getattr(row, field)) for field in SUBMISSION_FIELDS},
                "attempts": attempts,
            }
        for cell in tx.all_cells():
            yield {
                "record": "cell",
                **{
                    key: _text(value)
                    for key, value in vars(cell).items()
                    if key not in ("folds", "provenance")
                },
                **json.loads(cell.provenance),
            }
        for step in tx.trail():
            yield {"record": "step", **{key: _text(value) for key, value in vars(step).items()}}


def _text(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
