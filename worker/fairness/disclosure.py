"""What a reveal publishes of a phase: its document with everything that opens what was committed to, its register, and contents.

The register is in files of JSON lines next to the document, because git servers refuse large files; the document names them in their order,
with size and SHA-256.

The submissions' contents let anybody recompute their scores. A content is published in the form that is hashed: the SHA-256 of the
published file is the content hash in the register. It is divided into parts on a branch of its own, because git servers refuse large
files; the phase's ``files.json`` lists them.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from worker.fairness.documents import FORMAT, Document, Hash, Moment, Number, read
from worker.fairness.manifests import Commitment, Manifest

BRANCH: Literal["files"] = "files"
BASELINES, TOP, ALL = "baselines", "top:", "all"
PART_BYTES = 45_000_000
LIMIT_BYTES = 1_000_000_000  # for all contents together; git servers recommend no larger repositories


class Part(Document):
    """A part of something that is too large for one file."""

    name: Annotated[str, Field(pattern=r"^[0-9a-z][0-9a-z.-]*$")]
    bytes: Number
    sha256: Hash


def described(name: str, content: bytes | memoryview) -> Part:
    """Return the description of a part with this name and content."""
    return Part(name=name, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


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


def reveal_path(phase: str) -> str:
    """Return the path of a revealed phase's document."""
    return f"reveal/{phase}/reveal.json"


def register_parts(lines: Iterable[str], *, at_most: int = PART_BYTES) -> list[tuple[Part, str]]:
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
    return described(f"register-{number}.jsonl", text.encode()), text


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
    if described(part.name, files[path]) != part:
        raise ValueError(f"{path} is not the part that the reveal names")
    return path


class PublishedFile(Document):
    """A published content.

    Attributes:
        submission: EvalAI's number.
        content: The content's hash.
        bytes: Its size.
        parts: Its parts.
    """

    submission: Number
    content: Hash
    bytes: Number
    parts: Annotated[list[Part], Field(min_length=1)]


class LeftOut(Document):
    """A content that is not published although the rule requires it, and why."""

    submission: Number
    reason: str


class Files(Document):
    """The list of a phase's published contents."""

    format: Literal[1]
    branch: Literal["files"]
    files: list[PublishedFile]
    left_out: list[LeftOut]


def files_path(phase: str) -> str:
    """Return the path of the list of a phase's published contents."""
    return f"reveal/{phase}/files.json"


def files_text(files: Sequence[PublishedFile], left_out: Mapping[int, str]) -> str:
    """Write this list.

    Args:
        files: What is published.
        left_out: Submission to why its content is not published, although the rule requires it.
    """
    explained = [LeftOut(submission=pk, reason=reason) for pk, reason in sorted(left_out.items())]
    return Files(format=FORMAT, branch=BRANCH, files=list(files), left_out=explained).file_text()


def rule_of(entries: Iterable[Commitment], phase: str) -> str | None:
    """Return the rule of a phase from the first commitment to it, which was public before the first submission; None before that."""
    return next((entry.publish_files for entry in entries if phase in entry.phases), None)


def due(rule: str | None, rows: Iterable[tuple[int, bool]]) -> list[int]:
    """Return the submissions whose contents are to be published, baselines first.

    Args:
        rule: The phase's rule; without one, only baselines are published, which are the organizers' own.
        rows: The submission in each row of the final board, in order, and whether it is a baseline.
    """
    listed = list(rows)
    others = [pk for pk, is_baseline in listed if not is_baseline]
    rule = rule or BASELINES
    number = len(others) if rule == ALL else int(rule.removeprefix(TOP)) if rule.startswith(TOP) else 0
    return [*(pk for pk, is_baseline in listed if is_baseline), *others[:number]]


def may_be_due(rule: str | None, *, baseline: bool, public: bool) -> bool:
    """Return whether a submission's content may have to be published at the end, so that its stored file must be kept.

    The first rows of the board are known only at the end, so if the rule names rows, any public submission may be among them.

    Args:
        rule: The phase's rule.
        baseline: Whether it is a baseline, or may become one.
        public: Whether it was public when it was first seen.
    """
    return baseline or (public and rule not in (None, BASELINES))


def explained(document: str, submissions: Collection[int], reason: str) -> str:
    """Record the given submissions that a list does not mention as left out, with a reason; return the new list."""
    listed = read(Files, document, "files.json")
    left_out = {file.submission: file.reason for file in listed.left_out}
    named = {file.submission for file in listed.files} | left_out.keys()
    return files_text(listed.files, left_out | {pk: reason for pk in submissions if pk not in named})


def write_parts(
    pieces: Iterable[bytes | memoryview], content_hash: str, folder: Path
) -> list[dict[str, Any]]:
    """Write a content into a new folder, divided into parts; return name, bytes and SHA-256 of each."""
    folder.mkdir(parents=True)
    parts: list[dict[str, Any]] = []
    content = b"".join(pieces)
    for number, start in enumerate(range(0, len(content), PART_BYTES)):
        part = memoryview(content)[start : start + PART_BYTES]
        name = f"{content_hash}.{number}"
        (folder / name).write_bytes(part)
        parts.append(described(name, part).to_json())
    return parts
