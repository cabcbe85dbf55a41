"""The life of a submission, regardless of who changes it: created, sent again, re-run, resumed, edited, ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worker.sandbox.queue import Body
from worker.sandbox.replies import Refusal, error
from worker.sandbox.state import (
    IN_PROGRESS,
    NEW,
    Entrant,
    Phase,
    Submission,
    Team,
    User,
    World,
    last_suffix,
)

KEPT_BY_RERUN = (
    "participant_team", "challenge_phase", "created_by", "submission_number", "input_file", "submitted_at", "completed_at", "method_name",
    "method_description", "project_url", "publication_url", "is_public", "is_baseline", "is_flagged", "submission_metadata",
)  # fmt: skip
IN_PROGRESS_TEXT = (
    "You have {} submissions that are being processed.                        "
    "Please wait for them to finish and then try again."
)


def check_open(world: World, phase: Phase, user: User) -> None:
    """Check that the challenge and the phase accept submissions.

    Raises:
        Refusal: 406 if inactive or paused; 403 unless the challenge is approved and the phase is public, except for hosts.
    """
    if not world.is_active:
        raise error(406, "Challenge is not active")
    if not world.is_open(phase):
        raise error(406, "Sorry, cannot accept submissions since challenge phase is not active")
    if phase.is_submission_paused:
        raise error(
            406, "Sorry, cannot accept submissions since submissions are paused for this challenge phase"
        )
    if world.is_host(user):
        return
    if not world.approved:
        raise error(403, "Challenge is not approved")  # the words are not EvalAI's
    if not phase.settings.is_public:
        raise error(403, "Sorry, cannot accept submissions since challenge phase is not public")


def check_room(world: World, phase: Phase, team: Team) -> None:
    """Check that not too many submissions of the team are in progress in the phase.

    Raises:
        Refusal: 406 if they are.
    """
    busy = sum(
        1
        for s in world.submissions.values()
        if (s["participant_team"], s["challenge_phase"]) == (team.pk, phase.pk) and s["status"] in IN_PROGRESS
    )
    if busy >= phase.settings.max_concurrent:
        raise error(406, IN_PROGRESS_TEXT.format(busy))


def check_quota(world: World, phase: Phase, team: Team) -> None:
    """Check that the team has submissions left; failed and cancelled ones do not count.

    Raises:
        Refusal: 406 if it has none.
    """
    now = world.clock.now()
    counted = [
        s["submitted_at"]
        for s in world.submissions.values()
        if (s["participant_team"], s["challenge_phase"]) == (team.pk, phase.pk)
        and s["status"] not in ("failed", "cancelled")
    ]
    this_month = [at for at in counted if (at.year, at.month) == (now.year, now.month)]
    today = [at for at in this_month if at.day == now.day]
    if len(counted) >= phase.settings.max_total:
        raise error(406, "The maximum number of submissions has been reached")
    if len(this_month) >= phase.settings.max_per_month:
        raise error(406, "The maximum number of submission for this month has been reached")
    if len(today) >= phase.settings.max_per_day:
        raise error(406, "The maximum number of submission for today has been reached")


def create(
    world: World, entrant: Entrant, content: bytes, file_name: str, description: Mapping[str, Any]
) -> Submission:
    """Store a new submission, and put its message into the queue.

    The message contains challenge and phase as strings, because EvalAI takes them from the address.

    Raises:
        Refusal: 406 if the quota is used up or the file is empty.
    """
    submission = add(world, entrant, content, file_name, description)
    body: Body = {
        "challenge_pk": str(world.settings.challenge),
        "phase_pk": str(entrant.phase.pk),
        "is_static_dataset_code_upload_submission": False,
        "submission_pk": submission["id"],
    }
    send(world, submission, body)
    return submission


def add(
    world: World, entrant: Entrant, content: bytes, file_name: str, description: Mapping[str, Any]
) -> Submission:
    """Store a new submission without a message.

    Raises:
        Refusal: 406 if the quota is used up or the file is empty.
    """
    if not content:
        raise Refusal(406, {"input_file": ["The submitted file is empty."]})
    phase, team, is_public = entrant.phase, entrant.team, description.get("is_public")
    check_quota(world, phase, team)
    if is_public is None or not phase.settings.leaderboard_public:
        is_public = phase.settings.is_submission_public
    pk = world.next_submission_pk()
    now = world.clock.now()
    earlier = [
        s
        for s in world.submissions.values()
        if (s["participant_team"], s["challenge_phase"]) == (team.pk, phase.pk)
    ]
    submission = NEW | {
        **description,
        "id": pk,
        "participant_team": team.pk,
        "challenge_phase": phase.pk,
        "created_by": entrant.user.pk,
        "submission_number": 1 + len(earlier),
        "input_file": world.store(phase.pk, pk, 0, last_suffix(file_name), content),
        "submitted_at": now,
        "created_at": now,
        "is_public": is_public,
        "job_name": [],
    }
    world.submissions[pk] = submission
    world.effect("submitted", pk, team=team.name, phase=phase.settings.codename, is_public=is_public)
    return submission


def send(world: World, submission: Submission, body: Body) -> None:
    """Put a message about a submission into the queue."""
    world.queue.send(
        body,
        group=f"{submission['challenge_phase']}-{submission['participant_team']}",
        now_s=world.clock.monotonic(),
    )
    world.effect("message_sent", submission["id"])


def message(world: World, submission: Submission, *, flag: bool) -> Body:
    """Return a message in which all primary keys are integers."""
    body = {
        "submission_pk": submission["id"],
        "phase_pk": submission["challenge_phase"],
        "challenge_pk": world.settings.challenge,
    }
    return body | {"is_static_dataset_code_upload_submission": False} if flag else body


def rerun(world: World, submission: Submission) -> Submission:
    """Cancel a submission and make a new one with the same file and a message of its own."""
    now = world.clock.now()
    pk = world.next_submission_pk()
    fresh = NEW | {name: submission[name] for name in KEPT_BY_RERUN}
    fresh |= {"id": pk, "created_at": now, "rerun_resumed_at": now, "job_name": []}
    submission["status"] = "cancelled"
    world.submissions[pk] = fresh
    world.effect("rerun", submission["id"], fresh=pk)
    send(world, fresh, message(world, fresh, flag=True))
    return fresh


def resume(world: World, submission: Submission) -> None:
    """Resume a failed submission under the same primary key; its old stdout and stderr stay."""
    submission["status"] = "resuming"
    submission["rerun_resumed_at"] = world.clock.now()
    world.effect("resumed", submission["id"])
    send(world, submission, message(world, submission, flag=True))


def edit(world: World, submission: Submission, changes: Mapping[str, Any]) -> None:
    """Change fields as the editing endpoint does; the old state is not checked."""
    if not changes:
        return
    submission.update(changes)
    name = "cancelled" if changes.get("status") == "cancelled" else "edited"
    world.effect(name, submission["id"], **{k: v for k, v in changes.items() if not isinstance(v, bytes)})


def replace_file(world: World, submission: Submission, content: bytes, suffix: str) -> None:
    """Store another input file under a new name; the old one stays."""
    submission["files_written"] += 1
    path = world.store(
        submission["challenge_phase"], submission["id"], 1000 + submission["files_written"], suffix, content
    )
    edit(world, submission, {"input_file": path})
