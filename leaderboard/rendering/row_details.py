"""The details of a row of the page: the reasons for its rank, its uncertainty, and the submissions that have counted for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboard.rendering.rows import Row, minute, rounded
from leaderboard.rendering.unlocked import Interval
from leaderboard.snapshot import PhaseSite, RowKey


@dataclass(frozen=True, kw_only=True)
class Past:
    """A submission of a team that has counted."""

    at: str  # time of the first board with it
    q_text: str
    rank: int | None  # on that board


@dataclass(frozen=True, kw_only=True)
class RowDetails:
    """The details of one row.

    Attributes:
        sentences: Pairs of a sentence's first words and the rest of it.
        past: Submissions that have counted, newest first.
    """

    sentences: tuple[tuple[str, str], ...]
    past: tuple[Past, ...]


def row_details(
    site: PhaseSite, rows: Sequence[Row], intervals: Sequence[Interval], replicates: int
) -> tuple[RowDetails, ...]:
    """Return the details of each row of the newest board.

    Args:
        site: The phase.
        rows: Rows of its newest board.
        intervals: Intervals of the same rows; empty if they are locked.
        replicates: Number of bootstrap replicates behind them.
    """
    pasts = _pasts(site)
    members = Counter(row.group for row in rows)
    sure = {one.row.key: one for one in intervals}
    details = []
    for row in rows:
        past = pasts.get(row.key, ())
        sentences = (
            ("Value", _values(row, past)),
            ("Movement", row.why),
            ("Certainty", f"{_group(row, members)} {_interval(sure.get(row.key), replicates)}".strip()),
        )
        details.append(
            RowDetails(sentences=tuple(one for one in sentences if one[1]), past=tuple(reversed(past)))
        )
    return tuple(details)


def _pasts(site: PhaseSite) -> Mapping[RowKey, Sequence[Past]]:
    """Return the submissions that have counted for each row, oldest first."""
    pasts: dict[RowKey, list[Past]] = {}
    known: set[int] = set()
    for board in site.history:
        rules = board.rules_then(site.rules)
        for row in board.standings:
            if row.submission not in known:
                known.add(row.submission)
                past = Past(
                    at=minute(board.made_at),
                    q_text=rounded(rules.value(row.q_mean), rules.decimals),
                    rank=row.rank if row.numbered else None,
                )
                pasts.setdefault(row.key, []).append(past)
    return pasts


def _values(row: Row, past: Sequence[Past]) -> str:
    now = f"Mean Q is {_minus(row.q_text)}"
    if len(past) < 2:
        return f"{now}. One submission has counted so far."
    best = max(past, key=lambda one: float(one.q_text))
    if float(best.q_text) <= float(row.q_text):
        return f"{now}, the best of {len(past)} submissions that have counted so far."
    return f"{now}. The best of {len(past)} submissions that have counted so far had {_minus(best.q_text)} ({best.at[:10]})."


def _group(row: Row, members: Mapping[int, int]) -> str:
    others = members[row.group] - 1
    if not others:
        return f"No other entry is in group {row.group}."
    shared = "1 other entry is" if others == 1 else f"{others} other entries are"
    return f"{shared} in group {row.group}."


def _interval(sure: Interval | None, replicates: int) -> str:
    if sure is None or sure.row.rank is None:
        return ""
    low, high = sure.rank
    ranks = f"{low}" if low == high else f"{low} to {high}"
    values = "" if sure.q is None else f", and that of mean Q is {_minus(sure.q[0])} to {_minus(sure.q[1])}"
    swap = (
        "" if sure.swap_with_next is None else f", and behind the next entry in {_share(sure.swap_with_next)}"
    )
    return (
        f"The 95 % interval of the rank is {ranks}{values}. In {replicates} resamplings of the folds, the entry was first "
        f"in {_share(sure.p_first)}{', ' if swap else ' and '}among the top 3 in {_share(sure.p_top3)}{swap}."
    )


def _share(share: float) -> str:
    return f"{share * 100:.0f} %"


def _minus(number: str) -> str:
    return number.replace("-", "−")
