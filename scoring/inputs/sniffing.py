"""Detect the kind of a file from its content."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from scoring.inputs.faults import Faults

BINARIES = {
    b"\x1f\x8b": "gzip",
    b"PK": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"7z\xbc\xaf\x27\x1c": "7-Zip",
    b"Rar!": "RAR",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"PAR1": "Parquet",
    b"PARE": "encrypted Parquet",
    b"\x93NUMPY": "a single NumPy array without ids",
    b"\x89HDF": "HDF5",
    b"\x80\x02": "a pickle",
    b"\x80\x03": "a pickle",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
    b"ARROW1": "Arrow or Feather",
    b"%PDF": "PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"\x7fELF": "a program",
    b"SQLite format 3": "an SQLite database",
}
MEMBERS = {
    re.compile(r"(.*/)?(\.zarray|\.zgroup|\.zattrs|\.zmetadata|zarr\.json)"): "a Zarr archive",
    re.compile(r"xl/.*"): "an Excel workbook",
    re.compile(r"(word|ppt)/.*"): "an Office document",
    re.compile(r"META-INF/manifest\.xml"): "an OpenDocument file",
    re.compile(r"[^/]*/data\.pkl"): "a PyTorch file",
}
"""Names inside a zip that reveal its kind."""
POINTERS = {
    re.compile(rb"version https://git-lfs"): "Git LFS wrote it",
    re.compile(rb"(outs|deps|md5|wdir|frozen):.*\n(.*\n)*.*(md5|etag|path): "): "DVC wrote it",
    re.compile(rb"[./]*(\.git)?/annex/objects/"): "git-annex wrote it",
}
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
JSON = re.compile(rb"\s*[\[{]\s*[\"\[{\]}\d-]")
HTML = re.compile(rb"\s*<[!?A-Za-z]")
TEXT = bytes([*b"\0\t\n\f\r", *range(32, 127), *range(128, 256)])  # NUL has a message of its own
MOST_CONTROLS = 0.02  # share of control characters in a text; random bytes have 0.1


class FileKind(StrEnum):
    """The accepted kinds of submitted files."""

    TEXT = "text"  # probably CSV
    GZIP = "gzip"
    ZIP = "zip"  # one compressed file
    NPZ = "npz"  # a zip of NumPy arrays
    PARQUET = "parquet"


def sniff(file: BinaryIO, faults: Faults) -> FileKind:
    """Return the kind of a file, and leave the file at its beginning.

    Raises:
        Unreadable: If it is empty.
    """
    head = file.read(16)
    file.seek(0)
    if not head:
        raise faults.fatal("file.empty")
    if head.startswith(b"PAR1"):
        return FileKind.PARQUET
    if head.startswith(b"\x1f\x8b"):
        return FileKind.GZIP
    if head.startswith((b"PK\3\4", b"PK\5\6", b"PK\7\x08")):
        # numpy.savez writes its arrays one after the other. Other entries are checked later.
        return FileKind.NPZ if first_member(file).endswith(".npy") else FileKind.ZIP
    return FileKind.TEXT


def first_member(file: BinaryIO) -> str:
    """Return the name in the first local header of a zip, and leave the file at its beginning."""
    file.seek(0)
    head = file.read(30 + 256)
    file.seek(0)
    length = int.from_bytes(head[26:28], "little")
    return head[30 : 30 + length].decode("utf-8", "replace")


def kind_of_members(names: Iterable[str]) -> str | None:
    """Return what a zip is, judged by the names inside; None if it is an ordinary archive."""
    return next(
        (kind for name in names for pattern, kind in MEMBERS.items() if pattern.fullmatch(name)), None
    )


def kind_of_folder(folder: Path) -> str:
    """Return what a folder is, judged by the names inside."""
    kind = kind_of_members(entry.name for entry in folder.iterdir())
    return "a folder" if kind is None else f"a folder that holds {kind}"


def sniff_text(head: bytes, faults: Faults, *, nested: bool) -> None:
    """Refuse a text that is certainly not a table.

    Args:
        head: The first bytes after decompression.
        faults: Receives the fault.
        nested: Whether the bytes come from an archive.

    Raises:
        Unreadable: If it is not text, or text of another kind, such as HTML.
    """
    if not head:
        raise faults.fatal("file.empty")
    if head.startswith(WIDE_MARKS):
        raise faults.fatal("file.utf16")
    for magic, name in BINARIES.items():
        if head.startswith(magic) and (magic != b"PK" or head[2:4] in (b"\3\4", b"\5\6")):
            if nested:
                raise faults.fatal("archive.nested", f"inside is {name}")
            raise faults.fatal("file.kind", f"it is {name}")
    text = head.removeprefix(b"\xef\xbb\xbf")
    for pattern, program in POINTERS.items():
        if pattern.match(text):
            raise faults.fatal("file.pointer", program)
    if text.count(b"\0") * 4 > len(text):  # in UTF-16, every second byte of Western text is zero
        raise faults.fatal("file.utf16")
    if len(text.translate(None, TEXT)) > MOST_CONTROLS * len(text):
        raise faults.fatal("file.kind", "it is binary data, and may be damaged")
    if HTML.match(text):
        raise faults.fatal("file.html")
    if JSON.match(text):
        raise faults.fatal("file.json")
