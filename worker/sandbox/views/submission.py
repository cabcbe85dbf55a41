"""Submissions: create, read, list, edit, re-run, and what a worker writes."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from datetime import datetime
from typing import Any

from flask import Blueprint, g, request

from worker.sandbox import lifecycle
from worker.sandbox.call import (
    Breakdown,
    Refusal,
    body,
    detail,
    error,
    is_host,
    own_team,
    phase_with,
    require_host,
    submission_with,
    text,
    world,
)
from worker.sandbox.serialization import managed_submission_json, paged, submission_json
from worker.sandbox.state import SandboxPhase, SandboxSubmission, Team, User
from worker.sandbox.writable import DESCRIPTION, files, writable

OWN = "/api/jobs/challenge/<int:challenge>/challenge_phase/<int:phase>/submission/"
ONE = "/api/jobs/submission/<int:pk>"
LISTABLE = ("submitted", "running", "failed", "cancelled", "resuming", "queued", "finished", "submitting")
ADDRESS = "/api/jobs/challenge/<int:challenge>/update_submission/"

views = Blueprint("submission", __name__)


@views.post(OWN)
def submit(phase: int) -> tuple[dict[str, Any], int]:
    """Accept a participant's file, or the address of one."""
    sender = _entrant(phase_with(phase))
    fields = body()
    description = {name: fields.get(name, "") for name in DESCRIPTION}
    description["is_public"] = json.loads(fields.get("is_public", "null"))
    if not request.files:
        return _fetched(*sender, fields.get("file_url"), description), 200
    upload = request.files.get("input_file")
    if upload is None:
        raise Refusal(406, {"input_file": ["No file was submitted."]})
    submission = lifecycle.create(
        world, *sender, content=upload.read(), file_name=upload.filename or "", description=description
    )
    return _shown(submission), 201


def _fetched(
    phase: SandboxPhase, team: Team, user: User, address: str | None, description: dict[str, Any]
) -> dict[str, Any]:
    """Take a file from an address instead of an upload; here, only the sandbox's own files answer."""
    if address is None:
        raise error(400, "The file URL is missing!")
    path = address.partition("/media/")[2]
    if path not in world.media:
        raise error(400, "The file URL does not exists!")
    submission = lifecycle.add(
        world, phase, team, user, content=world.media[path], file_name=path, description=description
    )
    submission["is_public"] = True  # whatever the phase's rule or the request says
    lifecycle.send(world, submission)
    return {"message": "Please wait while your submission being evaluated!"}


@views.get(OWN)
def own(phase: int) -> dict[str, Any]:
    """List the team's own submissions to a phase, newest first, without deleted ones."""
    theirs = world.of(own_team(g.challenge), phase_with(phase))
    return paged([_shown(s) for s in reversed(theirs) if not s["ignore_submission"]])


@views.get(ONE)
def read(pk: int) -> dict[str, Any]:
    """Return a submission to its creator or to a host."""
    return _shown(_readable(pk))


@views.delete(ONE)
def soft_delete(pk: int) -> dict[str, Any]:
    """Mark a submission as ignored; its status and its message stay."""
    submission = _readable(pk)
    lifecycle.edit(world, submission, {"ignore_submission": True})
    return _shown(submission)


@views.patch("/api/jobs/challenge/<int:challenge>/challenge_phase/<int:phase>/submission/<int:pk>")
def change_visibility(phase: int, pk: int) -> dict[str, Any]:
    """Let a team show or hide its submission, and the host's team mark its own as a baseline."""
    if not world.is_active(g.challenge):
        raise error(403, "Challenge is not active")
    if body().get("is_baseline"):
        require_host(g.challenge, 400, "Sorry, you are not authorized to make this request")
    team, submission = own_team(g.challenge), world.submissions.get(pk)
    if submission is None or (submission["participant_team"], submission["challenge_phase"]) != (
        team.pk,
        phase,
    ):
        raise error(403, "Submission does not exist")
    return _edited(submission)


@views.patch("/api/jobs/challenges/<int:challenge>/submissions/<int:pk>/update_submission_meta/")
def update_meta(pk: int) -> dict[str, Any]:
    """Change nearly any field of a submission, in any state: a participant of their own team's, a host of any.

    EvalAI asks only whether the user is a host of the challenge in the address, not whether that is the submission's.
    """
    submission = submission_with(pk)
    if not is_host(g.challenge) and submission["participant_team"] != own_team(g.challenge).pk:
        raise error(404, f"Submission {pk} does not exist")
    return _edited(submission)


@views.patch("/api/jobs/submission/<int:pk>/update_started_at/")
def update_started_at(pk: int) -> dict[str, Any]:
    """Set the start of any submission to now, for any user."""
    if pk not in world.submissions:
        raise error(403, "Submission does not exist")
    lifecycle.edit(world, world.submissions[pk], {"started_at": world.clock.now()})
    return _shown(world.submissions[pk])


@views.post("/api/jobs/submissions/<int:pk>/re-run/")
def rerun(pk: int) -> dict[str, Any]:
    """Cancel a submission and send a new copy of it; the new primary key is only in the message. Everybody may, if participants may."""
    submission = submission_with(pk)
    if submission["ignore_submission"]:
        raise error(400, "Deleted submissions can't be re-run")
    challenge = world.challenge_of(submission)
    if not challenge.fields["allow_participants_resubmissions"]:
        require_host(challenge, 403, "Only challenge hosts or admins are allowed to re-run a submission")
    if not world.is_active(challenge):
        raise error(406, f"Challenge {challenge.title} is not active")
    lifecycle.rerun(world, submission)
    return {"success": "Submission is successfully submitted for re-running"}


@views.post("/api/jobs/phases/<int:phase>/send_submission_message/<int:pk>/")
def send_again(phase: int, pk: int) -> dict[str, Any]:
    """Put another message about a submission into the queue, whatever its state, its phase and its team."""
    named, *_ = _entrant(phase_with(phase))
    lifecycle.send(world, submission_with(pk), phase=named)
    return {}


def _entrant(phase: SandboxPhase) -> tuple[SandboxPhase, Team, User]:
    """Return the phase, the user's team and the user, if they may submit.

    Raises:
        Refusal: If the phase accepts no submissions, or none from them.
    """
    lifecycle.check_open(world, phase, g.user)
    return phase, own_team(phase.challenge), g.user


def _readable(pk: int) -> SandboxSubmission:
    submission = submission_with(pk)
    if not _is_hosted(submission) and submission["created_by"] != g.user.pk:
        raise error(401, "Sorry, you are not authorized to access this submission.")
    return submission


def _is_hosted(submission: SandboxSubmission) -> bool:
    """Return whether the user is a host of the challenge to which a submission belongs."""
    return is_host(world.challenge_of(submission))


def _shown(submission: SandboxSubmission) -> dict[str, Any]:
    return submission_json(world, submission, host=_is_hosted(submission))


def _edited(submission: SandboxSubmission) -> dict[str, Any]:
    host = _is_hosted(submission)
    changes = writable(world, body(), host=host)
    for name, upload in request.files.items():
        if name in files(host=host):
            changes[name] = world.store(submission, upload.filename or "", upload.read())
    lifecycle.edit(world, submission, changes)
    return _shown(submission)


@views.get("/api/jobs/challenge/<int:challenge>/submission/")
def of_challenge() -> list[dict[str, Any]]:
    """List the submissions of all phases in one answer, including soft-deleted ones; a worker finds lost ones with it."""
    require_host(g.challenge, 400)
    status = request.args.get("status")
    if status is not None and status not in LISTABLE:
        raise error(400, f"Invalid submission status {status}")
    after, before = _bound("submitted_after"), _bound("submitted_before")
    return [
        submission_json(world, s, host=True)
        for s in world.submissions.values()
        if world.challenge_of(s) is g.challenge
        and (status is None or s["status"] == status)
        and (after is None or s["submitted_at"] >= after)
        and (before is None or s["submitted_at"] <= before)
    ]


@views.get("/api/challenges/<int:challenge>/challenge_phase/<int:phase>/submissions")
def of_phase(phase: int) -> dict[str, Any]:
    """List the submissions of a phase in pages, newest first: all for a host, only their own team's for participants."""
    if phase_with(phase).challenge is not g.challenge:
        raise error(404, f"Challenge Phase {phase} does not exist")
    rows = [
        s for s in world.submissions.values() if s["challenge_phase"] == phase and not s["ignore_submission"]
    ]
    rows.sort(key=lambda s: (s["submitted_at"], s["id"]), reverse=True)
    if is_host(g.challenge):
        return paged([managed_submission_json(world, s) for s in rows], size=world.settings.page_size)
    team = world.submitting_team(g.user, g.challenge)
    if team is None:
        raise error(400, "You are neither host nor participant of the challenge!")
    own = [submission_json(world, s, host=False) for s in rows if s["participant_team"] == team.pk]
    return paged(own, size=world.settings.page_size)


@views.get("/api/jobs/phases/<int:phase>/submission_count_by_status/")
def counts(phase: int) -> dict[str, Any]:
    """Count the submissions of a phase by status, including soft-deleted ones."""
    require_host(phase_with(phase).challenge, 401)
    tally = Counter(s["status"] for s in world.submissions.values() if s["challenge_phase"] == phase)
    return {"status": [{"status": status, "count": n} for status, n in sorted(tally.items())]}


def _bound(name: str) -> datetime | None:
    text = request.args.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+\d\d:\d\d)", text):
        raise error(400, f"Invalid datetime format for '{name}'")
    return datetime.fromisoformat(text)


@views.put(ADDRESS)
def put() -> dict[str, Any]:
    """End a submission: finished with a result, failed or cancelled. EvalAI does not check the state before."""
    submission, status = _addressed("failed", "cancelled", "finished")
    result = body().get("result", "") if status == "finished" else ""
    entries = _entries(result) if status == "finished" else []
    # A null among the logs makes EvalAI fail before anything is written.
    texts = {name: text(name) for name in ("stdout", "stderr", "environment_log")}
    texts["metadata"] = str(body().get("metadata", ""))
    for split, accuracies, _ in entries:
        world.write_row(submission["id"], split, accuracies)
    before, phase = submission["status"], body().get("challenge_phase")
    submission |= {"status": status, "completed_at": world.clock.now()}
    files = {
        "stdout_file": (".txt", texts["stdout"]),
        "stderr_file": (".txt", texts["stderr"]),
        "environment_log_file": (".txt", texts["environment_log"]),
        "submission_result_file": (".json", str([accuracies for _, accuracies, shown in entries if shown])),
        "submission_metadata_file": (".json", texts["metadata"]),
    }
    for name, (suffix, content) in files.items():
        submission[name] = world.store(submission, f"x{suffix}", content.encode("utf-8", "surrogatepass"))
    world.effect(
        "posted", submission["id"], status=status, phase=phase, result=result, before=before, **texts
    )
    return {"success": "Submission result has been successfully updated"}


@views.patch(ADDRESS)
def patch() -> dict[str, Any]:
    """Set a submission to running or queued; every call resets its start time."""
    submission, status = _addressed("running", "queued")
    job = text("job_name").lower()
    if job:
        submission["job_name"].append(job)
    submission |= {"status": status, "started_at": world.clock.now()}
    world.effect(status, submission["id"])
    return _shown(submission)


def _addressed(*statuses: str) -> tuple[SandboxSubmission, str]:
    """Return the submission to which a host of the challenge in the address writes, whosever it is, and its new status."""
    require_host(g.challenge, 400)
    value, status = body().get("submission"), text("submission_status").lower()
    try:
        pk = None if value is None else int(value)
    except (TypeError, ValueError) as problem:
        raise Breakdown("a primary key must be an integer") from problem
    if pk is None or pk not in world.submissions:
        raise detail(404, f"Submission {value} does not exist")
    if status not in statuses:
        raise error(400, "Sorry, submission status is invalid")
    return world.submissions[pk], status


def _entries(result: Any) -> list[tuple[int, dict[str, float], bool]]:
    """Parse ``result`` as EvalAI does, with its gaps: it accepts Booleans, missing labels and an empty list.

    Returns:
        Of each entry the split, the values, and whether the participant sees them.
    """
    try:
        entries = json.loads(result)
    except (ValueError, TypeError) as problem:
        words = (
            f"`result` key contains invalid data with error {problem}.Please try again with correct format."
        )
        raise error(400, words) from problem
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Breakdown("result is not a list of objects")
    return [_entry(entry) for entry in entries]


def _entry(entry: dict[str, Any]) -> tuple[int, dict[str, float], bool]:
    pk, codename, accuracies = body().get("challenge_phase"), entry.get("split"), entry.get("accuracies")
    phase = next((phase for phase in world.phases.values() if str(phase.pk) == str(pk)), None)
    if phase is None or phase.settings.split_codename != codename:
        words = f"Challenge Phase Split does not exist with phase_id: {pk} andsplit codename: {codename}"
        raise error(400, words)
    if not isinstance(accuracies, dict):
        raise Breakdown("an entry has no accuracies")
    missing = [metric for metric in accuracies if metric not in phase.settings.metrics]
    if missing:
        raise error(400, f"Following metrics are missing in theleaderboard data: {missing}")
    malformed = [(metric, type(v)) for metric, v in accuracies.items() if not isinstance(v, int | float)]
    if malformed:
        raise error(400, f"Values for following metrics are not offloat/int: {malformed}")
    if not all(math.isfinite(value) for value in accuracies.values()):
        raise Refusal(400, {"result": ["Value must be valid JSON."]})
    return phase.split_pk, accuracies, bool(entry.get("show_to_participant", False))
