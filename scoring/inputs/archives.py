"""Compressed files as streams. Nothing is unpacked to disk, and names inside an archive are never used as paths."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from typing import IO, BinaryIO, Protocol

from scoring.inputs.faults import Faults, shown
from scoring.inputs.sniffing import first_member, kind_of_members

INPUT_BYTES = 256 << 10
MOST_MEMBERS = 100_000  # in a gzip file; bgzip writes one per 64 KB
RATIO = 200  # highest expansion; embeddings reach 2 to 10, zeros in Deflate about 1000
RATIO_FROM_BYTES = 32 << 20  # no limit to the ratio below this size
DIRECTORY_BYTES = 1 << 20  # longest directory of a zip; it would hold thousands of names


class Readable(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes; none at the end."""


class Capped:
    """A stream that refuses to expand too far.

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
        self._peeked = b""

    def peek(self, size: int) -> bytes:
        """Return the first bytes without consuming them."""
        while len(self._peeked) < size:
            more = self._read(size - len(self._peeked))
            if not more:
                break
            self._peeked += more
        return self._peeked

    def read(self, size: int, /) -> bytes:
        """Return ``size`` bytes, or fewer at the end of the stream.

        Raises:
            Unreadable: If the stream is broken or expands too far.
        """
        pieces = [self._peeked[:size]]
        self._peeked = self._peeked[size:]
        missing = size - len(pieces[0])
        while missing:
            more = self._read(missing)
            if not more:
                break
            pieces.append(more)
            missing -= len(more)
        return b"".join(pieces)

    def _read(self, size: int) -> bytes:
        data = self._source.read(size)
        self._given += len(data)
        if self._given > self._limit:
            raise self._faults.fatal("file.too_large", f"more than {self._limit / 1e6:,.0f} MB")
        if self._given > RATIO_FROM_BYTES and self._given > RATIO * self._size:
            raise self._faults.fatal("archive.bomb", f"more than {RATIO} times")
        return data


class GzipStream:
    """The content of a gzip file: all members one after the other, with checksums verified by zlib."""

    def __init__(self, file: BinaryIO, faults: Faults) -> None:
        self._file = file
        self._faults = faults
        self._input = b""
        self._members = 0
        self._inflater: zlib._Decompress | None = None

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes; none at the end.

        Raises:
            Unreadable: If the file is cut off or damaged.
        """
        while True:
            if not self._input:
                self._input = self._file.read(INPUT_BYTES)
            if self._inflater is None:
                if self._at_end():
                    return b""
                self._inflater = zlib.decompressobj(wbits=31)
            out = self._inflate(self._inflater, size)
            if out:
                return out

    def _inflate(self, inflater: zlib._Decompress, size: int) -> bytes:
        given = self._input
        try:
            out = inflater.decompress(given, size)
        except zlib.error:
            raise self._faults.fatal("archive.damaged") from None
        if inflater.eof:
            self._input = inflater.unused_data
            self._inflater = None
        else:
            self._input = inflater.unconsumed_tail
            if not out and not given:
                raise self._faults.fatal("archive.truncated")
        return out

    def _at_end(self) -> bool:
        """Return whether no member follows; zeros at the end are allowed, because tapes and block devices pad with them."""
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise self._faults.fatal("archive.damaged", "it consists of too many pieces")
        while self._members > 1:
            self._input = self._input.lstrip(b"\0")
            if self._input:
                break
            self._input = self._file.read(INPUT_BYTES)
            if not self._input:
                return True
        if len(self._input) < 2:
            self._input += self._file.read(INPUT_BYTES)
        if self._members > 1 and not self._input.startswith(b"\x1f\x8b"):
            raise self._faults.fatal("archive.damaged", "something follows after its end")
        return not self._input


def open_gzip(file: BinaryIO, faults: Faults) -> Readable:
    """Open a gzip file as a stream."""
    return GzipStream(file, faults)


def open_zip(file: BinaryIO, faults: Faults) -> Readable:
    """Open the one file in a zip as a stream.

    Raises:
        Unreadable: If the zip is damaged or encrypted, or does not hold exactly one file.
    """
    archive = open_directory(file, faults)
    members = [member for member in archive.infolist() if not _is_ignorable_entry(member)]
    if len(members) != 1:
        if (kind := kind_of_members(archive.namelist())) is not None:
            raise faults.fatal("file.kind", f"it is {kind}")
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
    bounded = _Bounded(file)
    try:
        archive = zipfile.ZipFile(bounded)
    except _DirectoryTooLong:
        if (kind := kind_of_members([first_member(file)])) is not None:
            raise faults.fatal("file.kind", f"it is {kind}") from None
        raise faults.fatal("archive.members", "it holds thousands") from None
    except (zipfile.BadZipFile, NotImplementedError, ValueError, LookupError, struct.error, EOFError):
        raise faults.fatal("archive.truncated") from None
    bounded.limit = None
    return archive


def open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, faults: Faults) -> Readable:
    """Open one file of a zip as a stream, whose checksum is verified at its end.

    Raises:
        Unreadable: If it is encrypted, a link, damaged, or compressed in an uncommon way.
    """
    if member.flag_bits & 0x1:
        raise faults.fatal("archive.encrypted")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise faults.fatal("archive.symlink")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # LZMA, for example, may allocate gigabytes before the first byte.
        raise faults.fatal("archive.method")
    try:
        return MemberStream(archive.open(member), faults)
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        RuntimeError,
        ValueError,
        LookupError,
        struct.error,
        EOFError,
    ):
        raise faults.fatal("archive.damaged") from None


class MemberStream:
    """One file of a zip."""

    def __init__(self, member: IO[bytes], faults: Faults) -> None:
        self._member = member
        self._faults = faults

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes; none at the end.

        Raises:
            Unreadable: If the file is cut off or damaged.
        """
        try:
            return self._member.read(size)
        except EOFError:
            raise self._faults.fatal("archive.truncated") from None
        except (zipfile.BadZipFile, zlib.error, ValueError):
            raise self._faults.fatal("archive.damaged") from None


def _is_ignorable_entry(member: zipfile.ZipInfo) -> bool:
    """Return whether an entry is a folder or one of the files that macOS adds to every zip."""
    name = member.filename
    return name.endswith("/") or name.startswith("__MACOSX/") or name.rpartition("/")[2] == ".DS_Store"


class _DirectoryTooLong(Exception):
    """The directory of a zip is longer than ``DIRECTORY_BYTES``."""


class _Bounded(io.RawIOBase):
    """A file that refuses large reads, because zipfile reads the whole directory at once, with the length that the file claims."""

    def __init__(self, file: BinaryIO) -> None:
        self._below = file
        self.limit: int | None = DIRECTORY_BYTES

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._below.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a position; a negative one comes from a damaged directory, so it is reported as a bad zip."""
        if whence == io.SEEK_SET and offset < 0:
            raise zipfile.BadZipFile
        return self._below.seek(offset, whence)

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes, or all that are left if it is negative or None."""
        wanted = -1 if size is None else size
        if self.limit is None:
            return self._below.read(wanted)
        if wanted > self.limit:
            raise _DirectoryTooLong
        data = self._below.read(wanted if wanted >= 0 else self.limit + 1)
        if len(data) > self.limit:
            raise _DirectoryTooLong
        return data
