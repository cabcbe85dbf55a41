"""EvalAI's own leaderboards, and the correction of one row."""

from __future__ import annotations

import json
from typing import Any

from worker.sandbox.replies import Breakdown, Reply, detail, error
from worker.sandbox.routing import Call, Route
from worker.sandbox.serialization import moment, paged, schema
from worker.sandbox.state import Phase, Row, World

PAGE_SIZE = 100
NOT_AUTHORIZED = "Sorry, you are not authorized to make this request!"


def public(call: Call, split: int) -> Reply:
    """Show the public entries, one per team, best first."""
    phase = _phase(call, split)
    if phase.settings.visibility != 3 and not call.is_host:
        raise error(400, "Sorry, the leaderboard is not public!")
    rows = board(call.world, phase, public_only=phase.settings.visibility == 3)
    return Reply(body=paged(rows, number=call.query.get("page"), size=PAGE_SIZE, address=call.address))


def all_entries(call: Call, split: int) -> Reply:
    """Show private entries too, still one per team, to hosts."""
    phase = _phase(call, split)
    call.require_host(400, NOT_AUTHORIZED)
    rows = board(call.world, phase, public_only=False)
    return Reply(body=paged(rows, number=call.query.get("page"), size=PAGE_SIZE, address=call.address))


def correct_row(call: Call, row: int) -> Reply:
    """Overwrite the result of one row without touching its submission."""
    world = call.world
    found = world.rows.get(row)
    if found is None:
        raise error(404, "Leaderboard data does not exist")
    call.require_host(400, NOT_AUTHORIZED)
    raw = call.data.get("leaderboard_data")
    if raw is None:
        raise error(400, "leaderboard_data can't be blank")
    try:
        data = json.loads(raw)
    except (ValueError, TypeError) as problem:
        text = f"`leaderboard_data` key contains invalid data with error {problem}."
        raise error(400, text + "Please try again with correct format.") from problem
    phase = world.phase_of_split(found.split)
    if phase is None or not isinstance(data, dict):
        raise Breakdown("leaderboard_data is no object")
    missing = [label for label in phase.settings.metrics if label not in data]
    extra = [label for label in data if label not in phase.settings.metrics]
    malformed = [(label, type(v)) for label, v in data.items() if not isinstance(v, int | float)]
    if missing or extra:
        problems = f"missing {missing}, invalid {extra}"
        raise error(400, f"Following metrics are {problems} in the leaderboard data")
    if malformed:
        raise error(400, f"Values for following metrics are not offloat/int: {malformed}")
    found.result = data
    world.effect("row_corrected", found.submission, result=raw)
    return Reply(body={"id": found.pk, "challenge_phase_split": found.split, "result": data, "error": None})


def board(world: World, phase: Phase, *, public_only: bool) -> list[dict[str, Any]]:
    """Rank the rows of a phase's split: each team's best, or its latest, and then the newest row first.

    Raises:
        Breakdown: A row holds a boolean, which PostgreSQL cannot read as a number.
    """
    shown = [row for row in world.rows.values() if row.split == phase.split_pk and _counts(world, phase, row)]
    if public_only:
        shown = [row for row in shown if world.submissions[row.submission].is_public]
    shapes = [_shape(world, phase, row) for row in sorted(shown, key=lambda row: -row.pk)]
    sign = -1 if phase.settings.descending else 1
    if not phase.settings.by_latest:
        shapes.sort(key=lambda shape: sign * shape["filtering_score"])
    ranked: list[dict[str, Any]] = []
    seen: set[str] = set()
    for shape in shapes:
        name = shape["submission__participant_team__team_name"]
        if name in seen:
            continue
        if not shape["submission__is_baseline"]:
            seen.add(name)
        ranked.append(shape)
    return ranked


def _counts(world: World, phase: Phase, row: Row) -> bool:
    submission = world.submissions[row.submission]
    ended = ("finished", "partially_evaluated") if phase.settings.partial_evaluation else ("finished",)
    by_host = submission.created_by in world.hosts and phase.settings.is_public
    return (
        submission.status in ended
        and not submission.is_flagged
        and not (by_host and not submission.is_baseline)
    )


def _shape(world: World, phase: Phase, row: Row) -> dict[str, Any]:
    submission = world.submissions[row.submission]
    score = row.result.get(phase.settings.metrics[0], 0)
    if isinstance(score, bool):
        raise Breakdown("invalid input syntax for type double precision")
    return {
        "id": row.pk,
        "submission__id": submission.pk,
        "submission__participant_team": submission.team,
        "submission__participant_team__team_name": world.teams[submission.team].name,
        "submission__participant_team__team_url": "",
        "submission__is_baseline": submission.is_baseline,
        "submission__is_public": submission.is_public,
        "challenge_phase_split": row.split,
        "result": [row.result.get(label, "#") for label in phase.settings.metrics],
        "error": None,
        "filtering_score": score,
        "filtering_error": 0,
        "leaderboard__schema": schema(phase),
        "submission__submitted_at": moment(submission.submitted_at),
        "submission__method_name": submission.method_name,
        "submission__submission_metadata": submission.submission_metadata,
        "submission__is_verified_by_host": submission.is_verified_by_host,
    }


def _phase(call: Call, split: int) -> Phase:
    phase = call.world.phase_of_split(split)
    if phase is None:
        raise detail(404, f"ChallengePhaseSplit {split} does not exist")
    return phase


ROUTES = (
    Route(
        path="/api/jobs/challenge_phase_split/<int:split>/leaderboard/",
        views={"GET": public},
        public=True,
    ),
    Route(
        path="/api/jobs/phase_split/<int:split>/public_leaderboard_all_entries/",
        views={"GET": all_entries},
        throttled=False,
    ),
    Route(path="/api/jobs/leaderboard_data/<int:row>/", views={"PATCH": correct_row}),
)
