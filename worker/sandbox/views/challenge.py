"""The challenge, its phases and splits, the queue, the accounts of hosts and teams, and what everybody may read."""

from __future__ import annotations

import mimetypes
from typing import Any

from flask import Blueprint, Response, g, request

from worker.sandbox.call import (
    Breakdown,
    Refusal,
    body,
    challenge_with,
    detail,
    error,
    is_host,
    page,
    phase_of_split,
    phase_with,
    require_host,
    text,
    world,
)
from worker.sandbox.fields import (
    CHALLENGE_BY_NUMBER,
    CHALLENGE_BY_QUEUE,
    PHASE_FOR_HOSTS,
    SPLIT_FOR_HOSTS,
)
from worker.sandbox.serialization import (
    challenge_json,
    host_team_json,
    is_descending,
    moment,
    paged,
    phase_json,
    phase_split_json,
    schema,
    split_name,
)
from worker.sandbox.state import SandboxPhase, World

NOT_AUTHORIZED = "Sorry, you are not authorized to access this resource"
HOSTS_MAY_SET = (
    "published",
    "is_registration_open",
    "manual_participant_approval",
    "is_submission_paused",
    "allowed_email_domains",
)

views = Blueprint("challenge", __name__)


@views.get("/api/challenges/challenge/queues/<queue>/")
def by_queue(queue: str) -> dict[str, Any]:
    """Return the challenge behind a queue, which a worker reads at its start."""
    challenge = challenge_with(queue)
    require_host(challenge, 401, "Sorry, you are not authorized to access this challenge.")
    return challenge_json(world, challenge, CHALLENGE_BY_QUEUE)


@views.get("/api/challenges/challenge/<int:challenge>/")
def by_number() -> dict[str, Any]:
    """Return a challenge, for everybody once it is approved and published; other fields than by queue."""
    fields = g.challenge.fields
    if not (is_host(g.challenge) or (fields["approved_by_admin"] and fields["published"])):
        raise error(406, "Challenge does not exist!")
    if fields["is_disabled"]:
        raise error(406, "Sorry, the challenge was removed!")
    return challenge_json(world, g.challenge, CHALLENGE_BY_NUMBER)


@views.patch("/api/challenges/challenge_host_team/<int:team>/challenge/<int:challenge>")
def change_challenge(team: int) -> dict[str, Any]:
    """Change a challenge as its host; once it is approved, its dates are frozen. The words of the refusals are not EvalAI's."""
    if team != g.challenge.host_team_pk or not is_host(g.challenge):
        raise error(403, "Sorry, you are not allowed to perform this operation!")
    if g.challenge.fields["approved_by_admin"] and {"start_date", "end_date"} & body().keys():
        raise error(403, "The dates of an approved challenge cannot be changed.")
    g.challenge.fields |= {name: value for name, value in body().items() if name in HOSTS_MAY_SET}
    return challenge_json(world, g.challenge, CHALLENGE_BY_NUMBER)


@views.get("/api/challenges/<int:challenge>/request_approval")
def request_approval() -> dict[str, Any]:
    """Ask the administrators for the approval; every phase needs a finished submission first. The words are not EvalAI's."""
    require_host(g.challenge, 403)
    finished = {s["challenge_phase"] for s in world.submissions.values() if s["status"] == "finished"}
    if not finished.issuperset(phase.pk for phase in world.phases_of(g.challenge)):
        raise error(406, "Some phases have no finished submission.")
    g.challenge.fields["is_approval_requested"] = True
    return {"message": "Approval request sent!"}


@views.get("/api/challenges/<int:challenge>/phases/")
def phases() -> list[dict[str, Any]]:
    """List the phases, for hosts."""
    require_host(g.challenge, 401, "Sorry, you are not authorized to access these challenge phases.")
    return [phase_json(world, phase, PHASE_FOR_HOSTS) for phase in world.phases_of(g.challenge)]


@views.get("/api/challenges/challenge/phase/<int:phase>/")
def one_phase(phase: int) -> dict[str, Any]:
    """Return one phase, for everybody."""
    return phase_json(world, phase_with(phase))


@views.get("/api/challenges/<int:challenge>/challenge_phase_split")
def phase_splits() -> list[dict[str, Any]]:
    """List the challenge phase splits with their metric labels; only hosts see those that are not public."""
    splits, host = world.phases_of(g.challenge), is_host(g.challenge)
    return [phase_split_json(phase) for phase in splits if host or phase.fields["visibility"] == 3]


@views.get("/api/challenges/challenge/create/challenge_phase_split/<int:split>/")
def host_split(split: int) -> dict[str, Any]:
    """Return what only this endpoint says of a split, such as the order and the decimals of its leaderboard."""
    phase = phase_of_split(split)
    require_host(phase.challenge, 401, "Sorry, you are not authorized to access this challenge phase split.")
    return phase_split_json(phase, SPLIT_FOR_HOSTS)


@views.get("/api/challenges/challenge/create/dataset_split/<int:split>/")
def dataset_split(split: int) -> dict[str, Any]:
    """Return a dataset split; no other answer contains its codename."""
    for phase in world.phases.values():
        if phase.dataset_split_pk == split:
            require_host(phase.challenge, 401, "Sorry, you are not authorized to access this dataset split.")
            codename = phase.settings.split_codename
            return {"id": split, "name": split_name(phase), "codename": codename, "config_id": None}
    raise detail(404, f"DatasetSplit {split} does not exist")


@views.get("/api/jobs/challenge/queues/<queue>/")
def receive(queue: str) -> dict[str, Any]:
    """Deliver at most one message; null values if none is available."""
    challenge = challenge_with(queue)
    require_host(challenge, 401, NOT_AUTHORIZED)
    delivery = challenge.queue.receive(world.clock.monotonic())
    if delivery is None:
        return {"body": None, "receipt_handle": None}
    message, handle = delivery
    world.effect("message_received", int(message["submission_pk"]))
    return {"body": dict(message), "receipt_handle": handle}


@views.post("/api/jobs/queues/<queue>/")
def delete(queue: str) -> dict[str, Any]:
    """Delete the message with a receipt handle."""
    challenge = challenge_with(queue, "exists")
    handle = body().get("receipt_handle")
    if handle is None:
        raise Breakdown("KeyError: receipt_handle")
    if not handle:
        raise error(400, "Please add message receipt handle in the body")
    require_host(challenge, 401, NOT_AUTHORIZED)
    outcome = challenge.queue.delete(str(handle))
    if outcome == "unknown":
        raise Breakdown("ReceiptHandleIsInvalid")
    world.effect("message_deleted" if outcome == "deleted" else "delete_ignored")
    return {"success": f"Message deleted successfully from the queue: {queue}"}


@views.get("/api/hosts/challenge_host_team/<int:team>")
def host_team(team: int) -> dict[str, Any] | Response:
    """Return the team of the challenge's hosts; the missing slash and the answer for a missing team are from EvalAI's source."""
    challenge = next((c for c in world.challenges.values() if c.host_team_pk == team), None)
    if challenge is None:
        raise error(406, "ChallengeHostTeam does not exist")
    return host_team_json(world, challenge) if world.tells_hosts else page(404, "Error 404 - Page Not Found")


@views.route("/api/participants/participant_team/<int:pk>", methods=["PUT", "PATCH"])
def change_team(pk: int) -> dict[str, Any]:
    """Rename a team at any time, to a name that no other has: its founder with PATCH, and everybody with PUT."""
    team = world.teams.get(pk)
    if team is None:
        raise error(406, "ParticipantTeam does not exist")
    if request.method == "PATCH" and g.user.pk != team.members[0]:
        raise error(403, "You are not a authorized to change team details!")
    name = text("team_name")
    if any(other.name == name for other in world.teams.values() if other is not team):
        raise Refusal(400, {"team_name": ["participant team with this team name already exists."]})
    team.name = name or team.name
    return {
        "id": pk,
        "team_name": team.name,
        "created_by": world.users[team.members[0]].name,
        "team_url": "",
    }


@views.get("/api/jobs/challenge_phase_split/<int:split>/leaderboard/")
def leaderboard(split: int) -> dict[str, Any]:
    """Return the public entries, one per team, best first."""
    phase = phase_of_split(split)
    if phase.fields["visibility"] != 3 and not is_host(phase.challenge):
        raise error(400, "Sorry, the leaderboard is not public!")
    return paged(board(world, phase, public_only=phase.fields["visibility"] == 3), size=100)


@views.get("/api/jobs/phase_split/<int:split>/public_leaderboard_all_entries/")
def all_entries(split: int) -> dict[str, Any]:
    """Return all entries, including private ones, still one per team, for hosts."""
    phase = phase_of_split(split)
    require_host(phase.challenge, 400)
    return paged(board(world, phase, public_only=False), size=100)


def board(world: World, phase: SandboxPhase, *, public_only: bool) -> list[dict[str, Any]]:
    """Return the rows of a phase's split: each team's best, best first, or each team's latest answer, newest first.

    The latest answer is the one stored last, which may be that of an older submission.

    Raises:
        Breakdown: If a row holds a Boolean, which PostgreSQL cannot read as a number.
    """
    shown = [
        row
        for row in world.rows.values()
        if row["split"] == phase.split_pk
        and _counts(world, phase, row)
        and (world.submissions[row["submission"]]["is_public"] or not public_only)
    ]
    score = {row["id"]: row["result"].get(phase.settings.metrics[0], 0) for row in shown}
    if any(isinstance(value, bool) for value in score.values()):
        raise Breakdown("invalid input syntax for type double precision")
    shown.reverse()  # the answer that was stored last comes first
    if not phase.fields["show_leaderboard_by_latest_submission"]:
        shown.sort(key=lambda row: score[row["id"]], reverse=is_descending(phase))
    ranked = []
    seen: set[str] = set()
    for row in shown:
        submission = world.submissions[row["submission"]]
        name = world.teams[submission["participant_team"]].name
        if name in seen:
            continue
        if not submission["is_baseline"]:
            seen.add(name)
        ranked.append(_shape(world, phase, row, score[row["id"]]))
    return ranked


def _counts(world: World, phase: SandboxPhase, row: dict[str, Any]) -> bool:
    submission = world.submissions[row["submission"]]
    by_host = submission["created_by"] in phase.challenge.hosts and phase.fields["is_public"]
    return (
        submission["status"] == "finished"
        and not submission["is_flagged"]
        and not (by_host and not submission["is_baseline"])
    )


def _shape(world: World, phase: SandboxPhase, row: dict[str, Any], score: float) -> dict[str, Any]:
    submission = world.submissions[row["submission"]]
    return {
        "id": row["id"],
        "submission__id": submission["id"],
        "submission__participant_team": submission["participant_team"],
        "submission__participant_team__team_name": world.teams[submission["participant_team"]].name,
        "submission__participant_team__team_url": "",
        "submission__is_baseline": submission["is_baseline"],
        "submission__is_public": submission["is_public"],
        "challenge_phase_split": row["split"],
        "result": [row["result"].get(label, "#") for label in phase.settings.metrics],
        "error": None,
        "filtering_score": score,
        "filtering_error": 0,
        "leaderboard__schema": schema(phase),
        "submission__submitted_at": moment(submission["submitted_at"]),
        "submission__method_name": submission["method_name"],
        "submission__submission_metadata": submission["submission_metadata"],
        "submission__is_verified_by_host": submission["is_verified_by_host"],
    }


@views.get("/media/<path:name>")
def file(name: str) -> Response:
    """Serve a file if the address has its present signature."""
    content = world.media.get(name)
    if request.args.get("signature", "") != str(world.signatures.get(name, "")):
        return Response("<Error><Code>AccessDenied</Code></Error>", 403, content_type="application/xml")
    if content is None:
        return Response("<Error><Code>NoSuchKey</Code></Error>", 404, content_type="application/xml")
    return Response(content, content_type=mimetypes.guess_type(name)[0] or "application/octet-stream")
