"""Git's objects and lists of files, read as bytes: others choose the names of files and authors, and the dates of commits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

_FILE = re.compile(rb"100[0-7]{3} blob ([0-9a-f]{40,64}) +([0-9]+)\t(.+)", re.DOTALL)
_OBJECT = re.compile(rb"([0-9a-f]{40,64}) [a-z]+ ([0-9]{1,15})\n")  # git cat-file: object, type, bytes
_PARENTS = re.compile(rb"tree [^\n]*\n((?:parent [^\n]*\n)*)")
_AUTHOR = re.compile(rb"^author ([^<\n]*)", re.MULTILINE)
_COMMITTED = re.compile(rb"^committer [^\n]*> *([0-9]{1,15})", re.MULTILINE)
LATEST_S = int(datetime.max.replace(tzinfo=UTC).timestamp()) - 1
"""Git takes any date, and anybody with access can push one that is later."""


@dataclass(frozen=True, kw_only=True)
class Blob:
    """The content of a regular file.

    Attributes:
        name: The hash of the object.
        size: Its length in bytes.
    """

    name: str
    size: int


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit.

    Attributes:
        name: Its hash.
        parents: The hashes of the commits before it.
        at: The time that it states; 1970 if it states none.
        author: The author that it names; untrusted text.
        content: The whole object.
    """

    name: str
    parents: tuple[str, ...]
    at: datetime
    author: str
    content: bytes


def read_commit(name: str, content: bytes) -> Commit:
    """Read a commit object, of which only the parents are sure to have their form."""
    headers = content.partition(b"\n\n")[0] + b"\n"
    parents, author, at = (pattern.search(headers) for pattern in (_PARENTS, _AUTHOR, _COMMITTED))
    return Commit(
        name=name,
        parents=tuple(parents[1].decode("ascii", "replace").split()[1::2] if parents else ()),
        at=datetime.fromtimestamp(min(int(at[1]), LATEST_S) if at else 0, UTC),
        author=author[1].strip().decode("utf-8", "replace") if author else "",
        content=content,
    )


def read_path(path: bytes) -> str:
    """Return a path as text that :func:`write_path` turns into the same bytes; it may contain lone surrogates."""
    return path.decode("utf-8", "surrogateescape")


def write_path(path: str) -> bytes:
    """Return the bytes of a path."""
    return path.encode("utf-8", "surrogateescape")


def read_paths(listed: bytes) -> tuple[str, ...]:
    """Return paths that are separated by zero bytes."""
    return tuple(read_path(path) for path in listed.split(b"\0") if path)


def read_files(listed: bytes) -> dict[str, Blob]:
    """Return path and content of each regular file that ``git ls-tree -z -l`` has listed."""
    found = filter(None, map(_FILE.fullmatch, listed.split(b"\0")))
    return {read_path(file[3]): Blob(name=file[1].decode(), size=int(file[2])) for file in found}


def read_object(output: BinaryIO, name: str) -> bytes | None:
    """Return the object that ``git cat-file --batch`` prints next; None if it is not the one with this hash."""
    header = _OBJECT.fullmatch(output.readline())
    if header is None or header[1].decode() != name:
        return None
    content = output.read(int(header[2]))
    output.read(1)  # a line end
    return content


def with_signature(payload: bytes, signature: bytes) -> bytes:
    """Return a commit object with a signature as its last header, where git puts it."""
    headers, _, message = payload.partition(b"\n\n")
    folded = signature.rstrip(b"\n").replace(b"\n", b"\n ")
    return headers + b"\ngpgsig " + folded + b"\n\n" + message


def without_signature(commit: bytes) -> tuple[bytes, bytes]:
    """Return a commit object without its signature, and the signature; empty if its last header is none."""
    headers, _, message = commit.partition(b"\n\n")
    before, _, folded = headers.partition(b"\ngpgsig ")
    first, *lines = folded.split(b"\n")
    if not first or not all(line.startswith(b" ") for line in lines):
        return commit, b""
    signature = b"".join(line + b"\n" for line in (first, *(line[1:] for line in lines)))
    return before + b"\n\n" + message, signature
