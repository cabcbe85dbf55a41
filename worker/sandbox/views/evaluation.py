"""What a worker writes: the status running, and the result."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from flask import Blueprint

from worker.sandbox.call import Call
from worker.sandbox.replies import Breakdown, Refusal, error
from worker.sandbox.serialization import submission_json
from worker.sandbox.state import Phase, Submission, World

BAD_STATUS = "Sorry, submission status is invalid"
ADDRESS = "/api/jobs/challenge/<int:challenge>/update_submission/"

views = Blueprint("evaluation", __name__)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One entry of a result: the values on a phase's split, and whether the participant sees them."""

    phase: Phase
    accuracies: dict[str, float]
    shown: bool


@views.put(ADDRESS)
def put(call: Call, challenge: int) -> dict[str, Any]:
    """End a submission: finished with a result, failed or cancelled. EvalAI does not check the state before."""
    world, submission, status = _addressed(call, challenge)
    if status not in ("failed", "cancelled", "finished"):
        raise error(400, BAD_STATUS)
    phase_pk = call.data.get("challenge_phase")
    entries = _entries(call, phase_pk) if status == "finished" else []
    # A null among the logs makes EvalAI fail before anything is written.
    texts = {name: call.text(name) for name in ("stdout", "stderr", "environment_log")}
    texts["metadata"] = str(call.data.get("metadata", ""))
    for entry in entries:
        world.write_row(submission["id"], entry.phase.split_pk, entry.accuracies)
    before = submission["status"]
    _end(world, submission, status, entries, texts)
    result = call.data.get("result", "") if status == "finished" else ""
    world.effect(
        "posted", submission["id"], status=status, phase=phase_pk, result=result, before=before, **texts
    )
    return {"success": "Submission result has been successfully updated"}


@views.patch(ADDRESS)
def patch(call: Call, challenge: int) -> dict[str, Any]:
    """Set a submission to running or queued; every call resets its start time."""
    world, submission, status = _addressed(call, challenge)
    if status not in ("running", "queued"):
        raise error(400, BAD_STATUS)
    job = call.text("job_name").lower()
    if job:
        submission["job_name"].append(job)
    submission["status"] = status
    submission["started_at"] = world.clock.now()
    world.effect(status, submission["id"])
    return submission_json(world, submission, call.user)


def _addressed(call: Call, challenge: int) -> tuple[World, Submission, str]:
    """Return the submission to which a host writes, and its new status."""
    if not call.is_host or challenge != call.world.settings.challenge:
        raise error(400, "Sorry, you are not authorized to make this request!")
    submission = call.world.submission(call.data.get("submission"))
    return call.world, submission, call.text("submission_status").lower()


def _end(
    world: World, submission: Submission, status: str, entries: list[Entry], texts: dict[str, str]
) -> None:
    submission["status"] = status
    submission["completed_at"] = world.clock.now()
    shown = str([entry.accuracies for entry in entries if entry.shown])
    files = {
        "stdout_file": (".txt", texts["stdout"]),
        "stderr_file": (".txt", texts["stderr"]),
        "environment_log_file": (".txt", texts["environment_log"]),
        "submission_result_file": (".json", shown),
        "submission_metadata_file": (".json", texts["metadata"]),
    }
    submission["files_written"] += 1
    for index, (name, (suffix, text)) in enumerate(files.items()):
        number = 10 * submission["files_written"] + index
        content = text.encode("utf-8", "surrogatepass")
        submission[name] = world.store(
            submission["challenge_phase"], submission["id"], number, suffix, content
        )


def _entries(call: Call, phase_pk: Any) -> list[Entry]:
    """Parse ``result`` as EvalAI does, with its gaps: it accepts Booleans, missing labels and an empty list."""
    try:
        results = json.loads(call.data.get("result", ""))
    except (ValueError, TypeError) as problem:
        raise error(
            400,
            f"`result` key contains invalid data with error {problem}.Please try again with correct format.",
        ) from problem
    if not isinstance(results, list) or not all(isinstance(entry, dict) for entry in results):
        raise Breakdown("result is not a list of objects")
    return [_entry(call.world, entry, phase_pk) for entry in results]


def _entry(world: World, entry: dict[str, Any], phase_pk: Any) -> Entry:
    codename, accuracies = entry.get("split"), entry.get("accuracies")
    try:
        phase = world.phases.get(-1 if phase_pk is None else int(phase_pk))
    except (TypeError, ValueError) as problem:
        raise Breakdown("challenge_phase is not an integer") from problem
    if phase is None or phase.settings.split_codename != codename:
        raise error(
            400,
            f"Challenge Phase Split does not exist with phase_id: {phase_pk} andsplit codename: {codename}",
        )
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
    return Entry(phase=phase, accuracies=accuracies, shown=bool(entry.get("show_to_participant", False)))
