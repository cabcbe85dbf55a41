"""The published id lists of the phases, so that participants can check a file with nothing but the repository.

The other requirements are in ``commitment.json``: the dimension of an embedding, and the list's hash. A list is published once something
was scored in its phase, because then the phase is open and participants have the ids.
"""

from __future__ import annotations

from collections.abc import Iterable

from worker.challenge.setups import has_scores, intact_record
from worker.participant.challenge import announced, list_path
from worker.state import Transaction


def text(ids: Iterable[str]) -> str:
    """Write an id list, one id per line."""
    return "".join(f"{identifier}\n" for identifier in ids)


def read(content: bytes) -> tuple[str, ...]:
    """Return the ids of a list."""
    return tuple(line for line in content.decode(errors="replace").split("\n") if line)


def files(tx: Transaction) -> dict[str, bytes]:
    """Return the lists to publish: path to content. A list that no commitment covers, or whose record is damaged, is left out."""
    published = {}
    for phase, protocol in announced(tx.public_commitments()).items():
        record = intact_record(tx, phase) if has_scores(tx, phase) else None
        if record is not None and record.protocol.ids_hash == protocol["ids_hash"]:
            published[list_path(phase)] = text(record.ids).encode()
    return published
