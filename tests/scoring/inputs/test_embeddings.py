"""The canonical form of embeddings and its hash."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest

from scoring.inputs.embeddings import (
    Embeddings,
    canonical_bytes,
    canonical_parts,
    content_hash,
    without_suffix,
)
from tests.scoring.inputs.reading_tables import embeddings_of


def test_the_hash_is_what_the_documentation_says() -> None:
    """The hash can be recomputed from its description, without our code."""
    text = b"neuco-worker embeddings 1\0" + struct.pack(">QQ", 2, 1)
    text += struct.pack(">Q", 1) + b"a" + struct.pack(">Q", 2) + "ü".encode() + struct.pack("<ff", 1.5, -2.0)
    expected = hashlib.sha256(text).hexdigest()
    assert content_hash(("a", "ü"), np.array([[1.5], [-2.0]], dtype=np.float32)) == expected


@pytest.mark.parametrize(
    ("written", "identifier"),
    [
        ("a.zarr", "a"),
        ("a.zarr.zip", "a"),
        ("a.zip", "a.zip"),
        ("a.zarr.tar", "a.zarr.tar"),
        ("a.zarr\n", "a.zarr\n"),
        ("a.zarr.zarr", "a.zarr"),
        ("zarr", "zarr"),
        ("a", "a"),
    ],
)
def test_only_the_two_suffixes_are_removed(written: str, identifier: str) -> None:
    """One ``.zarr`` or ``.zarr.zip`` at the end is removed, and nothing else."""
    assert without_suffix(written) == identifier


def test_the_written_content_has_the_content_hash() -> None:
    """Its SHA-256 is the content hash; it is read back unchanged, and refused with other ids, sizes or numbers that are not finite."""
    ids, matrix = ("b", "ü", "a"), np.array([[1.0, -0.0], [2.5, 3.0], [1e-30, -7.0]], dtype=np.float32)
    embeddings = embeddings_of(ids, matrix)
    content = b"".join(canonical_parts(embeddings.ids, embeddings.matrix))
    assert hashlib.sha256(content).hexdigest() == embeddings.content_hash
    assert len(content) == canonical_bytes(ids, 2)
    read = Embeddings.from_canonical(content, ids, 2)
    assert (read.ids, read.content_hash) == (embeddings.ids, embeddings.content_hash)
    assert read.matrix.tobytes() == embeddings.matrix.tobytes()
    assert read.matrix.flags.c_contiguous
    assert read.matrix.flags.writeable
    odd = content[:-4] + struct.pack("<f", float("nan"))
    for wrong, names, columns in (
        (content, ("a", "b", "u"), 2),
        (content, ids, 1),
        (content[:-4], ids, 2),
        (content + b"0", ids, 2),
        (odd, ids, 2),
    ):
        with pytest.raises(ValueError, match=r"content|finite"):
            Embeddings.from_canonical(wrong, names, columns)
