"""Recording: phases are recorded and committed to before anything is scored on them.

A phase with scores is read only from its record, whatever its files contain. Until its first score, its files and settings are applied
at every start and reload.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from worker.challenge.configuration import Configuration
from worker.challenge.secrets import public_value
from worker.challenge.setups import (
    alert_key,
    differences,
    has_scores,
    open_phase,
    read_phase,
    read_secret,
)
from worker.challenge.signing import Signer
from worker.fairness import commitments
from worker.fairness.drand import QUICKNET, Chain, read_chain
from worker.fairness.manifests import AnnouncedRound
from worker.fairness.register import register
from worker.runtime.storage import check_memory
from worker.state import Store, Transaction

WITHOUT = (
    "fairness.beacon is none, so the person who made the secret could have tried many and kept one that favors a team. `verify` will"
    " say so."
)
CHOOSE_DRAND = "Set fairness.beacon: drand before the first phase begins, if this machine can reach a drand server or a mirror."


def record_phases(store: Store, configuration: Configuration, key: Signer, *, now: datetime) -> None:
    """Record new phases and those that have changed before their first score.

    Raises:
        OrganizerError: If the secret is not the one of the records, a phase without scores cannot be read, or a valid file could not be
            read within the memory limit; then nothing is recorded.
        InfrastructureError: If a record is damaged.
    """
    secret = read_secret(configuration)
    draw, rule = name_draw(configuration, now), configuration.fairness.publish_files
    while True:
        with store.read() as tx:
            entries = tx.public_commitments()
            due = [name for name in configuration.phases if _is_due(tx, configuration, name, secret)]
        read = [read_phase(configuration, name, secret, public_value(entries, name)) for name in due]
        with store.write() as tx:
            if tx.public_commitments() != entries:
                continue  # a command has read files that may be newer
            commitments.begin(
                tx,
                key,
                secret,
                read,
                now=now,
                draw=draw,
                publish_files=rule,
                receipts_every=configuration.leaderboard.receipts_every,
                access=configuration.fairness.access,
            )
            _check(tx, configuration, secret)
            register(tx, now)  # registers the rules before anything is scored by them
            tx.request_publish()  # the contents of boards may have changed
            return


def name_draw(configuration: Configuration, now: datetime) -> AnnouncedRound | None:
    """Return the round of drand for which phases that begin now wait; None if they wait for none.

    Raises:
        OrganizerError: If the configured chain of drand cannot be read.
    """
    fairness = configuration.fairness
    if fairness.beacon == "none":
        return None
    return commitments.next_round(drand_chain(configuration), now + timedelta(seconds=fairness.beacon_notice))


def drand_chain(configuration: Configuration) -> Chain:
    """Return the configured chain of drand.

    Raises:
        OrganizerError: If it cannot be read.
    """
    path = configuration.fairness.drand_chain
    return QUICKNET if path is None else read_chain(configuration.path(path))


def _is_due(tx: Transaction, configuration: Configuration, codename: str, secret: bytes) -> bool:
    """Return whether the files of a phase must be read."""
    if tx.phase_record(codename) is None:
        return True
    return not has_scores(tx, codename) and any(differences(tx, configuration, codename, secret))


def _check(tx: Transaction, configuration: Configuration, secret: bytes) -> None:
    """Check that every phase in use can be scored with this secret on this machine."""
    for codename in configuration.phases:
        row = tx.phase_record(codename)
        if row is None or row.closed_at is not None:
            continue
        setup = open_phase(tx, codename, secret)
        check_memory(
            configuration.submission.memory_gigabytes,
            phase=codename,
            rows=len(setup.record.ids),
            columns=setup.record.protocol.embedding_dim,
        )
    for alert in tx.alerts():
        if alert.key.startswith(alert_key("")):  # no record in use is damaged any more
            tx.resolve_alert(alert.key)
