"""The protocol: everything that decides a score, and its hash.

Two scores may be compared only if they were made with the same protocol. Its hash is part of the key of every score cell, so it covers what
changes a score (phase, ids, secret, folds, every hyper-parameter) and nothing that changes at most its rounding (threads, engine, machine,
library versions).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from scoring.documents import canonical

# How seeds follow from the secret, see randomness/seeds.py; scores of another version get cells of their own.
DERIVATION_VERSION = 1
_GROUPED_DOMAIN = b"neuco-worker/row-set-with-groups"


MOST_REPEATS = 100_000
"""The largest number of epochs or folds; what is larger is a slip."""
MOST_NUMBERS = 1_000_000
"""The largest number of dimensions, or of samples of a step."""
LEAST_RATE, MOST_RATE = 1e-12, 1e6
"""The limits of a learning rate."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the linear probes are trained and scored (paper Section 3.2, A.1, B.2); the defaults are those of the 2025 challenge."""

    epochs: int = 20
    batch_size: int = 64
    learning_rate: float = 0.001
    test_size: float = 0.1
    standardize_embeddings: bool = True
    normalize_labels: bool = True
    epsilon: float = 0.02
    max_failed_folds: int = 3


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One phase's recipe with its folds, public ids and secret.

    Attributes:
        phase: EvalAI phase codename.
        folds: Number K of random train/test splits.
        embedding_dim: Public dimension N of an embedding.
        ids_hash: SHA-256 (hex) of the sorted public id list, see :func:`ids_hash`.
        secret_commitment: SHA-256 (hex) binding the phase key, see :func:`scoring.randomness.seeds.secret_commitment`.
        recipe: The hyper-parameters.
        derivation: Version of how seeds are derived from the phase key.
    """

    phase: str
    folds: int
    embedding_dim: int
    ids_hash: str
    secret_commitment: str
    recipe: Recipe = Recipe()
    derivation: int = DERIVATION_VERSION

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the canonical JSON of all fields."""
        return hashlib.sha256(canonical(asdict(self))).hexdigest()


def ids_hash(ids: tuple[str, ...]) -> str:
    """Hash an id list, independently of its order.

    Ids are sorted by their UTF-8 bytes and length-prefixed, so that no two lists are hashed from the same bytes.

    Returns:
        SHA-256 in hex.
    """
    return hashlib.sha256(framed(sorted(identifier.encode() for identifier in ids))).hexdigest()


def row_set_hash(ids: tuple[str, ...], groups: tuple[str, ...] = ()) -> str:
    """Hash the ids of a task, each with its group; without groups, this is :func:`ids_hash`.

    Returns:
        SHA-256 in hex.
    """
    if not groups:
        return ids_hash(ids)
    pairs = sorted(
        (identifier.encode(), group.encode()) for identifier, group in zip(ids, groups, strict=True)
    )
    parts = [_GROUPED_DOMAIN, *(part for pair in pairs for part in pair)]
    return hashlib.sha256(framed(parts)).hexdigest()


def framed(parts: Iterable[bytes]) -> bytes:
    """Join parts, each after its length, so that no two sequences of parts give the same bytes."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
