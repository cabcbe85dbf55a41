"""An address that only a sandbox has: the tokens of its teams, so that a file can be submitted for one of them."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from worker.sandbox.call import Call

views = Blueprint("practice", __name__)


@views.get("/sandbox/")
def teams(call: Call) -> dict[str, Any]:
    """Return the challenge, its phases, and each team with its first member's token; EvalAI has no such address."""
    world = call.world
    return {
        "challenge": world.settings.challenge,
        "phases": {phase.settings.codename: phase.pk for phase in world.phases.values()},
        "teams": {team.name: world.users[team.members[0]].hex_token for team in world.teams.values()},
    }
