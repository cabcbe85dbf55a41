"""A promise: one public commitment, and what the reveal of a phase opens of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scoring.randomness import secret_commitment
from worker.challenge.secrets import mixed_key, public_value
from worker.fairness.manifests import Manifest, Opening
from worker.fairness.reveals import OpenedCommitment


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One public commitment and what the reveal opens of it for a phase.

    Attributes:
        public: The entry of ``commitment.json``.
        opening: What opens its hash; None if nothing was revealed for it.
        manifest: The phase's tasks and protocol as committed to; None if the phase had not begun.
        beacon: The public value that was mixed into the splits by then, if any.
    """

    public: Mapping[str, Any]
    opening: Opening | None
    manifest: Manifest | None
    beacon: str | None

    @property
    def sequence(self) -> int:
        """Its number in ``commitment.json``."""
        return int(self.public["sequence"])

    @property
    def reason(self) -> str:
        """Why it was made, according to its organizers."""
        return str(self.public["reason"])

    @property
    def made_at(self) -> datetime:
        """When it was published, according to its organizers."""
        return datetime.fromisoformat(self.public["made_at"])

    def splits_key(self, key: bytes) -> bytes:
        """Return the key of the seeds under this commitment: the revealed one, mixed with the beacon if there was one."""
        return mixed_key(key, self.beacon)

    def is_opened_by(self, key: bytes) -> bool:
        """Return whether a revealed key is the one that was committed to."""
        promised = None if self.manifest is None else self.manifest.protocol.secret_commitment
        return secret_commitment(self.splits_key(key)) == promised


def read_promises(
    entries: Sequence[Mapping[str, Any]], opened: Sequence[OpenedCommitment], phase: str
) -> Iterator[Promise]:
    """Yield all commitments, oldest first, with what was revealed of them.

    Args:
        entries: The public commitments.
        opened: What the reveal of the phase contains about them.
        phase: Codename.
    """
    revealed = {item.sequence: item for item in opened}
    for number, entry in enumerate(entries, start=1):
        item = revealed.get(entry["sequence"])
        yield Promise(
            public=entry,
            opening=None if item is None else item.opening,
            manifest=None if item is None else item.manifest,
            beacon=public_value(entries[:number], phase),
        )
