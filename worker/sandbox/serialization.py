"""EvalAI's JSON: submission, phase, split, challenge and pages of lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from flask import request

from worker.sandbox.call import detail
from worker.sandbox.fields import PHASE_FOR_ALL, SPLIT_FOR_ALL
from worker.sandbox.state import SandboxChallenge, SandboxPhase, SandboxSubmission, World


def moment(value: datetime | None) -> str | None:
    """Write a date as Django REST framework does: ISO 8601, microseconds when there are any, Z."""
    return None if value is None else value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def execution_time(submission: SandboxSubmission) -> float | str:
    """Return the seconds between start and end, or the string "None", as EvalAI does."""
    if submission["started_at"] is None or submission["completed_at"] is None:
        return "None"
    return float((submission["completed_at"] - submission["started_at"]).total_seconds())


def submission_json(world: World, submission: SandboxSubmission, *, host: bool) -> dict[str, Any]:
    """Return a submission's JSON for a reader; only hosts see ``environment_log_file``."""
    shape: dict[str, Any] = {
        "id": submission["id"],
        "participant_team": submission["participant_team"],
        "participant_team_name": world.teams[submission["participant_team"]].name,
        "execution_time": execution_time(submission),
        "challenge_phase": submission["challenge_phase"],
        "created_by": submission["created_by"],
        "status": submission["status"],
        "input_file": world.url(submission["input_file"]),
        "submission_input_file": world.url(submission["submission_input_file"]),
        "stdout_file": world.url(submission["stdout_file"]),
        "stderr_file": world.url(submission["stderr_file"]),
    }
    if host:
        shape["environment_log_file"] = world.url(submission["environment_log_file"])
    return shape | {
        "started_at": moment(submission["started_at"]),
        "completed_at": moment(submission["completed_at"]),
        "submitted_at": moment(submission["submitted_at"]),
        "rerun_resumed_at": moment(submission["rerun_resumed_at"]),
        "method_name": submission["method_name"],
        "method_description": submission["method_description"],
        "project_url": submission["project_url"],
        "publication_url": submission["publication_url"],
        "is_public": submission["is_public"],
        "is_flagged": submission["is_flagged"],
        "ignore_submission": submission["ignore_submission"],
        "submission_result_file": world.url(submission["submission_result_file"]),
        "when_made_public": moment(submission["when_made_public"]),
        "is_baseline": submission["is_baseline"],
        "job_name": list(submission["job_name"]),
        "submission_metadata": submission["submission_metadata"],
        "is_verified_by_host": submission["is_verified_by_host"],
    }


def managed_submission_json(world: World, submission: SandboxSubmission) -> dict[str, Any]:
    """Return a submission's JSON in the host's list of one phase, with names instead of primary keys."""
    members = [world.users[pk] for pk in world.teams[submission["participant_team"]].members]
    return {
        "id": submission["id"],
        "participant_team": world.teams[submission["participant_team"]].name,
        "challenge_phase": world.phases[submission["challenge_phase"]].name,
        "created_by": world.users[submission["created_by"]].name,
        "status": submission["status"],
        "is_public": submission["is_public"],
        "is_flagged": submission["is_flagged"],
        "submission_number": submission["submission_number"],
        "submitted_at": moment(submission["submitted_at"]),
        "rerun_resumed_at": moment(submission["rerun_resumed_at"]),
        "execution_time": execution_time(submission),
        "input_file": world.url(submission["input_file"]),
        "submission_input_file": world.url(submission["submission_input_file"]),
        "stdout_file": world.url(submission["stdout_file"]),
        "stderr_file": world.url(submission["stderr_file"]),
        "environment_log_file": world.url(submission["environment_log_file"]),
        "submission_result_file": world.url(submission["submission_result_file"]),
        "submission_metadata_file": world.url(submission["submission_metadata_file"]),
        "participant_team_members_email_ids": [member.email for member in members],
        "participant_team_members_affiliations": ["" for _ in members],
        "created_at": moment(submission["created_at"]),
        "method_name": submission["method_name"],
        "participant_team_members": [{"username": m.name, "email": m.email} for m in members],
        "submission_metadata": submission["submission_metadata"],
        "method_description": submission["method_description"],
        "publication_url": submission["publication_url"],
        "project_url": submission["project_url"],
        "is_verified_by_host": submission["is_verified_by_host"],
    }


def challenge_json(world: World, challenge: SandboxChallenge, names: Iterable[str]) -> dict[str, Any]:
    """Return those fields of a challenge that an endpoint shows; what the sandbox has no use for is null."""
    known = challenge.fields | {
        "id": challenge.pk,
        "title": challenge.title,
        "start_date": moment(challenge.fields["start_date"]),
        "end_date": moment(challenge.fields["end_date"]),
        "creator": {
            name: value for name, value in host_team_json(world, challenge).items() if name != "members"
        },
        "is_active": world.is_active(challenge),
        "queue": challenge.queue_name,
        "submission_time_limit": 86400,
        "slug": f"sandbox-{challenge.pk}",
        "sqs_retention_period": 345600,
        "evaluation_script": f"{world.media_url}/media/evaluation_scripts/script.zip",
    }
    return {name: known.get(name) for name in names}


def host_team_json(world: World, challenge: SandboxChallenge) -> dict[str, Any]:
    """Return the JSON of a challenge's host team, with the members by name; known from EvalAI's source, not observed."""
    hosts = [world.users[pk] for pk in sorted(challenge.hosts)]
    return {
        "id": challenge.host_team_pk,
        "team_name": "Sandbox hosts",
        "created_by": hosts[0].name,
        "members": [
            {
                "id": 451 + place,
                "user": host.name,
                "team_name": challenge.host_team_pk,
                "status": "Accepted",
                "permissions": "Admin",
            }
            for place, host in enumerate(hosts)
        ],
        "team_url": "",
    }


def phase_json(world: World, phase: SandboxPhase, names: Iterable[str] = PHASE_FOR_ALL) -> dict[str, Any]:
    """Return those fields of a challenge phase that an endpoint shows."""
    codename = phase.settings.codename
    known = phase.fields | {
        "id": phase.pk,
        "name": phase.name,
        "description": f"<p>{phase.name}</p>",
        "start_date": moment(phase.fields["start_date"]),
        "end_date": moment(phase.fields["end_date"]),
        "challenge": phase.challenge.pk,
        "is_active": world.is_active(phase),
        "codename": codename,
        "slug": f"sandbox-{codename}-{phase.pk}",
        "test_annotation": f"{world.media_url}/media/test_annotations/empty.txt",
    }
    return {name: known.get(name) for name in names}


def phase_split_json(phase: SandboxPhase, names: Iterable[str] = SPLIT_FOR_ALL) -> dict[str, Any]:
    """Return those fields of a challenge phase split that an endpoint shows; the dataset split's codename is not among them."""
    known = {
        "id": phase.split_pk,
        "dataset_split": phase.dataset_split_pk,
        "leaderboard": phase.split_pk,
        "challenge_phase": phase.pk,
        "challenge_phase_name": phase.name,
        "dataset_split_name": split_name(phase),
        "leaderboard_schema": schema(phase),
        "is_multi_metric_leaderboard": len(phase.settings.metrics) > 1,
    } | phase.fields
    return {name: known[name] for name in names}


def schema(phase: SandboxPhase) -> dict[str, Any]:
    """Return the leaderboard schema of a phase's split; a bundle's has metadata for each metric."""
    metrics, ascending = phase.settings.metrics, phase.settings.sort_ascending
    shape: dict[str, Any] = {"labels": list(metrics), "default_order_by": metrics[0]}
    if ascending is not None:
        shape["metadata"] = {metric: {"sort_ascending": ascending, "description": ""} for metric in metrics}
    return shape


def is_descending(phase: SandboxPhase) -> bool:
    """Return whether the largest value comes first: the schema's metadata decides if there are any."""
    ascending = phase.settings.sort_ascending
    return bool(phase.fields["is_leaderboard_order_descending"]) if ascending is None else not ascending


def split_name(phase: SandboxPhase) -> str:
    """Return the dataset split's name as people see it."""
    return phase.settings.split_codename.replace("_", " ")


def paged(items: Sequence[Any], *, size: int = 150) -> dict[str, Any]:
    """Return the requested page of a list.

    Raises:
        Refusal: 404 if the page does not exist.
    """
    last = max(1, -(-len(items) // size))
    page = request.args.get("page", 1, type=int)
    if not 1 <= page <= last:
        raise detail(404, "Invalid page.")

    def link(target: int) -> str | None:
        if not 1 <= target <= last:
            return None
        return request.base_url if target == 1 else f"{request.base_url}?page={target}"

    return {
        "count": len(items),
        "next": link(page + 1),
        "previous": link(page - 1),
        "results": list(items[(page - 1) * size : page * size]),
    }
