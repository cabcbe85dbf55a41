"""How far a board depends on the choice of its tasks: it is ranked without each task, and with tasks that are drawn again.

A choice of tasks says how often each of them counts: once on the board, not at all if it is left out, perhaps twice if all are drawn again.
Only the weights depend on it, not the ranks per task. The draws treat the tasks as a random sample of those that might have been chosen.
They do not cover the random splits, which the bootstrap over folds does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking.dynamic_rank import (
    Flags,
    Floats,
    ranks_of,
    shares,
    spreads,
    task_ranks,
    weighted_ranks,
)
from leaderboard.ranking.uncertainty import CHUNK, counted_draws
from leaderboard.snapshot import RowStability
from scoring.printable import count_of

NAMED = 3  # pairs, or tasks, that a sentence names


def task_stability(
    quality: Floats,
    tasks: Sequence[str],
    *,
    weighs: Flags,
    numbered: Flags,
    ghost_task: float = 0.0,
    phase: str,
    replicates: int,
) -> tuple[RowStability, ...]:
    """Rank without each task, and in replicates that draw as many tasks as there are.

    Args:
        quality: P x T quality scores, with rows in the order of the board.
        tasks: T names.
        weighs: P booleans.
        numbered: P booleans.
        ghost_task: δ0.
        phase: Codename, which decides the draws with the number of tasks: all boards of a phase have the same.
        replicates: How many there are.

    Returns:
        What becomes of each row; nothing if there is one task, or fewer than two teams in competition.
    """
    rows = len(quality)
    if len(tasks) < 2 or numbered.sum() < 2:
        return ()
    names = sorted(tasks)
    quality = quality[:, [tasks.index(name) for name in names]]
    ranks, spread = task_ranks(quality, weighs), spreads(quality, weighs)

    def ranked(counts: NDArray[np.generic]) -> tuple[Floats, NDArray[np.int32]]:
        weights = shares(spread, counts.astype(np.float64), ghost_task)
        weighted = weighted_ranks(ranks, weights)
        return weighted, ranks_of(weighted, quality, weights, weighs=weighs, numbered=numbered)

    order = np.sign(np.diff(ranked(np.ones(len(names)))[0]))
    first, kept = np.zeros(rows, np.int64), np.zeros(rows - 1, np.int64)
    drawn = counted_draws(f"task bootstrap 1\0{phase}\0{len(names)}", len(names), replicates)
    for start in range(0, replicates, CHUNK):
        weighted, final = ranked(drawn[start : start + CHUNK])
        first += (final == 1).sum(axis=0)
        kept += (np.sign(np.diff(weighted)) == order).sum(axis=0)
    _, without = ranked(1 - np.eye(len(names)))
    return tuple(
        RowStability(
            without=dict(zip(names, of.tolist(), strict=True)),
            p_first=float(first[row] / replicates),
            keeps_order=float(kept[row] / replicates) if row + 1 < rows else None,
        )
        for row, of in enumerate(without.T)
    )


def stability_sentence(ranks: Sequence[int | None], without: Sequence[Mapping[str, int]]) -> str:
    """Say which teams change places without a task; nothing if nothing is known.

    Args:
        ranks: Ranks on the board; None for a row that does not compete.
        without: For each row, task to the rank without it.
    """
    if not without:
        return ""
    tasks, competing = list(without[0]), [row for row, rank in enumerate(ranks) if rank]
    now = np.array([ranks[row] for row in competing])
    then = np.array([[without[row][task] for row in competing] for task in tasks])
    swapped = (now[:, None] < now) & (then[:, :, None] > then[:, None, :])
    pairs = np.argwhere(swapped.any(axis=0)).tolist()
    any_one = f"Without any one of the {count_of(len(tasks), 'task')}"
    if not pairs:
        return f"{any_one}, no two teams change places."
    begin = f"{any_one}, 1 stays 1; " if (then[:, now == 1] == 1).all() else "Ranks "
    named = [
        f"{now[ahead]} and {now[behind]}{'' if place else ' change places'} without "
        + one_of([tasks[task] for task in np.flatnonzero(swapped[:, ahead, behind])])
        for place, (ahead, behind) in enumerate(pairs[:NAMED])
    ]
    others = len(pairs) - NAMED
    more = f"; {count_of(others, 'more pair')} as well" if others > 0 else ""
    return f"{begin}{', '.join(named)}{more}."


def one_of(names: Sequence[str]) -> str:
    """Name a few tasks, or say how many they are."""
    if len(names) > NAMED:
        return f"any one of {len(names)} tasks"
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
