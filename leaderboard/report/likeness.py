"""What is too alike: embeddings of different teams that differ only by noise, scale or a rotation."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from leaderboard.snapshot import Entry

SAMPLE = 1000  # most rows that are compared; more would change the similarity in its third digit
# A copy with noise of a quarter of the spread is above this; the most similar honest methods on the same images reach 0.92.
NEAR = 0.97
FEWEST = 4  # rows that the unbiased centering needs


def similarities_of_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the similarities between the rows of an embedding, which do not depend on its axes.

    Columns are standardized first, and constant columns are left out. If there are more than ``SAMPLE`` rows, the same evenly spaced ones
    are taken from every submission.

    Args:
        rows: n x N, in the order of the sorted ids.

    Returns:
        The Gram matrix with unbiased centering (Song et al. 2012) and unit norm, so that the inner product of two is their linear CKA
        (Kornblith et al. 2019); all zeros if there is nothing to compare.
    """
    taken = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE)).astype(int)].astype(np.float64)
    number = len(taken)
    if number < FEWEST:
        return np.zeros((number, number), dtype=np.float32)
    taken -= taken.mean(axis=0)
    spread = taken.std(axis=0)
    taken = taken[:, spread > 0] / spread[spread > 0]
    gram = taken @ taken.T
    np.fill_diagonal(gram, 0.0)
    sums = gram.sum(axis=0)
    gram += sums.sum() / ((number - 1) * (number - 2)) - (sums[:, np.newaxis] + sums) / (number - 2)
    np.fill_diagonal(gram, 0.0)
    length = float(np.linalg.norm(gram))
    return np.asarray(gram / length if length > 0 else gram, dtype=np.float32)


def near_copies(
    submissions: Mapping[int, NDArray[np.float32]], entries: Mapping[int, Entry]
) -> list[tuple[float, int, int]]:
    """Return the similarity and the two submissions of each near copy between teams, the most similar first.

    The similarity is linear CKA, which is 1 for embeddings that are equal up to rotation and scale. Equal embeddings are left out.

    Args:
        submissions: Submission to its :func:`similarities_of_rows`.
        entries: These submissions, perhaps among others.
    """
    pairs = [
        (float(np.vdot(submissions[first], submissions[second])), first, second)
        for first, second in itertools.combinations(sorted(submissions), 2)
        if entries[first].team_key != entries[second].team_key
        and entries[first].content_hash != entries[second].content_hash
    ]
    return sorted((pair for pair in pairs if pair[0] >= NEAR), key=lambda pair: (-pair[0], *pair[1:]))
