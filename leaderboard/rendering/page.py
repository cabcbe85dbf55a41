"""``index.html``: a single file without external resources, which shows everything without JavaScript and is easier to use with it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from itertools import pairwise

from leaderboard.ranking import stability_sentence
from leaderboard.rendering.assets import asset, templates
from leaderboard.rendering.columns import COLUMNS
from leaderboard.rendering.documents import Interval, PhaseDocument
from leaderboard.rendering.history import past_submissions, updates
from leaderboard.rendering.shown import ShownPhase
from leaderboard.snapshot import Site
from scoring.printable import name_some

CHANGES = 5  # newest updates that are always shown; older ones can be unfolded
UPDATES = 100  # newest updates on the page; a long challenge has thousands, which would be megabytes

_HEAT_STEPS = 6


def render_page(site: Site, phases: Sequence[ShownPhase]) -> bytes:
    """Return the page; equal sites give equal bytes."""
    sections = [_section(phase) for phase in phases]
    begun = [phase.document.phase for phase in phases if phase.document.entries or phase.document.waiting]
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
        first=(begun or [phase.document.phase for phase in phases[:1]] or [""])[-1],
        style=asset("page.css"),
        dark=asset("dark.css"),
        script=script,
        # for link previews: how far each phase is, without the name of the leader
        summary=" ".join(f"{phase.document.phase}: {phase.state}" for phase in phases),
        icon=base64.b64encode(asset("icon.svg").encode()).decode(),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    ).encode()


def _section(phase: ShownPhase) -> dict[str, object]:
    """Return everything that the page shows of one phase, by the names that its templates use.

    These are, besides the phase:
        past: The submissions that have counted for each row, newest first.
        changes: The newest updates, newest first.
        older: The other updates on the page.
        earlier: Number of updates that only the history has.
        whiskers: Intervals with the left end, width and middle of their bar on a common scale, in percent.
        heat: Per row and task, the step of the color scale; -1 for a negative Q.
        shares: Per row, the length of the bar of mean Q, as a share of the longest; a negative mean Q has none.
        stability: What becomes of the ranks without one of the tasks, as a sentence.
        widths: Per task, the length of the bar of its weight, in percent of the longest.
        columns: Those of its board, which has one of methods only if any row has a method.
        ahead: Per row, why it is ahead of a next one with a higher mean Q; empty if it is not.
        alike: Per row, the first and the last rank of its group; empty if it is alone.
    """
    history = phase.site.history if phase.evolution else ()
    changes = updates(history[-UPDATES - 1 :], phase.document.decisions)[:UPDATES]
    has_methods = any(row.has_method for row in phase.document.entries)
    rows, weights = phase.document.entries, [task.weight for task in phase.document.tasks or ()]
    lengths = [max(row.q_mean, 0.0) for row in rows]
    longest, widest = max(lengths, default=0.0) or 1.0, max(weights, default=0.0) or 1.0
    return {
        "phase": phase,
        "past": past_submissions(phase.site),
        "changes": changes[:CHANGES],
        "older": changes[CHANGES:],
        "earlier": len(history) - len(changes),
        "whiskers": _whiskers(phase.document),
        "heat": _heat(phase.document),
        "shares": [round(length / longest, 3) for length in lengths],
        "stability": _stability(phase.document),
        "widths": [round(weight / widest * 100, 1) for weight in weights],
        "columns": [column for column in COLUMNS if column.key != "method" or has_methods],
        "ahead": _ahead(phase.document),
        "alike": _alike(phase.document),
    }


def _ahead(document: PhaseDocument) -> tuple[str, ...]:
    """Say of each row with a lower mean Q than the next why it is ahead; after the reveal, on which tasks, the heaviest first."""
    told = dict.fromkeys(range(len(document.entries)), "")
    ranked = [(place, row) for place, row in enumerate(document.entries) if row.rank]
    for (place, row), (below, next_row) in pairwise(ranked):
        if row.q_mean < next_row.q_mean and row.rank != next_row.rank:
            tasks = [task.name for task in document.tasks or () if task.quality[place] > task.quality[below]]
            where = f"on {name_some(tasks, 3)}" if tasks else "by the weighted ranks on the tasks"
            told[place] = f"ahead of the next {where}"
    return tuple(told.values())


def _alike(document: PhaseDocument) -> tuple[str, ...]:
    """Return the ranks of each row's group; empty if it is alone, or ahead of the first of them, with which the group compares."""
    groups: dict[int, dict[int, int | None]] = {}
    for place, row in enumerate(document.entries):
        ranks = groups.setdefault(row.group, {})
        first = next(iter(ranks.values()), None)
        if row.rank or (first and not 0 < (row.rank_if_competing or 0) <= first):
            ranks[place] = row.rank
    told = dict.fromkeys(range(len(document.entries)), "")
    for ranks in groups.values():
        if len(ranks) > 1:
            ends = sorted({rank for rank in ranks.values() if rank})
            told |= dict.fromkeys(ranks, "–".join(map(str, dict.fromkeys((ends[0], ends[-1])))))
    return tuple(told.values())


def _whiskers(document: PhaseDocument) -> tuple[tuple[Interval, float, float, float], ...]:
    """Place intervals of mean Q on a common scale; one that is not known is a point."""
    intervals = document.intervals.entries if document.intervals else ()
    ends = [
        (*(interval.q_mean or (row.q_mean, row.q_mean)), row.q_mean)
        for interval, row in zip(intervals, document.entries, strict=False)
    ]
    low = min(map(min, ends), default=0.0)
    span = max(map(max, ends), default=0.0) - low or 1.0

    def percent(length: float) -> float:
        return round(length / span * 100, 1)

    return tuple(
        (interval, percent(left - low), percent(right - left), percent(middle - low))
        for interval, (left, right, middle) in zip(intervals, ends, strict=True)
    )


def _stability(document: PhaseDocument) -> str:
    """Return what becomes of the ranks without one of the tasks, the heaviest task first."""
    tasks = [task.name for task in document.tasks or ()]
    without = [dict(zip(tasks, entry.without, strict=True)) for entry in document.stability or ()]
    return stability_sentence([row.rank for row in document.entries], without)


def _heat(document: PhaseDocument) -> tuple[tuple[int, ...], ...]:
    """Return the color step of every row and task, on a scale from zero to the highest Q of all tasks (paper, Fig. 3)."""
    columns = [task.quality for task in document.tasks or ()]
    top = max((max(column, default=0.0) for column in columns), default=0.0)

    def step(q: float) -> int:
        return -1 if q < 0 else int(min(q / top, 0.999) * _HEAT_STEPS) if top > 0 else 0

    return tuple(tuple(map(step, row)) for row in zip(*columns, strict=True))
