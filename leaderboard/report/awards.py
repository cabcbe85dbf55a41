"""The two awards of a phase: the dynamic rank decides one, mean Q the other."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.rendering import display_name
from leaderboard.snapshot import Board, Standing


def awards(board: Board, *, decimals: int = 3) -> str:
    """Return the winners by dynamic rank and by mean Q, and the entries that could not win, as text.

    Only teams in competition can win, and teams that share the first rank share the award. The text is plain, with one fact per line.
    """
    teams = [standing for standing in board.standings if standing.numbered]
    lines = [
        _award("Award for the dynamic rank", [team for team in teams if team.rank == 1], decimals),
        _award("Award for mean Q", [team for team in teams if team.rank_by_mean == 1], decimals),
    ]
    if any(team.q_mean < 0 and 1 in (team.rank, team.rank_by_mean) for team in teams):
        lines.append("A mean Q below zero is unreliable: worse than predicting the mean label.")
    outside = [standing for standing in board.standings if not standing.numbered]
    lines += [
        f"Not eligible: {display_name(standing.team)} ({'baseline' if standing.baseline else 'out of competition'})."
        for standing in outside
    ]
    return "\n".join(lines) + "\n"


def _award(title: str, winners: Sequence[Standing], decimals: int) -> str:
    if not winners:
        return f"{title}: nobody is eligible."
    names = [
        f"{display_name(team.team)} (rank {team.rank}, mean Q {round(team.q_mean, decimals) + 0.0:.{decimals}f})"
        for team in winners
    ]
    return f"{title}: {' and '.join(names)}{', shared' if len(names) > 1 else ''}."
