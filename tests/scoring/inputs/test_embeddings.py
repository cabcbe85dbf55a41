"""The canonical form of embeddings and its hash."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scoring.inputs.embeddings import (
    Embeddings,
    canonical_bytes,
    canonical_parts,
    without_suffix,
)


@given(data=st.data(), ids=st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=6, unique=True))
def test_row_order_and_signs_of_zero_do_not_matter(data: st.DataObject, ids: list[str]) -> None:
    """Any order of rows gives the same ids, bits and hash; -0.0 is 0.0."""
    ids = [name for name in ids if name.isprintable()] or ["a"]
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    matrix = data.draw(hnp.arrays(np.float32, (len(ids), 3), elements=finite))
    order = data.draw(st.permutations(range(len(ids))))
    first = Embeddings.from_rows(ids, matrix)
    second = Embeddings.from_rows([ids[row] for row in order], np.where(matrix == 0, -0.0, matrix)[order])
    assert first.ids == second.ids == tuple(sorted(ids, key=str.encode))
    assert first.matrix.tobytes() == second.matrix.tobytes()
    assert first.content_hash == second.content_hash


def test_the_hash_is_what_the_documentation_says() -> None:
    """The hash can be recomputed from its description, without our code."""
    text = b"neuco-worker embeddings 1\0" + struct.pack(">QQ", 2, 1)
    text += struct.pack(">Q", 1) + b"a" + struct.pack(">Q", 2) + "ü".encode() + struct.pack("<ff", 1.5, -2.0)
    expected = hashlib.sha256(text).hexdigest()
    assert Embeddings.from_rows(["ü", "a"], np.array([[-2.0], [1.5]])).content_hash == expected


@pytest.mark.parametrize("ids", [["a", "a"], ["a"], ["a", "b", "c"]])
def test_rows_need_distinct_ids(ids: list[str]) -> None:
    """A mismatch raises a ValueError."""
    with pytest.raises(ValueError, match="one row per distinct id"):
        Embeddings.from_rows(ids, np.zeros((2, 1)))


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
    embeddings = Embeddings.from_rows(ids, matrix)
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
