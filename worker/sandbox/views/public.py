"""What everybody may read: EvalAI's own leaderboards, and the files."""

from __future__ import annotations

import mimetypes
from typing import Any

from flask import Blueprint, Response, request

from worker.sandbox.call import is_host, phase_of_split, require_host, world
from worker.sandbox.replies import Breakdown, error
from worker.sandbox.serialization import moment, paged, schema
from worker.sandbox.state import Phase, World

views = Blueprint("public", __name__)


@views.get("/api/jobs/challenge_phase_split/<int:split>/leaderboard/")
def leaderboard(split: int) -> dict[str, Any]:
    """Return the public entries, one per team, best first."""
    phase = phase_of_split(split)
    if phase.fields["visibility"] != 3 and not is_host():
        raise error(400, "Sorry, the leaderboard is not public!")
    return paged(board(world, phase, public_only=phase.fields["visibility"] == 3), size=100)


@views.get("/api/jobs/phase_split/<int:split>/public_leaderboard_all_entries/")
def all_entries(split: int) -> dict[str, Any]:
    """Return all entries, including private ones, still one per team, for hosts."""
    phase = phase_of_split(split)
    require_host(400)
    return paged(board(world, phase, public_only=False), size=100)


def board(world: World, phase: Phase, *, public_only: bool) -> list[dict[str, Any]]:
    """Return the rows of a phase's split: each team's best, best first, or each team's latest answer, newest first.

    The latest answer is the one stored last, which may be that of an older submission.

    Raises:
        Breakdown: If a row holds a Boolean, which PostgreSQL cannot read as a number.
    """
    shown = [
        row for row in world.rows.values() if row["split"] == phase.split_pk and _counts(world, phase, row)
    ]
    if public_only:
        shown = [row for row in shown if world.submissions[row["submission"]]["is_public"]]
    score = {row["id"]: row["result"].get(phase.settings.metrics[0], 0) for row in shown}
    if any(isinstance(value, bool) for value in score.values()):
        raise Breakdown("invalid input syntax for type double precision")
    shown.reverse()  # the answer that was stored last comes first
    if not phase.fields["show_leaderboard_by_latest_submission"]:
        shown.sort(key=lambda row: score[row["id"]], reverse=phase.fields["is_leaderboard_order_descending"])
    ranked = []
    seen: set[str] = set()
    for row in shown:
        submission = world.submissions[row["submission"]]
        name = world.teams[submission["participant_team"]].name
        if name in seen:
            continue
        if not submission["is_baseline"]:
            seen.add(name)
        ranked.append(_shape(world, phase, row, score[row["id"]]))
    return ranked


def _counts(world: World, phase: Phase, row: dict[str, Any]) -> bool:
    submission = world.submissions[row["submission"]]
    by_host = submission["created_by"] in world.hosts and phase.fields["is_public"]
    return (
        submission["status"] == "finished"
        and not submission["is_flagged"]
        and not (by_host and not submission["is_baseline"])
    )


def _shape(world: World, phase: Phase, row: dict[str, Any], score: float) -> dict[str, Any]:
    submission = world.submissions[row["submission"]]
    return {
        "id": row["id"],
        "submission__id": submission["id"],
        "submission__participant_team": submission["participant_team"],
        "submission__participant_team__team_name": world.teams[submission["participant_team"]].name,
        "submission__participant_team__team_url": "",
        "submission__is_baseline": submission["is_baseline"],
        "submission__is_public": submission["is_public"],
        "challenge_phase_split": row["split"],
        "result": [row["result"].get(label, "#") for label in phase.settings.metrics],
        "error": None,
        "filtering_score": score,
        "filtering_error": 0,
        "leaderboard__schema": schema(phase),
        "submission__submitted_at": moment(submission["submitted_at"]),
        "submission__method_name": submission["method_name"],
        "submission__submission_metadata": submission["submission_metadata"],
        "submission__is_verified_by_host": submission["is_verified_by_host"],
    }


@views.get("/media/<path:name>")
def file(name: str) -> Response:
    """Serve a file if the address has its present signature."""
    content = world.media.get(name)
    if request.args.get("signature", "") != str(world.signatures.get(name, "")):
        return Response("<Error><Code>AccessDenied</Code></Error>", 403, content_type="application/xml")
    if content is None:
        return Response("<Error><Code>NoSuchKey</Code></Error>", 404, content_type="application/xml")
    return Response(content, content_type=mimetypes.guess_type(name)[0] or "application/octet-stream")
