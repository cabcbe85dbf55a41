"""A large upload by the participant's command line: addresses for the parts, then the end."""

from __future__ import annotations

import json
from typing import Any

from flask import Blueprint

from worker.sandbox import lifecycle, uploads
from worker.sandbox.call import Call
from worker.sandbox.replies import Breakdown, error

views = Blueprint("upload", __name__)


@views.post("/api/jobs/phases/<int:phase>/get_submission_file_presigned_url/")
def begin(call: Call, phase: int) -> tuple[dict[str, Any], int]:
    """Create the submission, and return the addresses for its parts."""
    entrant = call.entrant(call.phase(phase))
    try:
        count, file_name = int(call.data["num_file_chunks"]), str(call.data["file_name"])
    except (KeyError, TypeError, ValueError) as problem:
        raise Breakdown(f"a field is missing or unreadable: {problem!r}") from problem
    name, submission = uploads.begin(call.world, entrant, file_name, call.description, count=count)
    parts = [
        {"partNumber": number, "url": uploads.address(call.world, name, number)}
        for number in range(1, count + 1)
    ]
    return {"presigned_urls": parts, "upload_id": name, "submission_pk": submission["id"]}, 201


@views.post("/api/jobs/phases/<int:phase>/finish_submission_file_upload/<int:submission>/")
def finish(call: Call, phase: int, submission: int) -> tuple[dict[str, Any], int]:
    """Join the parts. Sending the message is a separate call, which a participant may omit."""
    world = call.world
    lifecycle.check_open(world, call.phase(phase), call.known_user)
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
        raise Breakdown("parts are not a list of numbers and tags") from problem
    if submission not in world.submissions:
        raise error(400, "Submission does not exist")
    upload = world.uploads.get(name)
    if upload is None or upload.submission != submission or not uploads.finish(world, name, listed):
        # EvalAI's words for everything that storage refuses
        raise error(400, "Could not fetch presigned urls.")
    return {"upload_id": name, "submission_pk": submission}, 201
