"""The two awards of a phase: the dynamic rank decides one, mean Q the other."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.rendering import Row


def awards(rows: Sequence[Row]) -> str:
    """Return the winners by dynamic rank and by mean Q, and the entries that could not win, one fact per line.

    Only teams in competition can win, and teams that share the first rank share the award.
    """
    lines = [
        _award("Award for the dynamic rank", [row for row in rows if row.rank == 1]),
        _award("Award for mean Q", [row for row in rows if row.rank_by_mean == 1]),
    ]
    if any(not row.reliable and 1 in (row.rank, row.rank_by_mean) for row in rows):
        lines.append("A mean Q below zero is unreliable: worse than predicting the mean label.")
    lines += [
        f"Not eligible: {row.team} ({'baseline' if row.baseline else 'out of competition'})."
        for row in rows
        if row.rank is None
    ]
    return "\n".join(lines)


def _award(title: str, winners: Sequence[Row]) -> str:
    if not winners:
        return f"{title}: nobody is eligible."
    names = [f"{row.team} (rank {row.rank}, mean Q {row.q_text})" for row in winners]
    return f"{title}: {' and '.join(names)}{', shared' if len(names) > 1 else ''}."
