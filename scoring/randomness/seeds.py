"""From the challenge secret to the seeds of every fold, and from a seed to its split: scikit-learn's ShuffleSplit, without scikit-learn.

The secret gives one key per phase; the key gives two 32-bit seeds per (row set, fold). All teams and all resubmissions share them, tasks on
the same ids share their splits, and without the secret no split can be predicted. Inputs are domain-separated and length-prefixed, so that
no two uses of the key hash the same bytes. Test vectors are in ``docs/protocol.md``.

A split is a permutation of the rows: the first ``held_out(n, test_size)`` are the test part, the others the training part.
"""

from __future__ import annotations

import hashlib
import hmac
import math

import numpy as np
from numpy.typing import NDArray

from scoring.protocol import DERIVATION_VERSION

_SEEDS_DOMAIN = b"neuco-worker/seeds"
_COMMITMENT_DOMAIN = b"neuco-worker/phase-key-commitment"


def phase_key(secret: bytes, phase: str) -> bytes:
    """Derive the key of one phase: HMAC-SHA256(secret, phase).

    The key can be revealed after the phase without giving away those of other phases.

    Args:
        secret: The challenge secret, 32 random bytes.
        phase: EvalAI phase codename.

    Returns:
        32 bytes.
    """
    return hmac.new(secret, phase.encode(), hashlib.sha256).digest()


def secret_commitment(key: bytes) -> str:
    """Return the SHA-256 (hex) that commits to a phase key without showing it, and may be published before the phase starts."""
    return hashlib.sha256(_framed(_COMMITMENT_DOMAIN, key)).hexdigest()


def fold_seeds(
    key: bytes, row_set: str, folds: int, *, derivation: int = DERIVATION_VERSION
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Derive the two seeds of every fold of one row set.

    Args:
        key: The phase key, see :func:`phase_key`.
        row_set: SHA-256 (hex) of the sorted ids that the tasks use, see :func:`scoring.protocol.ids_hash`.
        folds: Number of folds; the seeds of fold k do not depend on it.
        derivation: Version of this derivation; part of the input.

    Returns:
        Split seeds and training seeds, uint32, one each per fold.
    """
    seeds = np.empty((2, folds), dtype=np.uint32)
    for fold in range(folds):
        message = _framed(
            _SEEDS_DOMAIN, derivation.to_bytes(8, "big"), row_set.encode(), fold.to_bytes(8, "big")
        )
        digest = hmac.new(key, message, hashlib.sha256).digest()
        seeds[0, fold] = int.from_bytes(digest[:4], "big")
        seeds[1, fold] = int.from_bytes(digest[4:8], "big")
    return seeds[0], seeds[1]


def _framed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def held_out(rows: int, test_size: float) -> int:
    """Return the number of test rows, rounded up as ShuffleSplit does."""
    return math.ceil(test_size * rows)


class Splitter:
    """Makes splits from seeds; keeps one generator, because making one costs more than seeding it."""

    def __init__(self) -> None:
        self._generator = np.random.RandomState()

    def permutation(self, seed: int, rows: int) -> NDArray[np.int32]:
        """Permute the rows as ``ShuffleSplit(random_state=seed)`` does for its first split."""
        self._generator.seed(seed)
        return self._generator.permutation(rows).astype(np.int32)
