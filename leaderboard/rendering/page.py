"""``index.html``: one file without any outside resource, complete without JavaScript, better with it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboard.rendering.assets import asset, templates
from leaderboard.rendering.charts import Evolution, Submissions, submissions
from leaderboard.rendering.names import display_name
from leaderboard.rendering.rows import Row, minute, movement, public_rows, rounded, stamp, waiting_sentence
from leaderboard.rendering.shown import ShownPhase
from leaderboard.rendering.unlocked import Interval, Unlocked
from leaderboard.snapshot import Board, MoveKind, PhaseSite, RowKey, Site

CHANGES = 15  # newest updates told in words
MOVES = 12  # of each of them
PASTS = 8  # newest submissions of a team that are told

_HEAT_STEPS = 6


@dataclass(frozen=True, kw_only=True)
class Change:
    """One update of the board in words."""

    at: str
    who: tuple[str, ...]
    moves: tuple[Row, ...]
    more: int


@dataclass(frozen=True, kw_only=True)
class Past:
    """A submission of a team that came to count."""

    at: str  # when the board first had it
    q_text: str
    rank: int | None  # on that board


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of the page's table, with what only the page shows."""

    row: Row
    movement: str
    last: str
    last_stamp: str
    share: float  # 0 to 1: mean Q over the best mean Q
    opens_group: bool
    past: tuple[Past, ...]  # the newest ones, newest first
    counted: int  # how many there were
    best: str  # mean Q of the best of them


@dataclass(frozen=True, kw_only=True)
class Whisker:
    """An interval of mean Q placed on the common scale, in percent of its width."""

    interval: Interval
    left: float
    width: float
    middle: float


@dataclass(frozen=True, kw_only=True)
class Section:
    """Everything the page shows of one phase."""

    stem: str
    title: str
    made_at: str
    frozen_at: str
    lines: tuple[Line, ...]
    waiting: tuple[tuple[str, int, str], ...]  # team, submissions, last one: those whose values are kept back
    waits: str
    changes: tuple[Change, ...]
    evolution: Evolution | None
    submissions: Submissions | None
    rules: tuple[str, ...]
    unlocked: Unlocked
    whiskers: tuple[Whisker, ...]
    heat: tuple[tuple[int, ...], ...]  # per row and task: the step of the colour scale, -1 for a negative Q
    widest: float


def render_page(site: Site, phases: Sequence[ShownPhase]) -> bytes:
    """Return the page; equal sites give equal bytes."""
    sections = [_section(phase) for phase in phases]
    begun = [section.stem for section in sections if section.lines or section.waiting]
    script = asset("page.js")
    page = templates().get_template("page.html.j2")
    return page.render(
        site=site,
        link=site.link if site.link.startswith(("https://", "http://")) else "",
        sections=sections,
        first=begun[-1] if begun else (sections[0].stem if sections else ""),
        style=asset("page.css"),
        script=script,
        summary=_summary(phases),
        icon=base64.b64encode(asset("icon.svg").encode()).decode(),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        show=display_name,
    ).encode()


def _summary(phases: Sequence[ShownPhase]) -> str:
    """Say in a sentence what stands on the page, for whoever is sent its link; who leads is a matter for the page."""
    told = []
    for phase in phases:
        title = display_name(phase.site.title)
        if phase.board is not None:
            entries = f"{len(phase.rows)} {'entry' if len(phase.rows) == 1 else 'entries'}"
            told.append(f"{title}: {entries}, last change {minute(phase.board.made_at)}")
        elif phase.waiting:
            told.append(f"{title}: {len(phase.waiting)} teams, ranks at the end")
    return f"{'; '.join(told)}." if told else "No submission has been scored yet."


def _section(phase: ShownPhase) -> Section:
    site, board, shown = phase.site, phase.board, phase.unlocked
    told = site.history[-CHANGES:] if board else ()
    return Section(
        stem=phase.stem,
        title=site.title,
        made_at=minute(board.made_at) if board else "",
        frozen_at=minute(site.frozen_at) if site.frozen_at else "",
        lines=_lines(phase.rows, _pasts(site)),
        waiting=tuple(
            (team.team, team.submissions, minute(team.last_submitted_at)) for team in phase.waiting or ()
        ),
        waits=waiting_sentence(len(phase.waiting or ())),
        changes=tuple(
            _change(past, phase.rows if past is board else public_rows(past, site.rules))
            for past in reversed(told)
        ),
        evolution=phase.evolution,
        submissions=submissions(site.history) if board else None,
        rules=phase.rules,
        unlocked=shown,
        whiskers=_whiskers(shown.intervals),
        heat=_heat(shown),
        widest=max((task.weight for task in shown.tasks), default=1.0) or 1.0,
    )


def _pasts(site: PhaseSite) -> dict[RowKey, list[Past]]:
    """Return what counted for each row through the history, oldest first."""
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


def _lines(rows: tuple[Row, ...], pasts: Mapping[RowKey, Sequence[Past]]) -> tuple[Line, ...]:
    best = max((float(row.q_text) for row in rows), default=0.0)
    group = 0
    lines = []
    for row in rows:
        past = pasts.get(row.key, ())
        lines.append(
            Line(
                past=tuple(past[: -PASTS - 1 : -1]),
                counted=len(past),
                best=max((one.q_text for one in past), key=float, default=row.q_text),
                row=row,
                movement=movement(row),
                last=minute(row.last_submitted_at),
                last_stamp=stamp(row.last_submitted_at),
                share=round(max(float(row.q_text), 0.0) / best, 3) if best > 0 else 0.0,
                opens_group=row.group != group,
            )
        )
        group = row.group
    return tuple(lines)


def _change(board: Board, rows: Sequence[Row]) -> Change:
    triggers = frozenset(board.triggers)
    moves = [row for row in rows if row.kind is MoveKind.NEW or row.move]
    return Change(
        at=minute(board.made_at),
        who=tuple(row.team for row in rows if row.submission in triggers),
        moves=tuple(moves[:MOVES]),
        more=len(moves[MOVES:]),
    )


def _whiskers(intervals: tuple[Interval, ...]) -> tuple[Whisker, ...]:
    ends = [float(end) for one in intervals if one.q for end in one.q] + [
        float(one.row.q_text) for one in intervals
    ]
    if not ends:
        return ()
    low, span = min(ends), (max(ends) - min(ends)) or 1.0
    whiskers = []
    for one in intervals:
        left, right = (float(end) for end in one.q) if one.q else (float(one.row.q_text),) * 2
        whiskers.append(
            Whisker(
                interval=one,
                left=round((left - low) / span * 100, 1),
                width=round((right - left) / span * 100, 1),
                middle=round((float(one.row.q_text) - low) / span * 100, 1),
            )
        )
    return tuple(whiskers)


def _heat(shown: Unlocked) -> tuple[tuple[int, ...], ...]:
    """Return the colour step of every row and task, on one scale from zero to the highest Q of all tasks (paper, Fig. 3)."""
    top = max((max(task.quality, default=0.0) for task in shown.tasks), default=0.0)
    return tuple(
        tuple(
            -1
            if task.quality[place] < 0
            else int(min(task.quality[place] / top, 0.999) * _HEAT_STEPS)
            if top > 0
            else 0
            for task in shown.tasks
        )
        for place in range(len(shown.rows))
    )
