"""Reveals: the document of a revealed phase, with everything that opens what was committed to."""

from __future__ import annotations

import json
from typing import Literal

from worker.fairness.disclosure import Part
from worker.fairness.documents import Count, Document
from worker.fairness.events import Hash, Moment
from worker.fairness.manifests import Manifest, Opening


class OpenedCommitment(Document):
    """What opens a commitment for a phase.

    Attributes:
        sequence: Its number.
        opening: What opens its hash.
        manifest: The phase's tasks and protocol; None if the phase had not begun.
    """

    sequence: Count
    opening: Opening
    manifest: Manifest | None


class Reveal(Document):
    """The document of a revealed phase.

    Attributes:
        format: The format of everything that the challenge publishes.
        phase: Codename.
        revealed_at: When it was revealed.
        commitments: What opens each commitment.
        parts: The parts of its register.
        boards: When each board was made that was ever published.
        key: The key of its splits, without a beacon.
        labels: Whether the label rows are published, or only their hashes.
        fillers: Number of a line of the log to the key of its filler entries; None as long as another phase is not revealed.
    """

    format: Literal[1]
    phase: str
    revealed_at: Moment
    commitments: list[OpenedCommitment]
    parts: list[Part]
    boards: list[Moment]
    key: Hash
    labels: Literal["published", "hashes"]
    fillers: dict[str, Hash] | None

    def text(self) -> str:
        """Write it."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"


def reveal_path(phase: str) -> str:
    """Return the path of a revealed phase's document."""
    return f"reveal/{phase}/reveal.json"
