"""The dynamic rank: per-task ranks, weighted by how far each task spreads the entries.

All functions work on arrays whose last two axes are entries x tasks, so the bootstrap ranks thousands of replicates with the code that
ranks the official table (paper Eq. 2, 4 and 8).

*Weighing* entries decide the weights and the per-task ranks; *numbered* entries decide the final rank numbers. A team in competition is
both. A baseline is never numbered, and weighs unless the organizer switched that off. A team out of competition is neither. Entries
that are not numbered get the rank that they would have, one plus the number of better numbered entries, so they move nobody.

Entries that are neither are *apart*: below all others, in the order of the ranks that they would have. The task ranks of the others lack
them, so each is compared with ranks that it has pushed down: on every task on which it is better, by one.

The dynamic rank depends on all entries: a team's submission changes the task weights and may swap two others (paper A.3). Leaving teams
out one at a time shows which pairs depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Weighted ranks are compared after rounding to 1e-9, because smaller differences are rounding errors.
DIGITS = 9
LARGEST = 1e100  # largest score; its square is still finite


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """The official standings of one table of quality scores, P entries x T tasks, in the order of the input.

    Attributes:
        weights: T task weights; they sum to one, or to less with a ghost task.
        task_ranks: P x T per-task ranks.
        weighted_ranks: P weighted ranks, rounded for comparison; lower is better.
        ranks: P final ranks; ties share the better rank.
        means: P mean quality scores.
        ranks_by_mean: P ranks by mean quality score, which decide the second award.
        order: Entry indices from the top of the board to its bottom.
    """

    weights: tuple[float, ...]
    task_ranks: tuple[tuple[int, ...], ...]
    weighted_ranks: tuple[float, ...]
    ranks: tuple[int, ...]
    means: tuple[float, ...]
    ranks_by_mean: tuple[int, ...]
    order: tuple[int, ...]


def rank(
    quality: NDArray[np.float64],
    *,
    weighs: NDArray[np.bool_] | None = None,
    numbered: NDArray[np.bool_] | None = None,
    ghost_task: float = 0.0,
    tie_breaks: Sequence[object] | None = None,
) -> Ranking:
    """Rank entries by weighted per-task ranks (paper Eq. 2).

    Weighted ranks are summed exactly (fsum), so that the order of the tasks or entries cannot decide a rank.

    Args:
        quality: P x T finite quality scores.
        weighs: P booleans, see the module; all True by default.
        numbered: P booleans, see the module; all True by default.
        ghost_task: δ0 of Eq. 8; 0 is off.
        tie_breaks: P comparable values that order entries of equal rank and mean on the board; they never change a rank.

    Raises:
        ValueError: If the table has no tasks, or a score is not finite or beyond ``LARGEST``.
    """
    entries, tasks = quality.shape
    if not tasks or not (np.abs(quality) <= LARGEST).all():
        raise ValueError("a table of quality scores needs at least one task and finite scores only")
    weighs = np.ones(entries, bool) if weighs is None else weighs
    numbered = np.ones(entries, bool) if numbered is None else numbered
    weights = task_weights(quality, weighs, ghost_task)
    per_task = task_ranks(quality, weighs)
    weighted = [round(math.fsum(row), DIGITS) for row in (per_task * weights).tolist()]
    means = np.array([math.fsum(row) / tasks for row in quality.tolist()])
    ranks = ranks_of(np.array(weighted), quality, weights, weighs=weighs, numbered=numbered).tolist()
    apart = ~(weighs | numbered)
    order = sorted(
        range(entries),
        key=lambda i: (
            apart[i],
            ranks[i] if apart[i] else 0,
            weighted[i],
            not numbered[i],
            -means[i],
            tie_breaks[i] if tie_breaks else i,
        ),
    )
    return Ranking(
        weights=tuple(weights.tolist()),
        task_ranks=tuple(map(tuple, per_task.tolist())),
        weighted_ranks=tuple(weighted),
        ranks=tuple(ranks),
        means=tuple(means.tolist()),
        ranks_by_mean=tuple(final_ranks(-means, numbered).tolist()),
        order=tuple(order),
    )


def task_weights(
    quality: NDArray[np.float64], weighs: NDArray[np.bool_], ghost_task: float = 0.0
) -> NDArray[np.float64]:
    """Return task weights: each population standard deviation over the entries, divided by the sum over all tasks (paper Eq. 2, 8).

    Without a ghost task, weights are uniform if every task scores all entries the same, or if no entry weighs.

    Args:
        quality: ... x P x T.
        weighs: P booleans.
        ghost_task: δ0, added to the sum only.

    Returns:
        ... x T.
    """
    spread = spreads(quality, weighs)
    return shares(spread, np.ones_like(spread), ghost_task)


def spreads(quality: NDArray[np.float64], weighs: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the population standard deviation of each task over the weighing entries. Maps ... x P x T to ... x T."""
    # Sorted, because the result must not depend on the order of teams, but a sum of floats depends on its order.
    weighing = np.sort(quality[..., weighs, :], axis=-2)
    if weighing.shape[-2] == 0:
        return np.zeros((*quality.shape[:-2], quality.shape[-1]))
    # Equal scores have no spread, but the rounding of their mean could leave some.
    equal = weighing[..., 0, :] == weighing[..., -1, :]
    return np.where(equal, 0.0, weighing.std(axis=-2))


def shares(
    spread: NDArray[np.float64], counts: NDArray[np.float64], ghost_task: float = 0.0
) -> NDArray[np.float64]:
    """Return the weights of tasks that count so many times each; if the sum of the spreads is 0, those of equal spreads.

    Args:
        spread: ... x T.
        counts: ... x T, not all of them 0.
        ghost_task: δ0, added to the sum only.
    """
    counted = spread * counts
    total = ghost_task + np.sort(counted, axis=-1).sum(axis=-1, keepdims=True)
    uniform = counts / counts.sum(axis=-1, keepdims=True)
    return np.asarray(
        np.divide(counted, total, out=uniform, where=np.broadcast_to(total > 0.0, counted.shape))
    )


def task_ranks(quality: NDArray[np.float64], weighs: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Rank entries within each task: one plus the number of weighing entries with a higher quality score.

    Args:
        quality: ... x P x T.
        weighs: P booleans.

    Returns:
        ... x P x T.
    """
    return np.moveaxis(final_ranks(-np.moveaxis(quality, -2, -1), weighs), -1, -2)


def weighted_ranks(ranks: NDArray[np.int32], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum weight times rank over tasks, rounded for comparison (paper Eq. 2). Maps ... x P x T and ... x T to ... x P."""
    total = np.zeros(np.broadcast_shapes(ranks.shape[:-1], (*weights.shape[:-1], 1)))
    for task in range(ranks.shape[-1]):
        total += ranks[..., task] * weights[..., None, task]
    return np.round(total, DIGITS)


def final_ranks(scores: NDArray[np.float64], numbered: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Rank by scores, lower is better: one plus the number of numbered entries with a lower score. Maps ... x P to ... x P."""
    order = np.argsort(scores, axis=-1)
    ordered = np.take_along_axis(scores, order, axis=-1)
    counts = numbered[order].astype(np.int32)
    before = np.cumsum(counts, axis=-1, dtype=np.int32) - counts
    tied = ordered[..., 1:] == ordered[..., :-1]
    before[..., 1:][tied] = 0  # equal scores share the rank of the first
    ahead = np.empty(scores.shape, np.int32)
    np.put_along_axis(ahead, order, np.maximum.accumulate(before, axis=-1), axis=-1)
    return 1 + ahead


Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def ranks_of(
    weighted: Floats, quality: Floats, weights: Floats, *, weighs: Flags, numbered: Flags
) -> NDArray[np.int32]:
    """Return final ranks: one plus the number of numbered entries with a lower weighted rank, pushed down by an entry that is apart.

    Args:
        weighted: ... x P weighted ranks.
        quality: P x T or ... x P x T quality scores.
        weights: ... x T.
        weighs: P booleans.
        numbered: P booleans.

    Returns:
        ... x P.
    """
    ranks = final_ranks(weighted, numbered)
    for index in np.flatnonzero(~(weighs | numbered)).tolist():
        others = pushed(weighted, quality, weights, index)[..., numbered]
        ranks[..., index] = 1 + (others < weighted[..., index, None]).sum(axis=-1)
    return ranks


def pushed(weighted: Floats, quality: Floats, weights: Floats, index: int) -> Floats:
    """Return the weighted ranks of all entries after an entry that is apart has pushed them down where it is better: ... x P."""
    better = quality[..., index, None, :] > quality
    return np.asarray(np.round(weighted + (better * weights[..., None, :]).sum(axis=-1), DIGITS))


def leave_one_out(
    quality: Floats, *, weighs: Flags, numbered: Flags, ghost_task: float = 0.0
) -> dict[int, list[tuple[int, int]]]:
    """Recompute the ranking without each weighing entry.

    Returns:
        Index of an entry to the pairs (ahead, behind) of numbered entries whose order reverses without it, if there are any.
    """
    ranks = task_ranks(quality, weighs)
    base = weighted_ranks(ranks, task_weights(quality, weighs, ghost_task))
    ahead = _ahead(base) & numbered[:, None] & numbered[None, :]
    reversals = {}
    for index in np.flatnonzero(weighs):
        others = np.arange(len(quality)) != index
        weights = task_weights(quality, weighs & others, ghost_task)
        left = weighted_ranks(ranks - (quality[index] > quality), weights)
        flipped = ahead & _ahead(left).T & others[:, None] & others[None, :]
        if flipped.any():
            reversals[int(index)] = [(int(a), int(b)) for a, b in np.argwhere(flipped)]
    return reversals


def _ahead(weighted: Floats) -> Flags:
    return np.less(weighted[:, None], weighted[None, :])
