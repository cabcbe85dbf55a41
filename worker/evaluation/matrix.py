"""The score matrix as the database has it: its cells, which of them a row lacks, its mean Q, and the receipt for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scoring.quality import mean_quality
from scoring.scorecard import Scorecard
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import PhaseSetup
from worker.fairness import receipts
from worker.fairness.ladder import Told
from worker.fairness.register import register_score
from worker.state import SubmissionRow, Transaction


def save_card(
    tx: Transaction, setup: PhaseSetup, content_hash: str, card: Scorecard, *, worker: str, now: datetime
) -> None:
    """Keep what a child has scored; a cell that is there already stays."""
    provenance = {
        "versions": card.versions,
        "machine": card.machine,
        "remarks": list(card.remarks),
        "seconds": card.seconds,
        "peak_memory_bytes": card.peak_memory_bytes,
        "worker": worker,
    }
    tx.save_cells(
        content_hash, setup.protocol.hash, setup.codename, card.tasks, provenance=provenance, now=now
    )


def missing_tasks(
    tx: Transaction, content_hash: str, protocol_hash: str, tasks: Mapping[str, str]
) -> list[str]:
    """Return the tasks of a phase that a content has no cell for."""
    return sorted(tasks.keys() - {cell.task for cell in tx.row(content_hash, protocol_hash, tasks)})


def row_mean_q(
    tx: Transaction, content_hash: str, protocol_hash: str, tasks: Mapping[str, str]
) -> float | None:
    """Return mean Q of a row of the score matrix, or None if a cell is missing: unscored is a state, never a value."""
    row = tx.row(content_hash, protocol_hash, tasks)
    values = [cell.q for cell in row if cell.q is not None]
    return mean_quality(values) if len(values) == len(tasks) else None


def give_receipt(
    tx: Transaction, row: SubmissionRow, record: PhaseRecord, told: Told, *, now: datetime
) -> dict[str, Any]:
    """Register what was scored, and return what the participant is told of it.

    Args:
        tx: The transaction that stores the answer.
        row: The submission; its content is known.
        record: Of the phase that it was scored on.
        told: What its participant is told of it.
        now: The time.
    """
    nonce, commitment = register_score(
        tx,
        row,
        protocol=record.protocol.hash,
        cells=tx.row(row.content_hash or "", record.protocol.hash, record.versions),
        told=told,
        now=now,
    )
    return receipts.issue(tx, submission=row.pk, told=told, nonce=nonce, commitment=commitment)
