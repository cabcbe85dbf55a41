"""What a worker writes: running, and the result."""

from __future__ import annotations

import json
import math
from typing import Any

from worker.sandbox.replies import Breakdown, Refusal, Reply, error
from worker.sandbox.routing import Call, Route
from worker.sandbox.serialization import submission_json
from worker.sandbox.state import Phase, Submission, World

NOT_AUTHORIZED = "Sorry, you are not authorized to make this request!"
BAD_STATUS = "Sorry, submission status is invalid"
UPDATED = {"success": "Submission result has been successfully updated"}
Entry = tuple[Phase, dict[str, Any], bool]  # phase of the split, accuracies, show_to_participant


def put(call: Call, challenge: int) -> Reply:
    """End a submission: finished with a result, failed or cancelled. There is no state machine behind it."""
    return _put(call, challenge, ("failed", "cancelled", "finished"))


def patch(call: Call, challenge: int) -> Reply:
    """Set a submission to running or queued; every call resets its start."""
    _require_host(call, challenge)
    submission = call.world.submission(call.data.get("submission"))
    status = call.text("submission_status").lower()
    if status not in ("running", "queued"):
        raise error(400, BAD_STATUS)
    return _set_running(call, submission, status)


def put_partial(call: Call, challenge: int) -> Reply:
    """End a submission as ``put`` does, or create the first part of its result."""
    return _put(call, challenge, ("failed", "cancelled", "finished", "partially_evaluated"))


def patch_partial(call: Call, challenge: int) -> Reply:
    """Set a submission to running, or merge further metrics into its rows."""
    _require_host(call, challenge)
    world = call.world
    submission = world.submission(call.data.get("submission"))
    status = call.text("submission_status").lower()
    if status == "running":
        return _set_running(call, submission, status)
    if status not in ("partially_evaluated", "finished"):
        raise error(400, BAD_STATUS)
    phase_pk = call.data.get("challenge_phase")
    entries = _entries(call, phase_pk, partial=True)
    for phase, _, _ in entries:
        if world.row(submission.pk, phase.split_pk) is None:
            raise error(
                400,
                f"Leaderboard Data does not exist with phase_id: {phase_pk} "
                f"andsubmission id: {call.data.get('submission')}",
            )
    texts = _texts(call)
    for phase, accuracies, _ in entries:
        row = world.row(submission.pk, phase.split_pk)
        if row is not None:
            row.result.update(accuracies)
    _end(call, submission, status, entries, texts)
    world.effect("partially_posted", submission.pk, status=status, result=call.data.get("result", ""))
    return Reply(body=UPDATED)


def _put(call: Call, challenge: int, allowed: tuple[str, ...]) -> Reply:
    _require_host(call, challenge)
    world = call.world
    submission = world.submission(call.data.get("submission"))
    status = call.text("submission_status").lower()
    if status not in allowed:
        raise error(400, BAD_STATUS)
    phase_pk = call.data.get("challenge_phase")
    partial = "partially_evaluated" in allowed
    entries: list[Entry] = []
    if status in ("finished", "partially_evaluated"):
        entries = _entries(call, phase_pk, partial=partial)
    texts = _texts(call)
    for phase, accuracies, _ in entries:
        world.write_row(submission.pk, phase.split_pk, accuracies)
    before = submission.status
    _end(call, submission, status, entries, texts)
    world.effect(
        "partially_posted" if status == "partially_evaluated" else "posted",
        submission.pk,
        status=status,
        phase=phase_pk,
        result=call.data.get("result", "") if entries or status == "finished" else "",
        before=before,
        **texts,
    )
    return Reply(body=UPDATED)


def _set_running(call: Call, submission: Submission, status: str) -> Reply:
    job = call.text("job_name").lower()
    if job:
        submission.job_name.append(job)
    submission.status = status
    submission.started_at = call.world.clock.now()
    call.world.effect(status, submission.pk)
    return Reply(body=submission_json(call.world, submission, call.user))


def _require_host(call: Call, challenge: int) -> None:
    if not call.is_host or challenge != call.world.settings.challenge:
        raise error(400, NOT_AUTHORIZED)


def _texts(call: Call) -> dict[str, str]:
    """Read what becomes files; a null among the logs breaks EvalAI before anything is written."""
    texts = {name: call.text(name) for name in ("stdout", "stderr", "environment_log")}
    return texts | {"metadata": str(call.data.get("metadata", ""))}


def _end(
    call: Call, submission: Submission, status: str, entries: list[Entry], texts: dict[str, str]
) -> None:
    world = call.world
    submission.status = status
    submission.completed_at = world.clock.now()
    shown = str([accuracies for _, accuracies, show in entries if show])
    files = {
        "stdout_file": (".txt", texts["stdout"]),
        "stderr_file": (".txt", texts["stderr"]),
        "environment_log_file": (".txt", texts["environment_log"]),
        "submission_result_file": (".json", shown),
        "submission_metadata_file": (".json", texts["metadata"]),
    }
    submission.files_written += 1
    for index, (name, (suffix, text)) in enumerate(files.items()):
        number = 10 * submission.files_written + index
        content = text.encode("utf-8", "surrogatepass")
        setattr(submission, name, world.store(submission.phase, submission.pk, number, suffix, content))


def _entries(call: Call, phase_pk: Any, *, partial: bool) -> list[Entry]:
    """Read ``result`` as EvalAI does, with its omissions: booleans pass, absent labels pass, an empty list passes."""
    raw = call.data.get("result", "")
    try:
        results = json.loads(raw)
    except (ValueError, TypeError) as problem:
        raise error(
            400,
            f"`result` key contains invalid data with error {problem}.Please try again with correct format.",
        ) from problem
    if not isinstance(results, list) or not all(isinstance(entry, dict) for entry in results):
        raise Breakdown("result is not a list of objects")
    return [_entry(call.world, entry, phase_pk, partial=partial) for entry in results]


def _entry(world: World, entry: dict[str, Any], phase_pk: Any, *, partial: bool) -> Entry:
    codename, accuracies = entry.get("split"), entry.get("accuracies")
    try:
        phase = world.phases.get(-1 if phase_pk is None else int(phase_pk))
    except (TypeError, ValueError) as problem:
        raise Breakdown("challenge_phase is no integer") from problem
    if phase is None or phase.settings.split_codename != codename:
        raise error(
            400,
            f"Challenge Phase Split does not exist with phase_id: {phase_pk} andsplit codename: {codename}",
        )
    if not isinstance(accuracies, dict):
        raise Breakdown("an entry has no accuracies")
    missing = [metric for metric in accuracies if metric not in phase.settings.metrics]
    if missing and not (partial and phase.settings.partial_evaluation):
        text = f"Following metrics are missing in theleaderboard data: {missing}"
        raise error(400, text + (f" of challenge phase: {phase_pk}" if partial else ""))
    malformed = [(metric, type(v)) for metric, v in accuracies.items() if not isinstance(v, int | float)]
    if malformed:
        raise error(400, f"Values for following metrics are not offloat/int: {malformed}")
    if not all(math.isfinite(value) for value in accuracies.values()):
        raise Refusal(400, {"result": ["Value must be valid JSON."]})
    return phase, dict(accuracies), bool(entry.get("show_to_participant", False))


ROUTES = (
    Route(path="/api/jobs/challenge/<int:challenge>/update_submission/", views={"PUT": put, "PATCH": patch}),
    Route(
        path="/api/jobs/challenges/<int:challenge>/update_partially_evaluated_submission/",
        views={"PUT": put_partial, "PATCH": patch_partial},
    ),
)
