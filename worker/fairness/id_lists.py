"""The public ids of each phase as they are published, so that a participant's own check needs nothing but the repository.

What else such a check needs is in ``commitment.json``: the dimension of an embedding, and the hash that the list must have. A list is
published once something was scored in its phase: then the phase has opened, and participants have the ids.
"""

from __future__ import annotations

from collections.abc import Iterable

from scoring.errors import InfrastructureError
from worker.challenge.setups import has_scores, read_record
from worker.participant.layout import announced, list_path
from worker.state import Transaction


def text(ids: Iterable[str]) -> str:
    """Write an id list, one id per line."""
    return "".join(f"{identifier}\n" for identifier in ids)


def files(tx: Transaction) -> dict[str, bytes]:
    """Return the lists to publish: path to content. A list that nobody has committed to, or whose record is damaged, is left out."""
    published = {}
    for phase, protocol in announced(tx.public_commitments()).items():
        try:
            record = read_record(tx, phase) if has_scores(tx, phase) else None
        except InfrastructureError:
            continue  # of which the snapshot of the phase tells
        if record is not None and record.protocol.ids_hash == protocol["ids_hash"]:
            published[list_path(phase)] = text(record.ids).encode()
    return published
