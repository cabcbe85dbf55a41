"""The score matrix in the database: store cells, find missing ones, compute mean Q of a row, and issue its receipt."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scoring.metrics import mean_quality
from scoring.scorecard import Scorecard
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import PhaseSetup
from worker.fairness import receipts
from worker.fairness.membership import ShownValue
from worker.fairness.register import RegisterFold, register_score
from worker.state import SubmissionRow, Transaction


def save_card(
    tx: Transaction, setup: PhaseSetup, content_hash: str, card: Scorecard, *, worker: str, now: datetime
) -> None:
    """Store what a child has scored; existing cells are kept."""
    provenance = {
        "versions": card.versions,
        "machine": card.machine,
        "seconds": card.seconds,
        "peak_memory_bytes": card.peak_memory_bytes,
        "worker": worker,
    }
    tx.save_cells(
        content_hash,
        setup.record.protocol.hash,
        setup.record.codename,
        card.tasks,
        provenance=provenance,
        now=now,
    )


def missing_tasks(
    tx: Transaction, content_hash: str, protocol_hash: str, tasks: Mapping[str, str]
) -> list[str]:
    """Return the tasks of a phase for which a content has no cell."""
    return sorted(tasks.keys() - {cell.task for cell in tx.row(content_hash, protocol_hash, tasks)})


def row_mean_q(
    tx: Transaction, content_hash: str, protocol_hash: str, tasks: Mapping[str, str]
) -> float | None:
    """Return mean Q of a row of the score matrix; None if a cell is missing, because an unscored task must not count as a value."""
    row = tx.row(content_hash, protocol_hash, tasks)
    values = [cell.q for cell in row if cell.q is not None]
    return mean_quality(values) if len(values) == len(tasks) else None


def give_receipt(
    tx: Transaction, fold: RegisterFold, row: SubmissionRow, record: PhaseRecord, *, now: datetime
) -> tuple[ShownValue, dict[str, Any]]:
    """Register a score; return the value that its participant is shown, and the receipt.

    Args:
        tx: The transaction that stores the answer.
        fold: Everything that is registered.
        row: The submission; its content is known.
        record: The record of the phase on which it was scored.
        now: The time.
    """
    value, nonce, commitment = register_score(
        tx,
        fold,
        row,
        protocol=record.protocol.hash,
        cells=tx.row(row.content_hash or "", record.protocol.hash, record.versions),
        now=now,
    )
    return value, receipts.issue(tx, submission=row.pk, score=value, nonce=nonce, commitment=commitment)
