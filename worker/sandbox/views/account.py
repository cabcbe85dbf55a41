"""The user's own account, and the team of the challenge's hosts."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from worker.sandbox.call import Call
from worker.sandbox.replies import error, not_found
from worker.sandbox.serialization import host_team_json

views = Blueprint("account", __name__)


@views.get("/api/auth/user/")
def own_account(call: Call) -> dict[str, Any]:
    """Return the user's own account; known from EvalAI's source."""
    user = call.known_user
    return {"pk": user.pk, "username": user.name, "email": user.email, "first_name": "", "last_name": ""}


@views.get("/api/hosts/challenge_host_team/<int:team>")
def host_team(call: Call, team: int) -> dict[str, Any] | Response:
    """Return the team of the challenge's hosts; the missing slash and the answer for a missing team are from EvalAI's source."""
    if team != call.world.host_team_pk:
        raise error(406, "ChallengeHostTeam does not exist")
    return host_team_json(call.world) if call.world.tells_hosts else not_found()
