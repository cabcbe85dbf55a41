"""A large upload as the participant's command line makes it: addresses for the parts, then the end."""

from __future__ import annotations

import json

from worker.sandbox import lifecycle, uploads
from worker.sandbox.replies import Breakdown, Reply, detail, error
from worker.sandbox.routing import Call, Route
from worker.sandbox.state import Phase


def begin(call: Call, phase: int) -> Reply:
    """Make the submission, and say where its parts go."""
    world, user, stage = call.world, call.known_user, _phase(call, phase)
    lifecycle.check_open(world, stage, user)
    team = call.team()
    lifecycle.check_room(world, stage, team)
    wish = call.data.get("is_public")
    try:
        count = int(call.data["num_file_chunks"])
        file_name = str(call.data["file_name"])
        is_public = None if wish is None else bool(json.loads(wish))
    except (KeyError, TypeError, ValueError) as problem:
        raise Breakdown(f"a field is missing or unreadable: {problem!r}") from problem
    name, submission = uploads.begin(
        world,
        count=count,
        phase=stage,
        team=team,
        user=user,
        file_name=file_name,
        is_public=is_public,
        fields={field: str(value) for field, value in call.data.items()},
    )
    parts = [
        {"partNumber": number, "url": uploads.address(world, name, number)} for number in range(1, count + 1)
    ]
    return Reply(
        status=201, body={"presigned_urls": parts, "upload_id": name, "submission_pk": submission.pk}
    )


def finish(call: Call, phase: int, submission: int) -> Reply:
    """Join the parts. Sending the message is another call, which a participant may leave out."""
    world = call.world
    lifecycle.check_open(world, _phase(call, phase), call.known_user)
    call.team()
    if call.data.get("parts") is None:
        raise error(400, "Uploaded file Parts metadata is missing")
    if call.data.get("upload_id") is None:
        raise error(400, "Uploaded file UploadId is missing")
    name = str(call.data["upload_id"])
    try:
        listed = [
            (int(part["PartNumber"]), str(part["ETag"])) for part in json.loads(str(call.data["parts"]))
        ]
    except (KeyError, TypeError, ValueError) as problem:
        raise Breakdown("parts are no list of numbers and tags") from problem
    if submission not in world.submissions:
        raise error(400, "Submission does not exist")
    upload = world.uploads.get(name)
    if upload is None or upload.submission != submission or not uploads.finish(world, name, listed):
        raise error(400, "Could not fetch presigned urls.")  # its words for anything that storage refuses
    return Reply(status=201, body={"upload_id": name, "submission_pk": submission})


def _phase(call: Call, phase: int) -> Phase:
    if phase not in call.world.phases:
        raise detail(404, f"ChallengePhase {phase} does not exist")
    return call.world.phases[phase]


ROUTES = (
    Route(path="/api/jobs/phases/<int:phase>/get_submission_file_presigned_url/", views={"POST": begin}),
    Route(
        path="/api/jobs/phases/<int:phase>/finish_submission_file_upload/<int:submission>/",
        views={"POST": finish},
    ),
)
