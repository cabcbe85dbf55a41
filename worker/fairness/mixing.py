"""Mixing: let the public value that a phase waited for decide its splits, or name another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from scoring.errors import OrganizerError
from scoring.randomness import secret_commitment
from worker.challenge.keys import split_key
from worker.challenge.setups import PhaseSetup, has_scores, open_phase, put_on_record
from worker.fairness.commitments import commit
from worker.state import Transaction


def mix_in(
    tx: Transaction,
    secret: bytes,
    drawn: Mapping[str, Mapping[str, Any]],
    *,
    reason: str,
    now: datetime,
) -> dict[str, Any]:
    """Mix the drawn values into the splits of phases, record these phases again, and commit to them.

    Args:
        tx: The transaction.
        secret: The challenge's secret.
        drawn: Phase to value, with drand's round and signature if it has them.
        reason: Why, in public.
        now: The time.

    Raises:
        OrganizerError: If something was scored in such a phase already, or the secret is not the one that was committed to before the value
            was known.
    """
    setups = []
    for codename, found in drawn.items():
        if has_scores(tx, codename):
            raise OrganizerError(
                f"Submissions were already scored in phase {codename}. A public value would change its splits.",
                cure="Do nothing. The splits of this phase stay as they are.",
                code="beacon.too_late",
            )
        record = open_phase(tx, codename, secret).record
        key = split_key(secret, codename, str(found["value"]))
        protocol = replace(record.protocol, secret_commitment=secret_commitment(key))
        setup = PhaseSetup(record=replace(record, protocol=protocol), key=key)
        put_on_record(tx, setup.record, files=tx.record_files(record.hash), now=now)
        setups.append(setup)
    return commit(tx, secret, setups, reason=reason, now=now, drawn=drawn)


def name_again(
    tx: Transaction,
    secret: bytes,
    phases: Iterable[str],
    draw: Mapping[str, Any],
    *,
    reason: str,
    now: datetime,
) -> dict[str, Any]:
    """Name another, later value for phases without scores."""
    return commit(tx, secret, (), reason=reason, now=now, draws=dict.fromkeys(phases, draw))
