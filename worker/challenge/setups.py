"""A phase that is ready to score: its record and its key."""

from __future__ import annotations

from dataclasses import dataclass

from scoring.errors import InfrastructureError, OrganizerError
from scoring.randomness import secret_commitment
from worker.challenge.records import PhaseRecord, check, kept
from worker.challenge.secrets import public_value, split_key
from worker.state import Transaction

OTHER_SPLITS = "Restore the old secret. If it is lost, `neuco-worker challenge apply` scores everything again with the new one."


@dataclass(frozen=True, kw_only=True, repr=False)
class PhaseSetup:
    """One phase that is ready to score. Its repr shows nothing, because it contains a key and hidden labels.

    Attributes:
        record: The tasks, the protocol and the rules.
        key: The phase key, from which seeds derive.
    """

    record: PhaseRecord
    key: bytes


def has_scores(tx: Transaction, codename: str) -> bool:
    """Return whether anything in a phase was scored since it was first recorded."""
    return tx.phase_record(codename) is not None and tx.has_cells(codename)


def read_record(tx: Transaction, codename: str) -> PhaseRecord | None:
    """Return the current record of a phase, None if it has none yet.

    Raises:
        InfrastructureError: If the record is damaged.
    """
    row = tx.phase_record(codename)
    return None if row is None else kept(row.record, tx.record)


def check_record(tx: Transaction, codename: str) -> None:
    """Check that the stored record of a phase, if it has one, is intact; :func:`read_record` may not read it again.

    Raises:
        InfrastructureError: If it is damaged.
    """
    row = tx.phase_record(codename)
    if row is not None:
        check(tx.record(row.record), row.record)


def intact_record(tx: Transaction, codename: str) -> PhaseRecord | None:
    """Return the current record of a phase, None if it has none yet, or if it is damaged: then what depends on it waits for its repair."""
    try:
        return read_record(tx, codename)
    except InfrastructureError:
        return None


def recorded(tx: Transaction, codename: str) -> PhaseRecord:
    """Return the current record of a phase.

    Raises:
        OrganizerError: If the phase is not recorded.
        InfrastructureError: If the record is damaged.
    """
    record = read_record(tx, codename)
    if record is None:
        raise not_recorded(codename)
    return record


def open_phase(tx: Transaction, codename: str, secret: bytes) -> PhaseSetup:
    """Return a recorded phase with its key.

    Raises:
        OrganizerError: If the phase is not recorded, or the secret is not the one of its record.
        InfrastructureError: If the record is damaged.
    """
    record = recorded(tx, codename)
    key = split_key(secret, codename, public_value(tx.public_commitments(), codename))
    if secret_commitment(key) != record.protocol.secret_commitment:
        raise OrganizerError(
            f"The challenge's secret is not the one that phase {codename} was recorded with.",
            hint=OTHER_SPLITS,
            code="secret.changed",
        )
    return PhaseSetup(record=record, key=key)


def alert_key(codename: str) -> str:
    """Return the key of the alert that a phase's record is damaged."""
    return f"record:{codename}"


def not_recorded(codename: str) -> OrganizerError:
    """Return the error for a new phase."""
    return OrganizerError(
        f"Phase {codename} has not begun: the worker has not recorded it yet.",
        hint="Start or reload the worker, then run the command again.",
        code="phase.not_recorded",
    )


def put_on_record(tx: Transaction, record: PhaseRecord) -> None:
    """Make a record a phase's current one; earlier records are kept, because earlier commitments refer to them."""
    tx.add_record(record.hash, record.packed)
    tx.record_phase(
        record.codename, record=record.hash, protocol_hash=record.protocol.hash, tasks=record.versions
    )
    tx.resolve_alert(alert_key(record.codename))
