"""The challenge, its phases and its splits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flask import Blueprint

from worker.sandbox.call import Call
from worker.sandbox.replies import detail, error
from worker.sandbox.serialization import challenge_json, phase_json, phase_split_json, split_name

views = Blueprint("challenge", __name__)


@views.get("/api/challenges/challenge/queues/<queue>/")
def by_queue(call: Call, queue: str) -> dict[str, Any]:
    """Return the challenge behind a queue, which a worker reads at its start."""
    call.require_queue(queue)
    call.require_host(401, "Sorry, you are not authorized to access this challenge.")
    return challenge_json(call.world)


@views.get("/api/challenges/<int:challenge>/phases/")
def phases(call: Call, challenge: int) -> list[dict[str, Any]]:
    """List the phases, for hosts."""
    call.require_challenge(challenge)
    call.require_host(401, "Sorry, you are not authorized to access these challenge phases.")
    return [phase_json(call.world, phase) for phase in call.world.phases.values()]


@views.get("/api/challenges/challenge/phase/<int:phase>/")
def one_phase(call: Call, phase: int) -> dict[str, Any]:
    """Return one phase, for everybody."""
    return phase_json(call.world, call.phase(phase))


@views.get("/api/challenges/<int:challenge>/challenge_phase_split")
def phase_splits(call: Call, challenge: int) -> list[dict[str, Any]]:
    """List the challenge phase splits with their metric labels; only hosts see those that are not public."""
    call.require_challenge(challenge)
    shown = [p for p in call.world.phases.values() if call.is_host or p.settings.visibility == 3]
    return [phase_split_json(p) for p in shown]


@views.patch("/api/challenges/challenge/create/challenge_phase_split/<int:split>/")
def change_phase_split(call: Call, split: int) -> dict[str, Any]:
    """Change the order of the leaderboard, as the switch on its page does."""
    phase = call.phase_of_split(split)
    call.require_host(403, "Sorry, you are not authorized to make this request!")
    latest = call.data.get("show_leaderboard_by_latest_submission", phase.settings.by_latest)
    phase.settings = replace(phase.settings, by_latest=bool(latest))
    call.world.effect("phase_split_changed", by_latest=phase.settings.by_latest)
    return phase_split_json(phase)


@views.get("/api/challenges/challenge/create/dataset_split/<int:split>/")
def dataset_split(call: Call, split: int) -> dict[str, Any]:
    """Return a dataset split; no other answer contains its codename."""
    for phase in call.world.phases.values():
        if phase.dataset_split_pk == split:
            call.require_host(401, "Sorry, you are not authorized to access this dataset split.")
            name, codename = split_name(phase), phase.settings.split_codename
            return {"id": split, "name": name, "codename": codename, "config_id": None}
    raise detail(404, f"DatasetSplit {split} does not exist")


@views.get("/api/challenges/<int:challenge>/request_approval")
def request_approval(call: Call, challenge: int) -> dict[str, Any]:
    """Ask EvalAI's administrators for the approval, once every phase has a finished submission; the words are not EvalAI's."""
    call.require_challenge(challenge)
    call.require_host(403, "Sorry, you are not authorized to make this request!")
    submissions = call.world.submissions.values()
    finished = {row["challenge_phase"] for row in submissions if row["status"] == "finished"}
    missing = [phase.settings.title for pk, phase in call.world.phases.items() if pk not in finished]
    if missing:
        raise error(406, f"These challenge phases have no finished submission: {', '.join(missing)}")
    call.world.effect("approval_requested")
    return {"message": "Approval request sent!"}
