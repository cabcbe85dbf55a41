"""Stable views: alternative standings that do not use the task weights.

The dynamic rank depends on all entries: a team's submission changes the task weights and may swap two others (paper A.3). Mean rank, Borda
count and the interquartile mean of Q do not use these weights. Leaving teams out one at a time shows which pairs depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking.dynamic_rank import final_ranks, task_ranks, task_weights, weighted_ranks

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class View:
    """One alternative standing of P entries.

    Attributes:
        name: ``"mean_rank"``, ``"borda"`` or ``"iqm"``.
        scores: P scores of this view.
        ranks: P ranks among the numbered entries; ties share the better rank.
        tau: Kendall's tau-b with the official order of the numbered entries; None if one of the orders is a single tie.
    """

    name: str
    scores: tuple[float, ...]
    ranks: tuple[int, ...]
    tau: float | None


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """The effect of leaving one entry out of the weights and the per-task ranks.

    Attributes:
        entry: Index of the entry left out.
        flips: Pairs (ahead, behind) of numbered entries in the official order that reverse without it.
    """

    entry: int
    flips: tuple[tuple[int, int], ...]


def views(quality: Floats, *, weighs: Flags, numbered: Flags, official: Sequence[int]) -> tuple[View, ...]:
    """Return the stable views of P x T quality scores, and how well each agrees with the official ranks."""
    figures = (
        ("mean_rank", mean_rank(quality, weighs), 1.0),
        ("borda", borda(quality, weighs), -1.0),
        ("iqm", iqm(quality), -1.0),
    )
    compared = np.flatnonzero(numbered)
    result = []
    for name, scores, sign in figures:
        ranks = final_ranks(sign * scores, numbered)
        tau = kendall_tau(np.asarray(official)[compared].tolist(), ranks[compared].tolist())
        result.append(
            View(name=name, scores=tuple(scores.tolist()), ranks=tuple(ranks.tolist()), tau=tau),
        )
    return tuple(result)


def mean_rank(quality: Floats, weighs: Flags) -> Floats:
    """Average the per-task ranks with equal weights; lower is better."""
    return np.asarray(np.round(task_ranks(quality, weighs).mean(axis=1), 9))


def borda(quality: Floats, weighs: Flags) -> Floats:
    """Count, over all tasks, the weighing entries that an entry beats; a tie counts one half."""
    points = np.zeros(len(quality))
    for index in np.flatnonzero(weighs):
        points += (quality > quality[index]).sum(axis=1) + 0.5 * (quality == quality[index]).sum(axis=1)
        points[index] -= 0.5 * quality.shape[1]  # removes the tie with itself
    return points


def iqm(quality: Floats) -> Floats:
    """Return the mean of the middle half of each entry's quality scores."""
    return np.array([math.fsum(row) / len(row) for row in middle_half(quality).tolist()])


def middle_half(values: Floats) -> Floats:
    """Return the values of an interquartile mean: the sorted last axis, without a quarter (rounded down) at either end.

    Source: Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice".
    """
    number = values.shape[-1]
    return np.sort(values, axis=-1)[..., number // 4 : number - number // 4]


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Kendall's tau-b of two rankings (1 = same order, -1 = reversed), or None if one of them is a single tie."""
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    upper = np.triu_indices(len(a), 1)
    sign_a = np.sign(a[:, None] - a[None, :])[upper]
    sign_b = np.sign(b[:, None] - b[None, :])[upper]
    untied = float(np.count_nonzero(sign_a)) * float(np.count_nonzero(sign_b))
    if untied == 0.0:
        return None
    return float((sign_a * sign_b).sum() / math.sqrt(untied))


def leave_one_out(
    quality: Floats, *, weighs: Flags, numbered: Flags, ghost_task: float = 0.0
) -> tuple[LeftOut, ...]:
    """Recompute the ranking without each weighing entry, and list the pairs of numbered entries that reverse."""
    ranks = task_ranks(quality, weighs)
    base = weighted_ranks(ranks, task_weights(quality, weighs, ghost_task))
    ahead = _ahead(base) & numbered[:, None] & numbered[None, :]
    result = []
    for index in np.flatnonzero(weighs):
        without = weighs.copy()
        without[index] = False
        other = numbered.copy()
        other[index] = False
        left = weighted_ranks(ranks - (quality[index] > quality), task_weights(quality, without, ghost_task))
        flipped = ahead & _ahead(left).T & other[:, None] & other[None, :]
        pairs = tuple((int(a), int(b)) for a, b in np.argwhere(flipped))
        result.append(LeftOut(entry=int(index), flips=pairs))
    return tuple(result)


def _ahead(weighted: Floats) -> Flags:
    return np.less(weighted[:, None], weighted[None, :])
