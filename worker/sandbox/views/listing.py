"""Lists of submissions: all of a challenge, all of a phase, counts, and the table for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from worker.sandbox.replies import Breakdown, Reply, detail, error
from worker.sandbox.routing import Call, Route
from worker.sandbox.serialization import managed_submission_json, paged, submission_json
from worker.sandbox.views.submission import PAGE_SIZE

LISTABLE = ("submitted", "running", "failed", "cancelled", "resuming", "queued", "finished", "submitting")
DATE_TIME = re.compile(r"\d{4}-\d\d?-\d\d?[T ]\d\d?:\d\d(:\d\d([.,]\d{1,6})?)?\s*(Z|[+-]\d\d(:?\d\d)?)?")
Shape = Mapping[str, Any]


def of_challenge(call: Call, challenge: int) -> Reply:
    """List the submissions of all phases in one answer, soft-deleted ones too: the safety net of a worker."""
    world = call.world
    call.require_challenge(challenge)
    if not (call.is_host or call.known_user.staff):
        raise error(400, "Sorry, you are not authorized to make this request!")
    status = call.query.get("status")
    if status is not None and status not in LISTABLE:
        raise error(400, f"Invalid submission status {status}")
    after = _bound(call, "submitted_after")
    before = _bound(call, "submitted_before")
    chosen = [
        s
        for s in world.submissions.values()
        if (status is None or s.status == status)
        and (after is None or s.submitted_at >= after)
        and (before is None or s.submitted_at <= before)
    ]
    return Reply(body=[submission_json(world, s, call.user) for s in chosen])


def of_phase(call: Call, challenge: int, phase: int) -> Reply:
    """List the submissions of a phase in pages, newest first: all to a host, the own team's to a participant."""
    world = call.world
    call.require_challenge(challenge)
    if phase not in world.phases:
        raise detail(404, f"ChallengePhase {phase} does not exist")
    rows = [s for s in world.submissions.values() if s.phase == phase and not s.ignore_submission]
    rows.sort(key=lambda s: (s.submitted_at, s.pk), reverse=True)
    if call.is_host:
        wanted = call.query.get("participant_team__team_name", "").lower()
        shapes = [
            managed_submission_json(world, s) for s in rows if wanted in world.teams[s.team].name.lower()
        ]
    else:
        team = world.team_of(call.known_user)
        if team is None:
            raise error(400, "You are neither host nor participant of the challenge!")
        shapes = [submission_json(world, s, call.user) for s in rows if s.team == team.pk]
    return Reply(body=paged(shapes, number=call.query.get("page"), size=PAGE_SIZE, address=call.address))


def counts(call: Call, phase: int) -> Reply:
    """Count the submissions of a phase by status, soft-deleted ones too."""
    if phase not in call.world.phases:
        raise detail(404, f"ChallengePhase {phase} does not exist")
    call.require_host(401, "Sorry, you are not authorized to make this request!")
    tally = Counter(s.status for s in call.world.submissions.values() if s.phase == phase)
    return Reply(body={"status": [{"status": status, "count": n} for status, n in sorted(tally.items())]})


def table(call: Call, challenge: int, phase: int) -> Reply:
    """Write the submissions of a phase as CSV; there is no column for visibility."""
    world = call.world
    call.require_challenge(challenge)
    if phase not in world.phases:
        raise detail(404, f"ChallengePhase {phase} does not exist")
    call.require_host(403, "Sorry, you do not belong to this Host Team!")
    names = list(COLUMNS)
    if call.method == "POST":
        if not isinstance(call.content, list) or any(name not in COLUMNS for name in call.content):
            raise Breakdown("KeyError: an unknown field")
        names = [str(name) for name in call.content]
    rows = [s for s in world.submissions.values() if s.phase == phase and not s.ignore_submission]
    rows.sort(key=lambda s: (s.submitted_at, s.pk), reverse=True)
    if any(not _is_metadata(s.submission_metadata) for s in rows):
        raise Breakdown("submission_metadata is not a list of name, type and value")
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([COLUMNS[name][0] for name in names])
    for submission in rows:
        shape = managed_submission_json(world, submission)
        writer.writerow([COLUMNS[name][1](shape) for name in names])
    return Reply(body=text.getvalue(), content_type="text/csv")


def _bound(call: Call, name: str) -> datetime | None:
    text = call.query.get(name)
    if text is None:
        return None
    try:
        if not DATE_TIME.fullmatch(text):
            raise ValueError("not a full date and time")
        value = datetime.fromisoformat(text)
    except ValueError as problem:
        raise error(400, f"Invalid datetime format for '{name}'") from problem
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _is_metadata(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, list) and all(
        isinstance(v, dict) and {"name", "type", "value"} <= set(v) for v in value
    )


def _field(name: str) -> Callable[[Shape], Any]:
    return lambda shape: shape[name]


COLUMNS: Mapping[str, tuple[str, Callable[[Shape], Any]]] = {
    "id": ("id", _field("id")),
    "participant_team": ("Team Name", _field("participant_team")),
    "participant_team_members": (
        "Team Members",
        lambda shape: ",".join(member["username"] for member in shape["participant_team_members"]),
    ),
    "participant_team_members_email": (
        "Team Members Email Id",
        lambda shape: ",".join(shape["participant_team_members_email_ids"]),
    ),
    "challenge_phase": ("Challenge Phase", _field("challenge_phase")),
    "status": ("Status", _field("status")),
    "created_by": ("Created By", _field("created_by")),
    "execution_time": ("Execution Time(sec.)", _field("execution_time")),
    "submission_number": ("Submission Number", _field("submission_number")),
    "input_file": ("Submitted File", _field("input_file")),
    "stdout_file": ("Stdout File", _field("stdout_file")),
    "stderr_file": ("Stderr File", _field("stderr_file")),
    "environment_log_file": ("Environment Log File", _field("environment_log_file")),
    "created_at": ("Submitted At (mm/dd/yyyy hh:mm:ss)", _field("created_at")),
    "submission_result_file": ("Submission Result File", _field("submission_result_file")),
    "submission_metadata_file": ("Submission Metadata File", _field("submission_metadata_file")),
    "method_name": ("Method Name", _field("method_name")),
    "method_description": ("Method Description", _field("method_description")),
    "publication_url": ("Publication URL", _field("publication_url")),
    "project_url": ("Project URL", _field("project_url")),
    "submission_metadata": ("Submission Meta Attributes", _field("submission_metadata")),
}

ROUTES = (
    Route(path="/api/jobs/challenge/<int:challenge>/submission/", views={"GET": of_challenge}),
    Route(
        path="/api/challenges/<int:challenge>/challenge_phase/<int:phase>/submissions",
        views={"GET": of_phase},
    ),
    Route(
        path="/api/challenges/<int:challenge>/phase/<int:phase>/download_all_submissions/csv/",
        views={"GET": table, "POST": table},
    ),
    Route(path="/api/jobs/phases/<int:phase>/submission_count_by_status/", views={"GET": counts}),
)
