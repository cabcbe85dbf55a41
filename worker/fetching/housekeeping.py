"""Housekeeping of stored files: remove those older than `keep_days`, and fetch none while the disk is nearly full.

Files are kept for rescoring and, if the reveal may have to publish them, until then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from scoring.errors import InfrastructureError
from worker.challenge.context import Context, Job
from worker.fairness import commitments, disclosure
from worker.runtime.storage import GIGABYTE, FileStore
from worker.state import ACTIVE, COUNTED, State, SubmissionRow, Transaction

HOUSEKEEPING = Job("housekeeping", lambda _: 600)


def remove_old_files(context: Context, files: FileStore, now: datetime) -> None:
    """Remove the stored files that nothing needs any more, if it is time to look."""
    if not context.timetable.due(HOUSEKEEPING):
        return
    context.timetable.done(HOUSEKEEPING, now)
    horizon = now - timedelta(days=context.configuration.submission.keep_days)
    with context.store.read() as tx:
        rows = tx.submissions()
        needed = _promised(tx, rows) | {
            row.file_hash
            for row in rows
            if row.state in ACTIVE or row.own or (row.submitted_at or now) > horizon
        }
    for path in files.stored():
        if path.name not in needed:
            files.remove(path.name)
    if below_reserve(files.free_bytes(), context.configuration.submission.disk_reserve_gigabytes) is None:
        context.resolve_alerts("disk.reserve")


def _promised(tx: Transaction, rows: Iterable[SubmissionRow]) -> set[str | None]:
    """Return the files of unrevealed phases whose contents are promised by the terms, or may be later."""
    entries, revealed = commitments.public(tx), tx.revealed()
    rules = {phase: disclosure.rule_of(entries, phase) for phase in tx.phases() if phase not in revealed}
    scored = COUNTED | {State.SCORED}
    return {
        row.file_hash
        for row in rows
        if row.state in scored
        and row.phase in rules
        and disclosure.may_be_due(
            rules[row.phase],
            baseline=row.own,
            public=bool(row.public),
        )
    }


def below_reserve(free_bytes: int, reserve_gigabytes: float) -> InfrastructureError | None:
    """Return the error that there is less free space than the reserve, None if there is more."""
    if free_bytes >= reserve_gigabytes * GIGABYTE:
        return None
    return InfrastructureError(
        "The disk is nearly full, so the worker does not download more submissions.",
        hint="Free some space in the state directory's file system. The worker then continues.",
        code="disk.reserve",
    )
