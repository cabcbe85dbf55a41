"""The life of a submission, regardless of who changes it: created, sent again, re-run, edited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worker.sandbox.call import Refusal, error
from worker.sandbox.state import NEW, Phase, Submission, Team, User, World

IN_PROGRESS = ("submitted", "submitting", "resuming", "queued", "running")
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
    refused = "Sorry, cannot accept submissions since"
    if not world.is_active:
        raise error(406, "Challenge is not active")
    if not world.is_open(phase):
        raise error(406, f"{refused} challenge phase is not active")
    if phase.fields["is_submission_paused"]:
        raise error(406, f"{refused} submissions are paused for this challenge phase")
    if user.pk in world.hosts:
        return
    if not world.fields["approved_by_admin"]:
        raise error(403, "Challenge is not approved")  # the words are not EvalAI's
    if not phase.fields["is_public"]:
        raise error(403, f"{refused} challenge phase is not public")


def check_limits(world: World, phase: Phase, team: Team) -> None:
    """Check that a team has submissions left, and not too many in progress; failed and cancelled ones do not count.

    Raises:
        Refusal: 406 otherwise.
    """
    now, theirs = world.clock.now(), world.of(team, phase)
    busy = sum(s["status"] in IN_PROGRESS for s in theirs)
    if busy >= phase.fields["max_concurrent_submissions_allowed"]:
        raise error(406, IN_PROGRESS_TEXT.format(busy))
    counted = [s["submitted_at"] for s in theirs if s["status"] not in ("failed", "cancelled")]
    month = [at for at in counted if (at.year, at.month) == (now.year, now.month)]
    today = [at for at in month if at.day == now.day]
    for limit, used, words in (
        ("max_submissions", counted, "submissions has been reached"),
        ("max_submissions_per_month", month, "submission for this month has been reached"),
        ("max_submissions_per_day", today, "submission for today has been reached"),
    ):
        if len(used) >= phase.fields[limit]:
            raise error(406, f"The maximum number of {words}")


def add(
    world: World,
    phase: Phase,
    team: Team,
    user: User,
    *,
    content: bytes,
    file_name: str,
    description: Mapping[str, Any],
) -> Submission:
    """Store a new submission without a message.

    Raises:
        Refusal: If the server does not accept it.
    """
    check_open(world, phase, user)
    check_limits(world, phase, team)
    if not content:
        raise Refusal(406, {"input_file": ["The submitted file is empty."]})
    is_public = description.get("is_public")
    if is_public is None or not phase.fields["leaderboard_public"]:
        is_public = phase.fields["is_submission_public"]
    submission = NEW | {
        **description,
        "id": 1001 + len(world.submissions),
        "participant_team": team.pk,
        "challenge_phase": phase.pk,
        "created_by": user.pk,
        "submission_number": 1 + len(world.of(team, phase)),
        "submitted_at": world.clock.now(),
        "created_at": world.clock.now(),
        "is_public": is_public,
        "job_name": [],
    }
    submission["input_file"] = world.store(submission, file_name, content)
    world.submissions[submission["id"]] = submission
    world.effect("submitted", submission["id"], team=team.name)
    return submission


def send(world: World, submission: Submission, keys: type[int | str] = int, **flags: bool) -> None:
    """Put a message about a submission into the queue.

    Args:
        world: The sandbox's state.
        submission: The submission.
        keys: The type of the challenge's and the phase's primary keys.
        flags: What else is in the message.
    """
    challenge, phase = keys(world.settings.challenge), keys(submission["challenge_phase"])
    world.queue.send(
        {"challenge_pk": challenge, "phase_pk": phase, "submission_pk": submission["id"], **flags}
    )
    world.effect("message_sent", submission["id"])


def create(world: World, phase: Phase, team: Team, user: User, **file: Any) -> Submission:
    """Store a new submission, and put its message into the queue.

    The message contains challenge and phase as strings, because EvalAI takes them from the address.

    Raises:
        Refusal: If the server does not accept it.
    """
    submission = add(world, phase, team, user, **file)
    send(world, submission, str, is_static_dataset_code_upload_submission=False)
    return submission


def rerun(world: World, submission: Submission) -> Submission:
    """Cancel a submission and make a new one with the same file and a message of its own."""
    now = world.clock.now()
    fresh = NEW | {name: submission[name] for name in KEPT_BY_RERUN}
    fresh |= {"id": 1001 + len(world.submissions), "created_at": now, "rerun_resumed_at": now, "job_name": []}
    submission["status"] = "cancelled"
    world.submissions[fresh["id"]] = fresh
    world.effect("rerun", submission["id"], fresh=fresh["id"])
    send(world, fresh, is_static_dataset_code_upload_submission=False)
    return fresh


def edit(world: World, submission: Submission, changes: Mapping[str, Any]) -> None:
    """Change fields as the editing endpoint does; the old state is not checked."""
    submission.update(changes)
    if changes.get("is_public"):
        submission["when_made_public"] = world.clock.now()
    world.effect("cancelled" if changes.get("status") == "cancelled" else "edited", submission["id"])
