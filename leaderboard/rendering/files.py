"""Render all published files with one pure function, from a site to the bytes of its files."""

from __future__ import annotations

import json
from collections.abc import Sequence

from leaderboard.rendering.assets import SCHEMA_NAME, schema_bytes
from leaderboard.rendering.charts import evolution_figures
from leaderboard.rendering.history import update_history
from leaderboard.rendering.names import csv_cell, csv_text, display_name
from leaderboard.rendering.page import render_page
from leaderboard.rendering.readme import update_readme
from leaderboard.rendering.rows import Row, minute, stamp
from leaderboard.rendering.shown import ShownPhase, shown_phases
from leaderboard.rendering.unlocked import unlocked_json
from leaderboard.snapshot import Site, WaitingTeam
from scoring.printable import count_of

# Columns of the CSV: the entries' keys in the JSON, two of them renamed.
CSV_COLUMNS = (
    "position", "rank", "rank_by_mean", "team", "mean_q", "reliable", "group", "movement", "move_kind", "baseline", "eligible",
    "submission", "submissions", "last_submission",
)  # fmt: skip
METHOD_COLUMNS = ("method", "project_url", "publication_url")
"""The last columns of the CSV, if any participant gave one of these values."""


def render(site: Site, *, readme: bytes | None, history: bytes | None = None) -> dict[str, bytes]:
    """Return path → content of every published file; paths are relative to the root of the branch.

    The function is pure: equal values give equal bytes, in any process. Before the reveal nothing in the files depends on the number of
    hidden tasks. What ``site.publish`` or a reveal unlocks is added to ``index.html`` and the phase's JSON.

    Args:
        site: The site to render.
        readme: README.md from the branch, so that the text around our block stays; None if there is none.
        history: leaderboard/history.jsonl from the branch, which is only appended to; None starts a new one.
    """
    phases = shown_phases(site)
    files = {
        "README.md": update_readme(readme, site.title, phases),
        "index.html": render_page(site, phases),
        "leaderboard/history.jsonl": update_history(history, site),
        "leaderboard/badge.json": _badge(phases),
        f"leaderboard/schema/{SCHEMA_NAME}": schema_bytes(),
    }
    for phase in phases:
        files[f"leaderboard/{phase.stem}.json"] = _json(site, phase)
        files[f"leaderboard/{phase.stem}.csv"] = _csv(phase.rows)
        if phase.evolution:
            light, dark = evolution_figures(phase.site.title, phase.evolution)
            files[f"leaderboard/{phase.stem}-evolution-light.svg"] = light
            files[f"leaderboard/{phase.stem}-evolution-dark.svg"] = dark
    return dict(sorted(files.items()))


def _json(site: Site, phase: ShownPhase) -> bytes:
    board, rules, frozen_at = phase.board, phase.site.rules, phase.site.frozen_at
    document: dict[str, object] = {
        "$schema": f"schema/{SCHEMA_NAME}",
        "version": 1,
        "challenge": site.title,
        "link": site.link,
        **({"repository": site.repository} if site.repository else {}),
        "phase": phase.stem,
        "title": phase.site.title,
        "frozen_at": stamp(frozen_at) if frozen_at else None,
        "made_at": stamp(board.made_at) if board else None,
        "sequence": board.sequence if board else 0,
        "triggers": list(board.triggers) if board else [],
        "rules": {
            "ranking": "dynamic",
            "selection": rules.selection.value,
            "visibility": rules.visibility,
            "baselines_weigh": rules.baselines_weigh,
            "decimals": rules.decimals,
            "eligible_if_scored_in": rules.eligible_if_scored_in,
            **({} if rules.ladder_step is None else {"ladder_step": rules.ladder_step}),
        },
        "entries": [_entry(row) | _method(row) for row in phase.rows],
    }
    if phase.waiting is not None:
        document["waiting"] = [_waiting(team) for team in phase.waiting]
    document |= unlocked_json(phase.unlocked)
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()


def _entry(row: Row) -> dict[str, object]:
    return {
        "position": row.position,
        "rank": row.rank,
        "rank_by_mean": row.rank_by_mean,
        "team": row.team,
        "q_mean": float(row.q_text),
        "reliable": row.reliable,
        "group": row.group,
        "move": row.move,
        "move_kind": row.kind.value,
        "baseline": row.baseline,
        "eligible": row.eligible,
        "submission": row.submission,
        "submissions": row.submissions,
        "last_submission": stamp(row.last_submitted_at),
    }


def _waiting(team: WaitingTeam) -> dict[str, object]:
    return {
        "team": team.team,
        "submissions": team.submissions,
        "last_submission": stamp(team.last_submitted_at),
    }


def _method(row: Row) -> dict[str, str]:
    """Return what a row's participant says about the method; empty values are left out."""
    method = row.method
    told = zip(METHOD_COLUMNS, (method.name, method.project_url, method.publication_url), strict=True)
    return {column: text for column, text in told if text}


def _csv(rows: tuple[Row, ...]) -> bytes:
    methods = [_method(row) for row in rows]
    more = METHOD_COLUMNS if any(methods) else ()
    lines = []
    for row, method in zip(rows, methods, strict=True):
        entry = _entry(row) | {"team": csv_cell(row.team), "q_mean": row.q_text}
        cells = [str(value).lower() if isinstance(value, bool) else value for value in entry.values()]
        lines.append([*cells, *(csv_cell(method.get(column, "")) for column in more)])
    return csv_text([*CSV_COLUMNS, *more], lines).encode()


def _badge(phases: Sequence[ShownPhase]) -> bytes:
    """Return the JSON of shields.io's endpoint badge, which names the leader of the last phase that has begun."""
    message, color = "no entries yet", "lightgrey"
    for phase in phases:
        title = display_name(phase.site.title)
        if phase.waiting:
            message, color = f"{title}: {count_of(len(phase.waiting), 'team')}, ranks at the end", "blue"
        if phase.board is None:
            continue
        competing = [row for row in phase.rows if row.rank is not None]
        color = "inactive" if phase.site.frozen_at else "blue"
        entries = count_of(len(phase.rows), "entry", "entries")
        message = f"{title}: {entries}, {minute(phase.board.made_at)[:10]}"
        if competing:
            message = f"{title}: {competing[0].team[:32]} {competing[0].q_text}"
    badge = {"schemaVersion": 1, "label": "leaderboard", "message": message, "color": color}
    return (json.dumps(badge, ensure_ascii=False, indent=1) + "\n").encode()
