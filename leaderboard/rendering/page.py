"""``index.html``: a single file without external resources, which shows everything without JavaScript and is easier to use with it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.rendering.assets import asset, templates
from leaderboard.rendering.charts import Evolution, Submissions, submissions
from leaderboard.rendering.names import display_name
from leaderboard.rendering.row_details import RowDetails, row_details
from leaderboard.rendering.rows import Row, minute, movement, stamp, waiting_sentence
from leaderboard.rendering.shown import ShownPhase
from leaderboard.rendering.unlocked import Interval, Unlocked
from leaderboard.rendering.updates import Update, updates
from leaderboard.snapshot import Site
from scoring.printable import count_of

CHANGES = 5  # newest updates that are always shown; older ones can be unfolded

_HEAT_STEPS = 6


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of the page's table, with values that only the page shows."""

    row: Row
    movement: str
    last: str
    last_stamp: str
    share: float  # 0 to 1: mean Q over the best mean Q
    ends_group: bool  # the row below it is in another group
    told: RowDetails


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
    has_methods: bool  # whether any row has information about its method
    waiting: tuple[tuple[str, int, str], ...]  # team, submissions, time of the last one; values are not shown
    waits: str
    changes: tuple[Update, ...]  # newest first
    older: tuple[Update, ...]
    evolution: Evolution | None
    submissions: Submissions | None
    rules: tuple[str, ...]
    unlocked: Unlocked
    whiskers: tuple[Whisker, ...]
    heat: tuple[tuple[int, ...], ...]  # per row and task: the step of the color scale, -1 for a negative Q
    widest: float


def render_page(site: Site, phases: Sequence[ShownPhase]) -> bytes:
    """Return the page; equal sites give equal bytes."""
    sections = [_section(phase) for phase in phases]
    begun = [section.stem for section in sections if section.lines or section.waiting]
    script = asset("page.js")
    page = templates().get_template("page.html.j2")
    return page.render(
        site=site,
        links=[
            (address, word)
            for address, word in ((site.link, "Challenge page"), (site.repository, "Repository"))
            if address.startswith(("https://", "http://"))
        ],
        repository=site.repository,
        sections=sections,
        first=begun[-1] if begun else (sections[0].stem if sections else ""),
        style=asset("page.css"),
        dark=asset("dark.css"),
        script=script,
        summary=_summary(phases),
        icon=base64.b64encode(asset("icon.svg").encode()).decode(),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        show=display_name,
    ).encode()


def _summary(phases: Sequence[ShownPhase]) -> str:
    """Return one sentence about the page for link previews; it does not name the leader."""
    told = []
    for phase in phases:
        title = display_name(phase.site.title)
        if phase.board is not None:
            entries = count_of(len(phase.rows), "entry", "entries")
            told.append(f"{title}: {entries}, last change {minute(phase.board.made_at)}")
        elif phase.waiting:
            told.append(f"{title}: {count_of(len(phase.waiting), 'team')}, ranks at the end")
    return f"{'; '.join(told)}." if told else "No submission has been scored yet."


def _section(phase: ShownPhase) -> Section:
    site, board, shown = phase.site, phase.board, phase.unlocked
    changes = updates(site.history) if board else ()
    details = row_details(site, phase.rows, shown.intervals, shown.replicates)
    return Section(
        stem=phase.stem,
        title=site.title,
        made_at=minute(board.made_at) if board else "",
        frozen_at=minute(site.frozen_at) if site.frozen_at else "",
        lines=_lines(phase.rows, details),
        has_methods=any(row.has_method for row in phase.rows),
        waiting=tuple(
            (team.team, team.submissions, minute(team.last_submitted_at)) for team in phase.waiting or ()
        ),
        waits=waiting_sentence(len(phase.waiting or ())),
        changes=changes[:CHANGES],
        older=changes[CHANGES:],
        evolution=phase.evolution,
        submissions=submissions(site.history) if board else None,
        rules=phase.rules,
        unlocked=shown,
        whiskers=_whiskers(shown.intervals),
        heat=_heat(shown),
        widest=max((task.weight for task in shown.tasks), default=1.0) or 1.0,
    )


def _lines(rows: Sequence[Row], details: Sequence[RowDetails]) -> tuple[Line, ...]:
    best = max((float(row.q_text) for row in rows), default=0.0)
    lines = []
    for place, (row, told) in enumerate(zip(rows, details, strict=True), 1):
        lines.append(
            Line(
                told=told,
                row=row,
                movement=movement(row),
                last=minute(row.last_submitted_at),
                last_stamp=stamp(row.last_submitted_at),
                share=round(max(float(row.q_text), 0.0) / best, 3) if best > 0 else 0.0,
                ends_group=place < len(rows) and rows[place].group != row.group,
            )
        )
    return tuple(lines)


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
    """Return the color step of every row and task, on a scale from zero to the highest Q of all tasks (paper, Fig. 3)."""
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
