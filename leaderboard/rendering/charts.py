"""The figure below every board: the history of the ranks.

A template writes it as SVG, without Vega, for three reasons. It is drawn with every publication, and starting a chart engine would
take a second each time. The same shapes are used in README.md (two files with fixed colors) and in the page (one figure that follows the
reader's color scheme and can be reached by keyboard). And its bytes depend only on the boards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from leaderboard.rendering.assets import templates
from leaderboard.rendering.documents import EntryRow
from leaderboard.rendering.names import breadth
from leaderboard.snapshot import Board, MoveKind, RowKey

LANES = 20  # entries in the chart; more lines could not be told apart
COLUMNS = 90  # boards in the chart; in a longer history several share a column
# How many entries from the top have their own color; the others are gray, and every line is labeled.
COLORS = 7
LABEL = 230  # breadth that fits next to a line; a longer name has two lines

# Whole numbers make paths short, and the figures compress well.
_WIDTH, _LEFT, _RIGHT, _TOP, _STEP_Y = 960, 6, 226, 27, 26


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One entry's line in the bump chart, as SVG path data.

    Attributes:
        color: Index of its color, or -1 for gray.
        lines: The name, in one or two lines, each with whether it is wider than its space.
        run: Parts without a move.
        own: Moves because another submission of the entry counts.
        passive: Moves that others caused.
        dots: The entry's own submissions.
    """

    color: int
    row: EntryRow
    lines: tuple[tuple[str, bool], ...]
    y: int
    run: str
    own: str
    passive: str
    dots: str


@dataclass(frozen=True, kw_only=True)
class Evolution:
    """The bump chart of one phase."""

    width: int
    height: int
    left: int
    right: int
    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[float, str], ...]
    total: int
    updates: int

    def share(self, x: float) -> float:
        """Return how far right a place is in the plot, in percent."""
        return round((x - self.left) / (self.right + 8 - self.left) * 100, 2)

    @property
    def summary(self) -> str:
        """The figure's text for readers who cannot see it."""
        top = ", ".join(f"{lane.row.shown_rank} {lane.row.team}" for lane in self.lanes)
        kept = (
            "" if len(self.lanes) == self.total else f", the first {len(self.lanes)} of {self.total} entries"
        )
        return f"Rank of the entries after each update of the board ({self.updates} in total){kept}. Newest order: {top}."


def evolution_figures(title: str, chart: Evolution) -> tuple[bytes, bytes]:
    """Return a phase's bump chart for README.md in light and in dark colors."""
    template = templates().get_template("evolution.svg.j2")
    light, dark = (template.render(chart=chart, dark=dark, title=title).encode() for dark in (False, True))
    return light, dark


def evolution(history: Sequence[Board], rows: Sequence[EntryRow]) -> Evolution:
    """Return the bump chart of a phase's boards, the last of which has these rows.

    Lanes are places on the board, so lines of entries that share a rank do not overlap.
    """
    columns = _thinned(history)
    width = _WIDTH - _LEFT - _RIGHT
    xs = [_LEFT + round(width * place / max(len(columns) - 1, 1)) for place in range(len(columns))]
    drawn = list(zip(rows, (row.key for row in history[-1].standings), strict=True))[:LANES]
    deepest = max(column.places.get(key, 1) for column in columns for _, key in drawn)
    lowest = min(deepest, LANES + 1)  # all places further down share the last lane
    colors = {
        key: color for color, key in enumerate([key for row, key in drawn if not row.baseline][:COLORS])
    }
    lanes = tuple(
        _lane(row, key, columns, xs, lowest=lowest, color=colors.get(key, -1)) for row, key in drawn
    )
    moments = [(x, column.board.made_at) for x, column in zip(xs, columns, strict=True)]
    return Evolution(
        width=_WIDTH,
        height=_TOP + lowest * _STEP_Y + 24,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        lanes=lanes,
        ticks=_ticks(moments),
        total=len(rows),
        updates=len(history),
    )


@dataclass(frozen=True)
class _Column:
    """One column of the chart: the last of its boards, with the rows that submitted, or moved by themselves, on any of them."""

    board: Board
    places: dict[RowKey, int]
    own: frozenset[RowKey]
    submitted: frozenset[RowKey]


def _thinned(history: Sequence[Board]) -> list[_Column]:
    stretch = -(-len(history) // COLUMNS)
    first = len(history) % stretch or stretch  # only the oldest column may have fewer boards
    ends = range(first, len(history) + 1, stretch)
    columns = []
    for start, end in pairwise((0, *ends)):
        triggers = {(board.sequence, pk) for board in history[start:end] for pk in board.triggers}
        rows = [(board.sequence, row) for board in history[start:end] for row in board.standings]
        own = frozenset(row.key for _, row in rows if row.move_kind is MoveKind.OWN)
        submitted = frozenset(row.key for sequence, row in rows if (sequence, row.submission) in triggers)
        places = {standing.key: place for place, standing in enumerate(history[end - 1].standings, 1)}
        columns.append(_Column(history[end - 1], places, own, submitted))
    return columns


def _lane(
    row: EntryRow,
    key: RowKey,
    columns: Sequence[_Column],
    xs: list[int],
    *,
    lowest: int,
    color: int,
) -> Lane:
    """Draw one row's line; places below the lowest lane are drawn on that lane."""
    track = [min(column.places[key], lowest) if key in column.places else None for column in columns]
    run: list[str] = []
    own: list[str] = []
    passive: list[str] = []
    start = 0  # column since which the row has not moved
    for place, (here, before) in enumerate(zip(track, [None, *track[:-1]], strict=True)):
        if here is None or here == before:
            continue
        if before is not None:
            if start < place - 1:
                run.append(f"M{xs[start]} {_y(before)}h{xs[place - 1] - xs[start]}")
            across, down = xs[place] - xs[place - 1], _y(here) - _y(before)
            bend = f"M{xs[place - 1]} {_y(before)}c{across // 2} 0 {across // 2} {down} {across} {down}"
            (own if key in columns[place].own else passive).append(bend)
        start = place
    # where the row appears, except at the left edge, and where its team has submitted
    dots = [
        f"M{x} {_y(here)}h0"
        for column, x, here, before in zip(columns, xs, track, [lowest, *track[:-1]], strict=True)
        if here is not None and (key in column.submitted or before is None)
    ]
    last = min(columns[-1].places[key], lowest)
    run.append(f"M{xs[start]} {_y(last)}H{_WIDTH - _RIGHT + 8}")
    return Lane(
        color=color,
        row=row,
        lines=_lines(row.team),
        y=_y(last),
        run="".join(run),
        own="".join(own),
        passive="".join(passive),
        dots="".join(dots),
    )


def _lines(name: str) -> tuple[tuple[str, bool], ...]:
    """Break a long name near its middle; wide characters count twice."""
    lines = [name]
    if breadth(name) > LABEL:
        breaks = [place for place, char in enumerate(name[:-1], 1) if char in " -_"]
        cut = min(breaks, key=lambda place: abs(2 * place - len(name)), default=len(name) // 2)
        lines = [name[:cut].rstrip(), name[cut:]]
    return tuple((line, breadth(line) > LABEL) for line in lines)


def _y(place: int) -> int:
    return _TOP + place * _STEP_Y - _STEP_Y // 2


def _ticks(moments: Sequence[tuple[float, datetime]]) -> tuple[tuple[float, str], ...]:
    """Return where days begin, thinned so that labels do not overlap; in a short phase, the first and the last update with their hours."""
    starts = [moments[0]] + [
        after for before, after in pairwise(moments) if after[1].date() != before[1].date()
    ]
    ticks: list[tuple[float, str]] = []
    for x, at in starts:
        if not ticks or x - ticks[-1][0] >= 64:
            ticks.append((round(x, 1), f"{at.day} {at:%b}"))
    if len(ticks) > 1:
        return tuple(ticks)
    ends = dict.fromkeys((moments[0], moments[-1]))
    return tuple((round(x, 1), f"{at.day} {at:%b} {at:%H:%M}") for x, at in ends)
