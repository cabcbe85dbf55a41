"""From the challenge secret to the seeds of every fold, and from a seed to its split: scikit-learn's ShuffleSplit, without scikit-learn.

The secret gives one key per phase; the key gives two 32-bit seeds per (row set, fold). All teams and all resubmissions share them, tasks on
the same ids share their splits, and without the secret no split can be predicted. Inputs are domain-separated and length-prefixed, so that
no two uses of the key hash the same bytes. Test vectors are in ``docs/protocol.md``.

A split is a permutation of the rows: the first ``held_out(n, test_size)`` are the test part, the others the training part. If samples have
groups, the groups are permuted instead, and whole groups are the test part.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.protocol import DERIVATION_VERSION, framed

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
    return hashlib.sha256(framed((_COMMITMENT_DOMAIN, key))).hexdigest()


def fold_seeds(
    key: bytes, row_set: str, folds: int, *, derivation: int = DERIVATION_VERSION
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Derive the two seeds of every fold of one row set.

    Args:
        key: The phase key, see :func:`phase_key`.
        row_set: SHA-256 (hex) of the ids that the tasks use, with their groups, see :func:`scoring.protocol.row_set_hash`.
        folds: Number of folds; the seeds of fold k do not depend on it.
        derivation: Version of this derivation; part of the input.

    Returns:
        Split seeds and training seeds, uint32, one each per fold.
    """
    seeds = np.empty((2, folds), dtype=np.uint32)
    for fold in range(folds):
        message = (_SEEDS_DOMAIN, derivation.to_bytes(8, "big"), row_set.encode(), fold.to_bytes(8, "big"))
        digest = hmac.new(key, framed(message), hashlib.sha256).digest()
        seeds[0, fold] = int.from_bytes(digest[:4], "big")
        seeds[1, fold] = int.from_bytes(digest[4:8], "big")
    return seeds[0], seeds[1]


def held_out(rows: int, test_size: float) -> int:
    """Return the number of test rows, rounded up as ShuffleSplit does."""
    return math.ceil(test_size * rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """A split of n rows.

    Attributes:
        order: int32 n, a permutation of the rows, those of the test part first.
        tested: Number of test rows.
    """

    order: NDArray[np.int32]
    tested: int

    @property
    def test(self) -> NDArray[np.int32]:
        """The rows of the test part."""
        return self.order[: self.tested]

    @property
    def train(self) -> NDArray[np.int32]:
        """The rows of the training part."""
        return self.order[self.tested :]


class Splitter:
    """Makes the splits of one row set from seeds; keeps one generator, because making one costs more than seeding it.

    Args:
        rows: Number n of rows.
        test_size: Share of the test part.
        groups: int32 n, the number of each row's group, see :func:`group_numbers`; None if rows have no groups.
    """

    def __init__(self, rows: int, test_size: float, groups: NDArray[np.int32] | None = None) -> None:
        self._rows, self._test_size, self._groups = rows, test_size, groups
        self._sizes = [] if groups is None else np.bincount(groups).tolist()
        self._generator = np.random.RandomState()

    def split(self, seed: int) -> Split:
        """Draw the split of a seed; without groups, the first of ``ShuffleSplit(test_size=test_size, random_state=seed)``."""
        self._generator.seed(seed)
        return self._next()

    def splits(self, seed: int, folds: int) -> Iterator[Split]:
        """Draw several splits from one seed; without groups, those of ``ShuffleSplit(folds, test_size, random_state=seed)``."""
        self._generator.seed(seed)
        return (self._next() for _ in range(folds))

    def _next(self) -> Split:
        if self._groups is None:
            order = self._generator.permutation(self._rows).astype(np.int32)
            return Split(order=order, tested=held_out(self._rows, self._test_size))
        drawn = self._generator.permutation(len(self._sizes)).tolist()
        is_tested = np.zeros(len(drawn), dtype=np.bool_)
        is_tested[_test_groups(drawn, self._sizes, self._test_size * self._rows)] = True
        is_test = is_tested[self._groups]
        order = np.argsort(~is_test, kind="stable").astype(np.int32)
        return Split(order=order, tested=int(is_test.sum()))


def _test_groups(drawn: Sequence[int], sizes: Sequence[int], wanted: float) -> list[int]:
    """Return the groups of the test part: in the drawn order, each that brings the number of its rows nearer to the one wanted.

    If none does, it is the first of the smallest.
    """
    chosen, rows = [], 0
    for group in drawn:
        if rows >= wanted:
            break  # any other group would lead away
        if abs(rows + sizes[group] - wanted) < abs(rows - wanted):
            chosen.append(group)
            rows += sizes[group]
    return chosen or [min(drawn, key=lambda group: sizes[group])]


def never_tested(sizes: Sequence[int], test_size: float) -> list[int]:
    """Return the sizes of the groups that are in no test part: those with at least twice the rows wanted, unless no group has fewer."""
    smallest, least = min(sizes), 2 * test_size * sum(sizes)
    return [size for size in sizes if size >= least and size > smallest]


def test_parts(tests: Iterable[NDArray[np.int32]]) -> tuple[int, ...]:
    """Number the test parts of folds, from 0 in the order of the first fold with each; empty if no two folds have the same one."""
    number: dict[bytes, int] = {}
    parts = tuple(number.setdefault(np.sort(test).tobytes(), len(number)) for test in tests)
    return parts if len(number) < len(parts) else ()


def group_numbers(names: Sequence[str]) -> NDArray[np.int32]:
    """Number the groups of rows from 0 in the order of their names' UTF-8 bytes."""
    ordered = sorted(set(names), key=str.encode)
    number = {name: place for place, name in enumerate(ordered)}
    return np.array([number[name] for name in names], dtype=np.int32)
