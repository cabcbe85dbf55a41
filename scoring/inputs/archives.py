"""Compressed files as streams. Nothing is unpacked to disk, and names inside an archive are never used as paths."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from typing import BinaryIO, Protocol

from scoring.inputs.faults import Faults, shown
from scoring.inputs.sniffing import first_member, refuse_members

RATIO = 200  # highest expansion; embeddings reach 2 to 10, zeros in Deflate about 1000
RATIO_FROM_BYTES = 32 << 20  # no limit to the ratio below this size
DAMAGE = (
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    RuntimeError,  # NotImplementedError, too
    ValueError,
)
LARGEST_READ = 1 << 20  # bytes; a longer directory of a zip would hold thousands of names


class Readable(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes; none at the end."""


class Capped:
    """A stream that refuses to expand too far; at its end, the checksum of a compressed file is verified.

    Args:
        source: The expanded bytes.
        file: The underlying file.
        faults: Receives the faults.
        max_expanded_bytes: Most bytes to return in all.
    """

    def __init__(
        self,
        source: Readable,
        file: BinaryIO,
        faults: Faults,
        *,
        max_expanded_bytes: int,
    ) -> None:
        self._source = source
        self._size = file.seek(0, io.SEEK_END) or 1
        file.seek(0)
        self._faults = faults
        self._limit = max_expanded_bytes
        self._given = 0

    def read(self, size: int, /) -> bytes:
        """Return ``size`` bytes, or fewer at the end of the stream.

        Raises:
            Unreadable: If the stream is broken or expands too far.
        """
        pieces, missing = list[bytes](), size
        while missing and (more := self._read_piece(missing)):
            pieces.append(more)
            missing -= len(more)
        return b"".join(pieces)  # a single piece is not copied

    def _read_piece(self, size: int) -> bytes:
        try:
            data = self._source.read(min(size, LARGEST_READ))
        except DAMAGE:
            raise self._faults.fatal("archive.damaged") from None
        self._given += len(data)
        if self._given > self._limit:
            raise self._faults.fatal("file.too_large", f"more than {self._limit / 1e6:,.0f} MB")
        if self._given > RATIO_FROM_BYTES and self._given > RATIO * self._size:
            raise self._faults.fatal("archive.bomb", f"more than {RATIO} times")
        return data


def open_zip(file: BinaryIO, faults: Faults) -> Readable:
    """Open the one file in a zip as a stream.

    Raises:
        Unreadable: If the zip is damaged or encrypted, or does not hold exactly one file.
    """
    archive = open_directory(file, faults)
    members = [member for member in archive.infolist() if not _is_ignorable_entry(member.filename)]
    if len(members) != 1:
        refuse_members(archive.namelist(), faults)
        listed = ", ".join(shown(member.filename) for member in members[:3])
        raise faults.fatal(
            "archive.members", f"it holds {len(members):,}" + (f", first {listed}" if listed else "")
        )
    return open_member(archive, members[0], faults)


def open_directory(file: BinaryIO, faults: Faults) -> zipfile.ZipFile:
    """Read the directory of a zip, in bounded memory.

    Raises:
        Unreadable: If there is none, or it is too long or damaged.
    """
    try:
        return zipfile.ZipFile(_Bounded(file))
    except _DirectoryTooLong:
        refuse_members([first_member(file)], faults)
        raise faults.fatal("archive.members", "it holds thousands") from None
    except DAMAGE:
        raise faults.fatal("archive.damaged") from None


def open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, faults: Faults) -> Readable:
    """Open one file of a zip as a stream.

    Raises:
        Unreadable: If it is encrypted, damaged, or compressed in an uncommon way.
    """
    is_encrypted = member.flag_bits & 0x1
    if is_encrypted or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # LZMA, for example, may allocate gigabytes before the first byte.
        raise faults.fatal("archive.method")
    try:
        return archive.open(member)
    except DAMAGE:
        raise faults.fatal("archive.damaged") from None


def _is_ignorable_entry(name: str) -> bool:
    """Return whether an entry is a folder or one of the files that macOS adds to every zip, next to a file or in __MACOSX/."""
    last = name.rpartition("/")[2]
    return name.endswith("/") or last.startswith("._") or last == ".DS_Store"


class _DirectoryTooLong(Exception):
    """The directory of a zip is longer than ``LARGEST_READ``."""


class _Bounded:
    """A file that refuses large reads, because zipfile reads the whole directory at once, with the length that the file claims."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.tell = file.tell
        self.seekable = file.seekable

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a position; a negative one comes from a damaged directory, so it is reported as a bad zip."""
        if whence == io.SEEK_SET and offset < 0:
            raise zipfile.BadZipFile
        return self._file.seek(offset, whence)

    def read(self, size: int = -1, /) -> bytes:
        """Return up to ``size`` bytes; zipfile gives none where it looks for the end of the directory, in the last 64 KiB."""
        if size > LARGEST_READ:
            raise _DirectoryTooLong
        return self._file.read(size if size >= 0 else LARGEST_READ)
