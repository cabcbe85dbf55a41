"""The challenge, its phases and its splits."""

from __future__ import annotations

from dataclasses import replace

from worker.sandbox.replies import NOT_FOUND, Refusal, Reply, detail, error
from worker.sandbox.routing import Call, Route
from worker.sandbox.serialization import (
    challenge_json,
    host_team_json,
    paged,
    phase_json,
    phase_split_json,
    split_name,
)


def by_queue(call: Call, queue: str) -> Reply:
    """Return the challenge behind a queue; the start-up check of a worker."""
    call.require_own_queue()
    if queue != call.world.settings.queue:
        raise error(400, f"Challenge with queue name {queue} does not exist")
    call.require_host(401, "Sorry, you are not authorized to access this challenge.")
    return Reply(body=challenge_json(call.world))


def host_team(call: Call, team: int) -> Reply:
    """Return the team of the challenge's hosts; [src]: that its address has no slash, and what a missing one answers."""
    if team != call.world.host_team_pk:
        raise Refusal(406, {"error": "ChallengeHostTeam does not exist"})
    if not call.world.tells_hosts:
        return NOT_FOUND
    return Reply(body=host_team_json(call.world))


def one(call: Call, challenge: int) -> Reply:
    """Return the challenge, to anybody."""
    call.require_challenge(challenge)
    return Reply(body=challenge_json(call.world))


def phases(call: Call, challenge: int) -> Reply:
    """List the phases, to hosts."""
    call.require_challenge(challenge)
    call.require_host(401, "Sorry, you are not authorized to access these challenge phases.")
    return Reply(body=[phase_json(call.world, phase) for phase in call.world.phases.values()])


def public_phases(call: Call, challenge: int) -> Reply:
    """List the public phases, to anybody, in pages."""
    call.require_challenge(challenge)
    shapes = [phase_json(call.world, p) for p in call.world.phases.values() if p.settings.is_public]
    return Reply(body=paged(shapes, number=call.query.get("page"), size=10, address=call.address))


def phase(call: Call, phase: int) -> Reply:
    """Return one phase, to anybody."""
    if phase not in call.world.phases:
        raise detail(404, f"ChallengePhase {phase} does not exist")
    return Reply(body=phase_json(call.world, call.world.phases[phase]))


def phase_splits(call: Call, challenge: int) -> Reply:
    """List the challenge phase splits with their metric labels; those that are not public only to hosts."""
    call.require_challenge(challenge)
    shown = [p for p in call.world.phases.values() if call.is_host or p.settings.visibility == 3]
    return Reply(body=[phase_split_json(p) for p in shown])


def phase_split(call: Call, split: int) -> Reply:
    """Return one challenge phase split, or change it as a host: the toggle on the leaderboard's page does nothing else."""
    phase = call.world.phase_of_split(split)
    if phase is None:
        raise detail(404, f"ChallengePhaseSplit {split} does not exist")
    if call.method == "PATCH":
        call.require_host(403, "Sorry, you are not authorized to make this request!")
        latest = call.data.get("show_leaderboard_by_latest_submission", phase.settings.by_latest)
        phase.settings = replace(phase.settings, by_latest=bool(latest))
        call.world.effect("phase_split_changed", by_latest=phase.settings.by_latest)
    return Reply(body=phase_split_json(phase))


def dataset_split(call: Call, split: int) -> Reply:
    """Return a dataset split, the only place where its codename stands."""
    for candidate in call.world.phases.values():
        if candidate.dataset_split_pk == split:
            call.require_host(401, "Sorry, you are not authorized to access this dataset split.")
            codename = candidate.settings.split_codename
            body = {"id": split, "name": split_name(candidate), "codename": codename, "config_id": None}
            return Reply(body=body)
    raise detail(404, f"DatasetSplit {split} does not exist")


ROUTES = (
    Route(path="/api/challenges/challenge/queues/<queue>/", views={"GET": by_queue}),
    Route(
        path="/api/challenges/challenge/<int:challenge>/", views={"GET": one}, public=True, throttled=False
    ),
    Route(path="/api/hosts/challenge_host_team/<int:team>", views={"GET": host_team}),
    Route(path="/api/challenges/<int:challenge>/phases/", views={"GET": phases}),
    Route(
        path="/api/challenges/challenge/<int:challenge>/challenge_phase",
        views={"GET": public_phases},
        public=True,
    ),
    Route(
        path="/api/challenges/challenge/phase/<int:phase>/",
        views={"GET": phase},
        public=True,
        throttled=False,
    ),
    Route(
        path="/api/challenges/<int:challenge>/challenge_phase_split",
        views={"GET": phase_splits},
        public=True,
        throttled=False,
    ),
    Route(
        path="/api/challenges/challenge/create/challenge_phase_split/<int:split>/",
        views={"GET": phase_split, "PATCH": phase_split},
    ),
    Route(
        path="/api/challenges/challenge/create/dataset_split/<int:split>/",
        views={"GET": dataset_split},
    ),
)
