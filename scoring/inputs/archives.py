"""Compressed files as streams. Nothing is unpacked to disk, and no name inside an archive is ever used."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, BinaryIO, Protocol

from scoring.inputs.faults import Faults, shown
from scoring.inputs.sniffing import first_member, kind_of_members

INPUT_BYTES = 256 << 10
MOST_MEMBERS = 100_000  # of a gzip file; bgzip makes one per 64 KB
RATIO = 200  # embeddings compress two- to tenfold; all zeros in Deflate a thousandfold
RATIO_FROM_BYTES = 32 << 20  # a small file may compress as it likes
DIRECTORY_BYTES = 1 << 20  # of a zip: room for thousands of names where one is allowed


class Readable(Protocol):
    """Anything that hands out bytes."""

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes; none at the end."""


class Capped:
    """A stream that stops at bombs and tells how far it is.

    Args:
        source: The expanded bytes.
        file: The file below, whose position tells how much was used up.
        faults: Where a fault goes.
        max_expanded_bytes: Most bytes to hand out.
        progress: Called with the share of the file below that was used up.
    """

    def __init__(
        self,
        source: Readable,
        file: BinaryIO,
        faults: Faults,
        *,
        max_expanded_bytes: int,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self._source = source
        self._file = file
        self._size = file.seek(0, io.SEEK_END) or 1
        file.seek(0)
        self._faults = faults
        self._limit = max_expanded_bytes
        self._progress = progress
        self._given = 0
        self._peeked = b""

    def peek(self, size: int) -> bytes:
        """Return the first bytes without using them up."""
        while len(self._peeked) < size:
            more = self._read(size - len(self._peeked))
            if not more:
                break
            self._peeked += more
        return self._peeked

    def read(self, size: int, /) -> bytes:
        """Return ``size`` bytes, fewer only at the end: streams of many small pieces cost the same as others.

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
        if self._progress is not None:
            self._progress(min(1.0, self._file.tell() / self._size))
        return data


class GzipStream:
    """The content of a gzip file, all its members one after the other; zlib checks their sums."""

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
        """Return whether no further member follows; padding with zeros is usual on tapes and block devices."""
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
        Unreadable: If the zip is damaged, encrypted, or holds another number of files.
    """
    archive = open_directory(file, faults)
    members = [member for member in archive.infolist() if not _is_by_the_way(member)]
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
    """Open one file of a zip as a stream that ends with a check of its sum.

    Raises:
        Unreadable: If it is encrypted, a link, damaged, or compressed in an uncommon way.
    """
    if member.flag_bits & 0x1:
        raise faults.fatal("archive.encrypted")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise faults.fatal("archive.symlink")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise faults.fatal("archive.method")  # LZMA may ask for gigabytes before the first byte
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


def _is_by_the_way(member: zipfile.ZipInfo) -> bool:
    """Return whether an entry is a folder or what macOS adds to every zip."""
    name = member.filename
    return name.endswith("/") or name.startswith("__MACOSX/") or name.rpartition("/")[2] == ".DS_Store"


class _DirectoryTooLong(Exception):
    """More is asked for in one piece than a directory for one file can need."""


class _Bounded(io.RawIOBase):
    """A file that refuses to hand out large pieces: zipfile reads the directory in one piece, as long as the file says it is."""

    def __init__(self, file: BinaryIO) -> None:
        self._below = file
        self.limit: int | None = DIRECTORY_BYTES

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be read in any order."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._below.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a position; one that a damaged directory invents is the archive's fault, not the disk's."""
        if whence == io.SEEK_SET and offset < 0:
            raise zipfile.BadZipFile
        return self._below.seek(offset, whence)

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes, all that is left without it."""
        wanted = -1 if size is None else size
        if self.limit is None:
            return self._below.read(wanted)
        if wanted > self.limit:
            raise _DirectoryTooLong
        data = self._below.read(wanted if wanted >= 0 else self.limit + 1)
        if len(data) > self.limit:
            raise _DirectoryTooLong
        return data
