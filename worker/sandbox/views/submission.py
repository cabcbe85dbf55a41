"""One submission: create, read, delete, edit, re-run, and send again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from flask import Blueprint, request

from worker.sandbox import lifecycle
from worker.sandbox.call import Call
from worker.sandbox.replies import Refusal, error
from worker.sandbox.serialization import paged, submission_json
from worker.sandbox.state import STATUSES, Phase, Submission, World, last_suffix

PAGE_SIZE = 150
OWN = "/api/jobs/challenge/<int:challenge>/challenge_phase/<int:phase>/submission/"
ONE = "/api/jobs/submission/<int:submission>"

views = Blueprint("submission", __name__)


@views.post(OWN)
def submit(call: Call, challenge: int, phase: int) -> tuple[dict[str, Any], int]:
    """Accept a participant's file."""
    entrant = call.entrant(_phase(call, challenge, phase))
    if not request.files:
        missing = call.data.get("file_url") is None
        raise error(400, "The file URL is missing!" if missing else "The file URL does not exists!")
    upload = request.files.get("input_file")
    if upload is None:
        raise Refusal(406, {"input_file": ["No file was submitted."]})
    submission = lifecycle.create(call.world, entrant, upload.read(), upload.filename or "", call.description)
    return submission_json(call.world, submission, call.user), 201


@views.get(OWN)
def own(call: Call, challenge: int, phase: int) -> dict[str, Any]:
    """List the team's own submissions to a phase, newest first, without deleted ones."""
    stage = _phase(call, challenge, phase)
    team = call.team()
    mine = [
        s
        for s in call.world.submissions.values()
        if (s["participant_team"], s["challenge_phase"]) == (team.pk, stage.pk) and not s["ignore_submission"]
    ]
    mine.sort(key=lambda s: (s["submitted_at"], s["id"]), reverse=True)
    return paged([submission_json(call.world, s, call.user) for s in mine], size=PAGE_SIZE)


@views.get(ONE)
def read(call: Call, submission: int) -> dict[str, Any]:
    """Return a submission to its creator or to a host."""
    return submission_json(call.world, _readable(call, submission), call.user)


@views.delete(ONE)
def soft_delete(call: Call, submission: int) -> dict[str, Any]:
    """Mark a submission as ignored; its status and its message stay."""
    found = _readable(call, submission)
    found["ignore_submission"] = True
    call.world.effect("deleted", found["id"])
    return submission_json(call.world, found, call.user)


@views.patch("/api/jobs/challenge/<int:challenge>/challenge_phase/<int:phase>/submission/<int:submission>")
def change_visibility(call: Call, challenge: int, phase: int, submission: int) -> dict[str, Any]:
    """Let a team show or hide its submission, and the host's team mark its own as a baseline."""
    world = call.world
    call.require_challenge(challenge)
    stage = call.phase(phase)
    if not world.is_active:
        raise error(403, "Challenge is not active")
    if not call.is_host:
        if not stage.settings.is_public:
            raise error(403, "Sorry, cannot accept submissions since challenge phase is not public")
        if call.data.get("is_baseline"):
            raise error(400, "Sorry, you are not authorized to make this request")
    team = call.team()
    found = world.submissions.get(submission)
    if found is None or (found["participant_team"], found["challenge_phase"]) != (team.pk, phase):
        raise error(403, "Submission does not exist")
    changes = _changes(world, call.data)
    if call.data.get("is_public") is True:
        changes["when_made_public"] = world.clock.now()
    lifecycle.edit(world, found, changes)
    return submission_json(world, found, call.user)


@views.patch("/api/jobs/challenges/<int:challenge>/submissions/<int:submission>/update_submission_meta/")
def update_meta(call: Call, challenge: int, submission: int) -> dict[str, Any]:
    """Change fields of a submission: any for a host, only their own team's for participants.

    EvalAI lets participants change status, phase, start and the input file here, in any state.
    """
    world = call.world
    call.require_challenge(challenge)
    if call.is_host:
        found = world.submission(submission)
    else:
        team = world.team_of(call.known_user)
        candidate = world.submissions.get(submission)
        if team is None or candidate is None or candidate["participant_team"] != team.pk:
            raise error(404, f"Submission {submission} does not exist")
        found = candidate
    changes = _changes(world, call.data)
    if upload := request.files.get("input_file"):
        lifecycle.replace_file(world, found, upload.read(), last_suffix(upload.filename or ""))
    lifecycle.edit(world, found, changes)
    return submission_json(world, found, call.user)


@views.post("/api/jobs/submissions/<int:submission>/re-run/")
def rerun(call: Call, submission: int) -> dict[str, Any]:
    """Cancel a submission and send a new copy of it; the new primary key is only in the message."""
    world, found = call.world, call.submission(submission)
    if found["ignore_submission"]:
        raise error(400, "Deleted submissions can't be re-run")
    call.require_host(403, "Only challenge hosts or admins are allowed to re-run a submission")
    if not world.is_active:
        raise error(406, f"Challenge {world.settings.title} is not active")
    lifecycle.rerun(world, found)
    return {"success": "Submission is successfully submitted for re-running"}


@views.post("/api/jobs/phases/<int:phase>/send_submission_message/<int:submission>/")
def send_again(call: Call, phase: int, submission: int) -> dict[str, Any]:
    """Put another message about a submission into the queue, whatever its state."""
    world = call.world
    lifecycle.check_open(world, call.phase(phase), call.known_user)
    call.team()
    found = world.submission(submission)
    body = {"submission_pk": submission, "phase_pk": phase, "challenge_pk": world.settings.challenge}
    lifecycle.send(world, found, body)
    return {}


def _phase(call: Call, challenge: int, phase: int) -> Phase:
    if challenge != call.world.settings.challenge:
        raise error(400, "Challenge does not exist")
    if phase not in call.world.phases:
        raise error(400, "Challenge Phase does not exist")
    return call.world.phases[phase]


def _readable(call: Call, pk: int) -> Submission:
    found = call.submission(pk)
    if not call.is_host and found["created_by"] != call.known_user.pk:
        raise error(401, "Sorry, you are not authorized to access this submission.")
    return found


def _changes(world: World, data: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    faults: dict[str, list[str]] = {}
    for name, value in data.items():
        if name not in EDITABLE:
            continue
        try:
            changes[name] = EDITABLE[name](value)
        except (TypeError, ValueError) as problem:
            faults[name] = [str(problem)]
    if (phase := changes.get("challenge_phase")) is not None and phase not in world.phases:
        faults["challenge_phase"] = [f'Invalid pk "{phase}" - object does not exist.']
    if faults:
        raise Refusal(400, faults)
    return changes


def _status(value: Any) -> str:
    if value not in STATUSES:
        raise ValueError(f'"{value}" is not a valid choice.')
    return str(value)


def _boolean(value: Any) -> bool:
    if value in (True, "true", "True", "1"):
        return True
    if value in (False, "false", "False", "0"):
        return False
    raise ValueError("Must be a valid boolean.")


def _moment(value: Any) -> datetime | None:
    return None if value is None else datetime.fromisoformat(str(value))


EDITABLE: Mapping[str, Callable[[Any], Any]] = {
    "status": _status,
    "challenge_phase": int,
    "participant_team": int,
    "created_by": int,
    "started_at": _moment,
    "completed_at": _moment,
    "is_public": _boolean,
    "is_flagged": _boolean,
    "is_baseline": _boolean,
    "is_verified_by_host": _boolean,
    "ignore_submission": _boolean,
    "method_name": str,
    "method_description": str,
    "project_url": str,
    "publication_url": str,
    "submission_metadata": lambda value: value,
}
