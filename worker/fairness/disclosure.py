"""What a reveal publishes of a phase: its document with everything that opens what was committed to, its register, and contents.

The register is in files of JSON lines next to the document, because git servers refuse large files; the document says how many.

The submissions' contents let anybody recompute their scores. A content is published in the form that is hashed: its SHA-256 is the
content hash in the register. It is divided into parts, which are named by this hash, because git servers refuse large files. The parts
are on a branch of their own, whose commit is named by :data:`FILES_PATH`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from leaderboard.documents import Document, Number
from worker.fairness.documents import FORMAT, Hash, Moment
from worker.fairness.manifests import Commitment, Manifest

if TYPE_CHECKING:  # a child process imports this module, and must not load a database
    from worker.state import Transaction

BRANCH: Literal["files"] = "files"
BASELINES, TOP = "baselines", "top:"
PART_BYTES = 45_000_000
FILES_PATH = "reveal/files.json"
FILES_FACT = "files_branch"
LIMIT_BYTES = 1_000_000_000  # for all contents together; git servers recommend no larger repositories


class Reveal(Document):
    """The document of a revealed phase.

    Attributes:
        format: The format of everything that the challenge publishes.
        phase: Codename.
        revealed_at: When it was revealed.
        manifests: Number of a commitment to what it hides of the phase.
        parts: Number of the files of its register.
        boards: When each board was made that was ever published.
        key: The key of its splits, without a beacon.
        labels: Whether the label rows are published, or only their hashes.
        fillers: Number of a line of the log to the key of its filler entries; None as long as another phase is not revealed.
    """

    format: Literal[1]
    phase: str
    revealed_at: Moment
    manifests: dict[str, Manifest]
    parts: Number
    boards: list[Moment]
    key: Hash
    labels: Literal["published", "hashes"]
    fillers: dict[str, Hash] | None


def reveal_path(phase: str) -> str:
    """Return the path of a revealed phase's document."""
    return f"reveal/{phase}/reveal.json"


def register_path(phase: str, number: int) -> str:
    """Return the path of a file of a revealed phase's register, counted from 1."""
    return f"reveal/{phase}/register-{number}.jsonl"


def register_texts(lines: Iterable[str], *, at_most: int = PART_BYTES) -> list[str]:
    """Divide a register into the texts of its files.

    Args:
        lines: Its events, each as one line of JSON.
        at_most: Largest size in bytes of a file with more than one line.
    """
    texts: list[str] = []
    text, size = io.StringIO(), 0
    for line in lines:
        length = len(line.encode()) + 1
        if size and size + length > at_most:
            texts.append(text.getvalue())
            text, size = io.StringIO(), 0
        text.write(f"{line}\n")
        size += length
    return [*texts, text.getvalue()] if size else texts


class FilesReference(Document):
    """The public file that names a commit with the published contents, and its branch."""

    format: Literal[1]
    branch: Literal["files"]
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40,64}$")]


def files_file(tx: Transaction) -> bytes | None:
    """Write the public file that names the commit with the published contents; None if none were pushed."""
    commit = tx.document(FILES_FACT).get("commit")
    return (
        None
        if commit is None
        else FilesReference(format=FORMAT, branch=BRANCH, commit=commit).file_text().encode()
    )


def part_names(content_hash: str, size: int) -> list[str]:
    """Return the names of a content's parts, in their order.

    Args:
        content_hash: Hash of the content.
        size: Its size in bytes.
    """
    return [f"{content_hash}.{number}" for number in range(-(-size // PART_BYTES))]


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
    number = int(rule.removeprefix(TOP)) if rule is not None and rule.startswith(TOP) else 0
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


def write_parts(pieces: Iterable[bytes | memoryview], content_hash: str, folder: Path) -> list[str]:
    """Write a content into a new folder, divided into parts; return their names."""
    folder.mkdir(parents=True)
    content = memoryview(b"".join(pieces))
    names = part_names(content_hash, len(content))
    for number, name in enumerate(names):
        (folder / name).write_bytes(content[number * PART_BYTES : (number + 1) * PART_BYTES])
    return names
