"""Parts: the register of a reveal is in files of JSON lines next to its document, because git servers refuse large files.

``reveal.json`` names them in their order, with size and SHA-256: ``{"parts": [{"name": "register-1.jsonl", ...}]}``. Writing and
reading handle one event at a time, so they are never in memory as a whole.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping

from worker.fairness.disclosure import PART_BYTES, Part


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
