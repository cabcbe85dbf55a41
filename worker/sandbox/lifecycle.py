"""The life of a submission, regardless of who changes it: created, sent again, re-run, edited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worker.sandbox.call import Refusal, error
from worker.sandbox.state import NEW, SandboxPhase, SandboxSubmission, Team, User, World

WAITING = ("submitted", "submitting", "resuming", "queued")
IN_PROGRESS = (*WAITING, "running")
GIVEN_UP = ("submitted", "running", "resuming")
NOT_COUNTED = ("failed", "cancelled")
KEPT_BY_RERUN = (
    "participant_team", "challenge_phase", "created_by", "input_file", "submitted_at", "started_at", "completed_at", "method_name",
    "method_description", "project_url", "publication_url", "is_public", "when_made_public", "is_baseline", "is_flagged",
    "is_verified_by_host", "submission_metadata",
)  # fmt: skip
QUEUE_TIMEOUT = b"Submission exceeded the queue time limit and was not picked up for evaluation."
IN_PROGRESS_TEXT = (
    "You have {} submissions that are being processed.                        "
    "Please wait for them to finish and then try again."
)


def check_open(world: World, phase: SandboxPhase, user: User) -> None:
    """Check that the challenge and the phase accept submissions; neither approval nor publication is needed.

    Raises:
        Refusal: 406 if inactive or paused; 403 if the phase is not for this participant.
    """
    refused = "Sorry, cannot accept submissions since"
    if not world.is_active(phase.challenge):
        raise error(406, "Challenge is not active")
    if not world.is_active(phase):
        raise error(406, f"{refused} challenge phase is not active")
    if phase.challenge.fields["is_submission_paused"] or phase.fields["is_submission_paused"]:
        raise error(406, f"{refused} submissions are paused for this challenge phase")
    if user.pk in phase.challenge.hosts:
        return
    if not phase.fields["is_public"]:
        raise error(403, f"{refused} challenge phase is not public")
    if phase.fields["allowed_email_ids"] and user.email not in phase.fields["allowed_email_ids"]:
        raise error(403, "Sorry, you are not allowed to participate in this challenge phase")


def insert(world: World, row: SandboxSubmission) -> SandboxSubmission:
    """Number a new row and keep it, if its team has submissions left in the phase; failed and cancelled ones do not count.

    The number is the highest of the team in the phase, plus one. Rows that were moved to the team count, too. A limit of a day or a month
    that was lowered below what is used up refuses nothing.

    Raises:
        Refusal: 403 if a limit is reached.
    """
    now, phase = world.clock.now(), world.phases[row["challenge_phase"]]
    theirs = world.of(world.teams[row["participant_team"]], phase)
    number = 1 + max((s["submission_number"] for s in theirs), default=0)
    counted = [s["submitted_at"] for s in theirs if s["status"] not in NOT_COUNTED]
    month = [at for at in counted if (at.year, at.month) == (now.year, now.month)]
    today = [at for at in month if at.day == now.day]
    left = phase.fields["max_submissions"] - (number - 1 - (len(theirs) - len(counted)))
    for remaining, words in (
        (max(0, left), "submissions has been reached"),
        (
            phase.fields["max_submissions_per_month"] - len(month),
            "submission for this month has been reached",
        ),
        (phase.fields["max_submissions_per_day"] - len(today), "submission for today has been reached"),
    ):
        if remaining == 0:
            raise error(403, f"The maximum number of {words}")
    row |= {
        "id": 1001 + len(world.submissions),
        "submission_number": number,
        "created_at": now,
        "job_name": [],
    }
    world.submissions[row["id"]] = row
    return row


def add(
    world: World,
    phase: SandboxPhase,
    team: Team,
    user: User,
    *,
    content: bytes,
    file_name: str,
    description: Mapping[str, Any],
) -> SandboxSubmission:
    """Store a new submission without a message.

    Raises:
        Refusal: If the server does not accept it.
    """
    check_open(world, phase, user)
    busy = sum(s["status"] in IN_PROGRESS for s in world.of(team, phase))
    if busy >= phase.fields["max_concurrent_submissions_allowed"]:
        raise error(406, IN_PROGRESS_TEXT.format(busy))
    if not content:
        raise Refusal(406, {"input_file": ["The submitted file is empty."]})
    is_public = description.get("is_public")
    if is_public is None or not phase.fields["leaderboard_public"]:
        is_public = phase.fields["is_submission_public"]
    submission = insert(
        world,
        NEW
        | {
            **description,
            "participant_team": team.pk,
            "challenge_phase": phase.pk,
            "created_by": user.pk,
            "submitted_at": world.clock.now(),
            "is_public": is_public,
        },
    )
    submission["input_file"] = world.store(submission, file_name, content)
    world.effect("submitted", submission["id"], team=team.name)
    return submission


def send(
    world: World,
    submission: SandboxSubmission,
    keys: type[int | str] = int,
    *,
    phase: SandboxPhase | None = None,
    **flags: bool,
) -> None:
    """Put a message about a submission into the queue.

    Args:
        world: The sandbox's state.
        submission: The submission.
        keys: The type of the challenge's and the phase's primary keys.
        phase: The phase that it names; None for the submission's.
        flags: What else is in the message.
    """
    phase = phase or world.phases[submission["challenge_phase"]]
    challenge = phase.challenge
    pks = {"challenge_pk": keys(challenge.pk), "phase_pk": keys(phase.pk)}
    challenge.queue.send({**pks, "submission_pk": submission["id"], **flags})
    world.effect("message_sent", submission["id"])


def create(world: World, phase: SandboxPhase, team: Team, user: User, **file: Any) -> SandboxSubmission:
    """Store a new submission, and put its message into the queue.

    The message contains challenge and phase as strings, because EvalAI takes them from the address.

    Raises:
        Refusal: If the server does not accept it.
    """
    submission = add(world, phase, team, user, **file)
    send(world, submission, str, is_static_dataset_code_upload_submission=False)
    return submission


def rerun(world: World, submission: SandboxSubmission) -> SandboxSubmission:
    """Cancel a submission and make a new one with the same file and a message of its own."""
    submission["status"] = "cancelled"
    kept = {name: submission[name] for name in KEPT_BY_RERUN}
    fresh = insert(world, NEW | kept | {"rerun_resumed_at": world.clock.now()})
    world.effect("rerun", submission["id"], fresh=fresh["id"])
    send(world, fresh, is_static_dataset_code_upload_submission=False)
    return fresh


def edit(world: World, submission: SandboxSubmission, changes: Mapping[str, Any]) -> None:
    """Change fields as the editing endpoint does; the old state is not checked."""
    submission.update(changes)
    if changes.get("is_public"):
        submission["when_made_public"] = world.clock.now()
    world.effect("cancelled" if changes.get("status") == "cancelled" else "edited", submission["id"])
