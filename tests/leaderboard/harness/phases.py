"""Phases made by hand for the tests of ranking and boards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from leaderboard.rules import PhaseRules
from leaderboard.snapshot import Entry, PhaseSnapshot

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def entry(pk: int, team_key: int, scores: Mapping[str, Sequence[float]], **facts: object) -> Entry:
    """Return a public submission of a team, made ``pk`` hours after the start."""
    values: dict[str, object] = {
        "submission": pk,
        "team_key": team_key,
        "team": f"Team {team_key}",
        "method": f"method {pk}",
        "submitted_at": START + timedelta(hours=pk),
        "public": True,
        "baseline": False,
        "scores": {task: tuple(folds) for task, folds in scores.items()},
    }
    return Entry(**(values | facts))  # type: ignore[arg-type]


def steady(pk: int, team_key: int, *qualities: float, **facts: object) -> Entry:
    """Return a submission whose two equal folds give exactly these quality scores in tasks a, b, c and so on."""
    scores = {chr(ord("a") + index): (value / 100, value / 100) for index, value in enumerate(qualities)}
    return entry(pk, team_key, scores, **facts)


def phase(*entries: Entry, row_sets: Mapping[str, str] | None = None, **rules: Any) -> PhaseSnapshot:
    """Return a phase whose tasks are those of the first entry, each on its own row set."""
    tasks = entries[0].scores if entries else ()
    return PhaseSnapshot(
        codename="dev",
        rules=PhaseRules(**{"replicates": 100, **rules}),
        row_sets=row_sets or {task: f"rows of {task}" for task in tasks},
        entries=entries,
    )
