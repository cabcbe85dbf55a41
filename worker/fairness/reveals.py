"""Reveals: the document of a revealed phase, with everything that opens what was committed to, and its register in parts.

The register is in files of JSON lines next to the document, because git servers refuse large files; the document names them in their order,
with size and SHA-256. Writing and reading handle one event at a time, so they are never in memory as a whole.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from worker.fairness.disclosure import PART_BYTES, Part
from worker.fairness.documents import Document, Hash, Moment
from worker.fairness.manifests import Manifest


class Reveal(Document):
    """The document of a revealed phase.

    Attributes:
        format: The format of everything that the challenge publishes.
        phase: Codename.
        revealed_at: When it was revealed.
        manifests: Number of a commitment to what it hides of the phase.
        parts: The parts of its register.
        boards: When each board was made that was ever published.
        key: The key of its splits, without a beacon.
        labels: Whether the label rows are published, or only their hashes.
        fillers: Number of a line of the log to the key of its filler entries; None as long as another phase is not revealed.
    """

    format: Literal[1]
    phase: str
    revealed_at: Moment
    manifests: dict[str, Manifest]
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


def written(lines: Iterable[str], *, at_most: int = PART_BYTES) -> list[tuple[Part, str]]:
    """Divide a register into parts; return for each its description in the document, and its text.

    Args:
        lines: Its events, each as one line of JSON.
        at_most: Largest size in bytes of a part with more than one element.
    """
    made: list[tuple[Part, str]] = []
    part, size = io.StringIO(), 0
    for line in lines:
        length = len(line.encode()) + 1
        if size and size + length > at_most:
            made.append(_part(len(made) + 1, part.getvalue()))
            part, size = io.StringIO(), 0
        part.write(f"{line}\n")
        size += length
    return [*made, _part(len(made) + 1, part.getvalue())] if size else made


def _part(number: int, text: str) -> tuple[Part, str]:
    content = text.encode()
    sha256 = hashlib.sha256(content).hexdigest()
    return Part(name=f"register-{number}.jsonl", bytes=len(content), sha256=sha256), text


def path_of(files: Mapping[str, bytes], folder: str, part: Part) -> str:
    """Return the path of a part, after checking that its content is the described one.

    Args:
        files: Path to content.
        folder: Folder of the reveal.
        part: Its description in the document.

    Raises:
        LookupError: If it is missing.
        ValueError: If its content differs.
    """
    path = f"{folder}/{part.name}"
    content = files[path]
    if (len(content), hashlib.sha256(content).hexdigest()) != (part.bytes, part.sha256):
        raise ValueError(f"{path} is not the part that the reveal names")
    return path


def lines_of(content: bytes) -> Iterator[str]:
    """Yield the lines of a part."""
    for line in io.BytesIO(content):
        yield line.decode()
