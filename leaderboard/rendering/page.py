"""``index.html``: a single file without external resources, which shows everything without JavaScript and is easier to use with it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.rendering.assets import asset, templates
from leaderboard.rendering.charts import Submissions, submissions
from leaderboard.rendering.names import display_name
from leaderboard.rendering.row_details import RowDetails, row_details
from leaderboard.rendering.rows import minute, waiting_sentence
from leaderboard.rendering.shown import ShownPhase
from leaderboard.rendering.unlocked import Interval, Unlocked
from leaderboard.rendering.updates import Update, updates
from leaderboard.snapshot import Site
from scoring.printable import count_of

CHANGES = 5  # newest updates that are always shown; older ones can be unfolded

_HEAT_STEPS = 6


@dataclass(frozen=True, kw_only=True)
class Section:
    """Everything the page shows of one phase.

    Attributes:
        details: Details of each row.
        changes: The newest updates, newest first.
        older: The other updates.
        whiskers: Intervals with the left end, width and middle of their bar on a common scale, in percent.
        heat: Per row and task, the step of the color scale; -1 for a negative Q.
    """

    phase: ShownPhase
    details: tuple[RowDetails, ...]
    changes: tuple[Update, ...]
    older: tuple[Update, ...]
    submissions: Submissions | None
    whiskers: tuple[tuple[Interval, float, float, float], ...]
    heat: tuple[tuple[int, ...], ...]


def render_page(site: Site, phases: Sequence[ShownPhase]) -> bytes:
    """Return the page; equal sites give equal bytes."""
    sections = [_section(phase) for phase in phases]
    begun = [phase.stem for phase in phases if phase.rows or phase.waiting]
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
        first=(begun or [phase.stem for phase in phases[:1]] or [""])[-1],
        style=asset("page.css"),
        dark=asset("dark.css"),
        script=script,
        summary=_summary(phases),
        icon=base64.b64encode(asset("icon.svg").encode()).decode(),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        waiting_sentence=waiting_sentence,
    ).encode()


def _summary(phases: Sequence[ShownPhase]) -> str:
    """Return one sentence about the page for link previews; it does not name the leader."""
    facts = []
    for phase in phases:
        title = display_name(phase.site.title)
        if phase.board is not None:
            entries = count_of(len(phase.rows), "entry", "entries")
            facts.append(f"{title}: {entries}, last change {minute(phase.board.made_at)}")
        elif phase.waiting:
            facts.append(f"{title}: {count_of(len(phase.waiting), 'team')}, ranks at the end")
    return f"{'; '.join(facts)}." if facts else "No submission has been scored yet."


def _section(phase: ShownPhase) -> Section:
    history = phase.site.history if phase.board else ()
    changes, open_ = updates(history), phase.unlocked
    return Section(
        phase=phase,
        details=row_details(phase.site, phase.rows, open_.intervals, open_.replicates),
        changes=changes[:CHANGES],
        older=changes[CHANGES:],
        submissions=submissions(history),
        whiskers=_whiskers(open_.intervals),
        heat=_heat(open_),
    )


def _whiskers(intervals: Sequence[Interval]) -> tuple[tuple[Interval, float, float, float], ...]:
    """Place intervals of mean Q on a common scale; one that is not known is a point."""
    ends = [
        (float(left), float(right), float(one.row.q_text))
        for one in intervals
        for left, right in [one.q or (one.row.q_text, one.row.q_text)]
    ]
    low = min(map(min, ends), default=0.0)
    span = max(map(max, ends), default=0.0) - low or 1.0
    return tuple(
        (
            one,
            round((left - low) / span * 100, 1),
            round((right - left) / span * 100, 1),
            round((middle - low) / span * 100, 1),
        )
        for one, (left, right, middle) in zip(intervals, ends, strict=True)
    )


def _heat(unlocked: Unlocked) -> tuple[tuple[int, ...], ...]:
    """Return the color step of every row and task, on a scale from zero to the highest Q of all tasks (paper, Fig. 3)."""
    columns = [task.quality for task in unlocked.tasks]
    top = max((max(column, default=0.0) for column in columns), default=0.0)

    def step(q: float) -> int:
        return -1 if q < 0 else int(min(q / top, 0.999) * _HEAT_STEPS) if top > 0 else 0

    return tuple(tuple(map(step, row)) for row in zip(*columns, strict=True))
