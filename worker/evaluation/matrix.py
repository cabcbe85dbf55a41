"""The score matrix as the database has it: its cells, which of them a row lacks, its mean Q, and the receipt for it."""

from __future__ import annotations

from datetime import datetime

from scoring.quality import mean_quality
from scoring.scorecard import Scorecard
from worker.challenge.setups import PhaseSetup
from worker.fairness import receipts
from worker.state import Transaction


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


def missing_tasks(tx: Transaction, content_hash: str, protocol_hash: str, tasks: dict[str, str]) -> list[str]:
    """Return the tasks of a phase that a content has no cell for."""
    known = {(cell.task, cell.version) for cell in tx.cells(content_hash, protocol_hash)}
    return sorted(task for task, version in tasks.items() if (task, version) not in known)


def row_mean_q(tx: Transaction, content_hash: str, protocol_hash: str, tasks: dict[str, str]) -> float | None:
    """Return mean Q of a row of the score matrix, or None if a cell is missing: unscored is a state, never a value."""
    cells = {(cell.task, cell.version): cell.q for cell in tx.cells(content_hash, protocol_hash)}
    values = [cells.get((task, version)) for task, version in sorted(tasks.items())]
    if any(value is None for value in values):
        return None
    return mean_quality([float(value) for value in values if value is not None])


def give_receipt(
    tx: Transaction, pk: int, setup: PhaseSetup, content_hash: str, *, now: datetime
) -> dict[str, str]:
    """Commit to what was scored, and return what the participant is told of it."""
    cells = [
        cell
        for cell in tx.cells(content_hash, setup.protocol.hash)
        if setup.tasks.get(cell.task) == cell.version
    ]
    record = receipts.make_record(
        submission=pk,
        phase=setup.codename,
        content_hash=content_hash,
        protocol_hash=setup.protocol.hash,
        cells=cells,
        scored_at=tx.attestation_time(now),
    )
    return receipts.issue(tx, record)
