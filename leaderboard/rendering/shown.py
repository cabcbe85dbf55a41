"""The content of a site's phases, made once for all renderers (Markdown, HTML, SVG, JSON and CSV)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from leaderboard.rendering.charts import Evolution, evolution
from leaderboard.rendering.names import distinct_names
from leaderboard.rendering.rows import Row, public_rows
from leaderboard.rendering.unlocked import Unlocked, unlocked
from leaderboard.snapshot import Board, PhaseSite, Selection, Site, WaitingTeam

# File names in the folder that no phase may have.
RESERVED_STEMS = frozenset({"badge", "history", "schema", "index"})


@dataclass(frozen=True, kw_only=True)
class ShownPhase:
    """The content of one phase.

    Attributes:
        stem: Stem of its files' names.
        board: The newest board; None if it has no rows.
        rows: Rows of that board.
        rules: Sentences that say how boards are made.
        evolution: The bump chart; None if there is no board.
        unlocked: What may be shown beyond the board.
        waiting: The teams whose values are not shown yet, by name; None if values are shown.
    """

    site: PhaseSite
    stem: str
    board: Board | None
    rows: tuple[Row, ...]
    rules: tuple[str, ...]
    evolution: Evolution | None
    unlocked: Unlocked
    waiting: tuple[WaitingTeam, ...] | None = None


def shown_phases(site: Site) -> tuple[ShownPhase, ...]:
    """Return the content of a site's phases."""
    stems = file_stems(site)
    return tuple(_shown(phase, stems[phase.codename], site.publish) for phase in site.phases)


def _shown(phase: PhaseSite, stem: str, publish: frozenset[str]) -> ShownPhase:
    board = phase.history[-1] if phase.history and phase.history[-1].standings else None
    rows = public_rows(board, phase.rules, phase.methods) if board else ()
    return ShownPhase(
        site=phase,
        stem=stem,
        board=board,
        rows=rows,
        rules=rule_lines(phase),
        evolution=evolution(phase.history, rows) if board else None,
        unlocked=unlocked(phase, board, rows, publish) if board else Unlocked(),
        waiting=None if phase.waiting is None or board else _named(phase.waiting),
    )


def _named(teams: tuple[WaitingTeam, ...]) -> tuple[WaitingTeam, ...]:
    names = distinct_names((team.key, team.team) for team in teams)
    return tuple(replace(team, team=names[team.key]) for team in teams)


def file_stems(site: Site) -> dict[str, str]:
    """Return phase codename → stem of its file names, which differ even if upper and lower case are the same."""
    stems: dict[str, str] = {}
    taken: set[str] = set()
    for phase in site.phases:
        stem = re.sub(r"[^0-9A-Za-z_-]+", "-", phase.codename).strip("-") or "phase"
        candidate, number = stem, 1
        while candidate.lower() in taken | RESERVED_STEMS:
            number += 1
            candidate = f"{stem}-{number}"
        taken.add(candidate.lower())
        stems[phase.codename] = candidate
    return stems


def rule_lines(phase: PhaseSite) -> tuple[str, ...]:
    """Return the sentences that say how this phase's board is made; plain text, without names."""
    rules = phase.rules
    counted = {
        Selection.LAST: "A team's last scored public submission counts.",
        Selection.BEST: "A team's scored public submission with the highest mean Q counts.",
        Selection.CHOSEN: "The organizers choose which of a team's scored public submissions counts.",
        Selection.LADDER: "A team's first scored public submission counts; a later one counts instead only if its mean Q is more than "
        f"{rules.ladder_step or 0:g} above the value shown before (the Ladder)."
        f" Values are rounded to multiples of {rules.ladder_step or 0:g}.",
    }[rules.selection]
    visible = {
        "at_submission": "A submission is public if its author made it public when submitting.",
        "current": "A submission is public as long as its author keeps it public.",
    }.get(rules.visibility, "The organizers decide which submissions are public.")
    elsewhere = rules.eligible_if_scored_in
    eligible = f" Teams without a score in the phase {elsewhere} are out of competition." if elsewhere else ""
    weigh = "affect ranks and weights" if rules.baselines_weigh else "do not affect ranks or weights"
    shown = (
        "The hidden tasks have been revealed: the page shows them with scores, weights and intervals."
        if phase.revealed
        else "The hidden tasks, their weights and the scores on them are published at the end, when the organizers reveal them."
    )
    if phase.waiting is not None and not phase.history:
        shown = f"Values and ranks are shown when the organizers close this phase. {shown}"
    return (
        "The board is ordered by the dynamic rank, not by mean Q; the page also shows the ranks by mean Q.",
        (
            "On every hidden task, the entries are ranked by their quality score Q. The dynamic rank orders them by the weighted average"
            f" of these ranks. A task weighs more if the entries differ more on it. Baselines {weigh}."
        ),
        f"{counted} {visible}{eligible}",
        (
            "A move is “own” if the team's own scores changed, and “passive” if others caused it: their submissions change task"
            " ranks and weights. A group's first entry does not beat any other entry of the group with 95 % confidence. A mean Q below zero"
            " is unreliable."
        ),
        shown,
    )
