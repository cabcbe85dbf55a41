"""Embeddings in canonical form: one row per public id, in a fixed order, with a hash of the content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.protocol import framed

HASH_DOMAIN = b"neuco-worker embeddings 1\0"
SUFFIX = re.compile(r"\.zarr(\.zip)?\Z")


@dataclass(frozen=True, kw_only=True, eq=False)
class Embeddings:
    """A submission's embeddings of exactly the phase's public ids.

    Attributes:
        ids: The public ids, sorted by their UTF-8 bytes.
        matrix: float32, n x N, C-contiguous; row i belongs to ``ids[i]``, column j to dimension j. Zeros are positive, all values finite.
        content_hash: SHA-256 (hex) of ids and matrix, see :func:`content_hash`. Equal hashes mean equal scores.
        notes: What was ignored or corrected, in sentences for the participant.
        zarr_suffix_removed: Whether ids ended with ``.zarr`` or ``.zarr.zip``.
    """

    ids: tuple[str, ...]
    matrix: NDArray[np.float32]
    content_hash: str
    notes: tuple[str, ...] = ()
    zarr_suffix_removed: bool = False

    @classmethod
    def from_canonical(cls, content: bytes, ids: Sequence[str], columns: int) -> Embeddings:
        """Read what :func:`canonical_parts` writes.

        Args:
            content: The bytes.
            ids: The public ids, in any order.
            columns: Number N of values per id.

        Raises:
            ValueError: If it does not hold exactly these ids, with N finite numbers for each.
        """
        names = tuple(sorted(ids, key=str.encode))
        header = _header(names, (len(names), columns))
        if len(content) != len(header) + 4 * len(names) * columns or not content.startswith(header):
            raise ValueError("the content is not one of these ids and of so many numbers")
        numbers = np.frombuffer(content, dtype="<f4", offset=len(header))
        matrix = numbers.reshape(len(names), columns).astype(np.float32)
        if not np.isfinite(matrix).all():
            raise ValueError("a value is not finite")
        return cls(ids=names, matrix=matrix, content_hash=hashlib.sha256(content).hexdigest())


def content_hash(ids: Sequence[str], matrix: NDArray[np.float32]) -> str:
    """Hash sorted ids and their float32 rows, so that the file's format and its order of rows and columns do not matter.

    Returns:
        SHA-256 (hex) of the bytes of :func:`canonical_parts`.
    """
    digest = hashlib.sha256()
    for part in canonical_parts(ids, matrix):
        digest.update(part)
    return digest.hexdigest()


def canonical_parts(ids: Sequence[str], matrix: NDArray[np.float32]) -> Iterator[bytes | memoryview]:
    """Return the bytes of a content, as they are hashed and published, in two parts.

    The first part has a domain separator, both dimensions as 64-bit big-endian numbers, and every id after its length; the second is the
    matrix as little-endian float32, row by row.
    """
    yield _header(ids, matrix.shape)
    yield np.ascontiguousarray(matrix, dtype="<f4").data.cast("B")


def canonical_bytes(ids: Sequence[str], columns: int) -> int:
    """Return the size of a content with these ids and this number of columns."""
    return len(_header(ids, (len(ids), columns))) + 4 * len(ids) * columns


def _header(ids: Sequence[str], shape: tuple[int, ...]) -> bytes:
    lengths = (length.to_bytes(8, "big") for length in shape)
    return b"".join((HASH_DOMAIN, *lengths, framed(map(str.encode, ids))))


def without_suffix(identifier: str) -> str:
    """Return the id without ``.zarr`` or ``.zarr.zip``, which it has if samples are named after their files (as in SSL4EO-S12)."""
    return SUFFIX.sub("", identifier) if identifier.endswith((".zarr", ".zip")) else identifier
