"""Lists of submissions: all of a challenge, all of a phase, and counts."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from flask import Blueprint, request

from worker.sandbox.call import Call
from worker.sandbox.replies import error
from worker.sandbox.serialization import managed_submission_json, paged, submission_json
from worker.sandbox.views.submission import PAGE_SIZE

LISTABLE = ("submitted", "running", "failed", "cancelled", "resuming", "queued", "finished", "submitting")
DATE_TIME = re.compile(r"\d{4}-\d\d?-\d\d?[T ]\d\d?:\d\d(:\d\d([.,]\d{1,6})?)?\s*(Z|[+-]\d\d(:?\d\d)?)?")

views = Blueprint("listing", __name__)


@views.get("/api/jobs/challenge/<int:challenge>/submission/")
def of_challenge(call: Call, challenge: int) -> list[dict[str, Any]]:
    """List the submissions of all phases in one answer, including soft-deleted ones; a worker finds lost ones with it."""
    world = call.world
    call.require_challenge(challenge)
    call.require_host(400, "Sorry, you are not authorized to make this request!")
    status = request.args.get("status")
    if status is not None and status not in LISTABLE:
        raise error(400, f"Invalid submission status {status}")
    after, before = _bound("submitted_after"), _bound("submitted_before")
    return [
        submission_json(world, s, call.user)
        for s in world.submissions.values()
        if (status is None or s["status"] == status)
        and (after is None or s["submitted_at"] >= after)
        and (before is None or s["submitted_at"] <= before)
    ]


@views.get("/api/challenges/<int:challenge>/challenge_phase/<int:phase>/submissions")
def of_phase(call: Call, challenge: int, phase: int) -> dict[str, Any]:
    """List the submissions of a phase in pages, newest first: all for a host, only their own team's for participants."""
    world = call.world
    call.require_challenge(challenge)
    call.phase(phase)
    rows = [
        s for s in world.submissions.values() if s["challenge_phase"] == phase and not s["ignore_submission"]
    ]
    rows.sort(key=lambda s: (s["submitted_at"], s["id"]), reverse=True)
    if call.is_host:
        wanted = request.args.get("participant_team__team_name", "").lower()
        shapes = [
            managed_submission_json(world, s)
            for s in rows
            if wanted in world.teams[s["participant_team"]].name.lower()
        ]
    else:
        team = world.team_of(call.known_user)
        if team is None:
            raise error(400, "You are neither host nor participant of the challenge!")
        shapes = [submission_json(world, s, call.user) for s in rows if s["participant_team"] == team.pk]
    return paged(shapes, size=PAGE_SIZE)


@views.get("/api/jobs/phases/<int:phase>/submission_count_by_status/")
def counts(call: Call, phase: int) -> dict[str, Any]:
    """Count the submissions of a phase by status, including soft-deleted ones."""
    call.phase(phase)
    call.require_host(401, "Sorry, you are not authorized to make this request!")
    tally = Counter(s["status"] for s in call.world.submissions.values() if s["challenge_phase"] == phase)
    return {"status": [{"status": status, "count": n} for status, n in sorted(tally.items())]}


def _bound(name: str) -> datetime | None:
    text = request.args.get(name)
    if text is None:
        return None
    try:
        if not DATE_TIME.fullmatch(text):
            raise ValueError("not a full date and time")
        value = datetime.fromisoformat(text)
    except ValueError as problem:
        raise error(400, f"Invalid datetime format for '{name}'") from problem
    return value if value.tzinfo else value.replace(tzinfo=UTC)
