"""What views read from a request, and what they answer if they refuse it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

import jwt
from flask import Response, current_app, g, request
from werkzeug.exceptions import HTTPException
from werkzeug.local import LocalProxy

from worker.sandbox.state import SandboxChallenge, SandboxPhase, SandboxSubmission, Team, Token, User, World

LIFETIME = timedelta(days=365)
HEADER = {"WWW-Authenticate": 'Bearer realm="api"'}
KEY = "the key of every sandbox, which protects nothing"


class Refusal(HTTPException):
    """A refusal in JSON."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        text = json.dumps(body, ensure_ascii=False)
        self.answer = Response(text, status, headers, content_type="application/json")
        super().__init__(text, self.answer)
        self.code = status


class Breakdown(Exception):
    """An unhandled exception in EvalAI's code: an HTML page with status 500."""


def error(status: int, text: str) -> Refusal:
    """Return a refusal in a view's words."""
    return Refusal(status, {"error": text})


def detail(status: int, text: str) -> Refusal:
    """Return a refusal in the framework's words."""
    return Refusal(status, {"detail": text})


def page(status: int, title: str) -> Response:
    """Return an HTML page, which programs do not expect."""
    html = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>\n"
    return Response(html, status, content_type="text/html")


def issue(world: World, user: User, *, kind: str = "refresh", lifetime: timedelta = LIFETIME) -> str:
    """Sign a JSON web token for a user; a negative lifetime makes an expired one."""
    expires = world.clock.now() + lifetime
    payload = {
        "token_type": kind,
        "exp": int(expires.timestamp()),
        "jti": str(len(world.tokens)),
        "user_id": user.pk,
    }
    token = jwt.encode(payload, KEY, algorithm="HS256")
    world.tokens[token] = Token(user=user, kind=kind, expires=expires)
    return token


def authenticate(world: World, header: str | None) -> User | None:
    """Return the user to whom an Authorization header belongs, None if there is none of a known scheme.

    Raises:
        Refusal: 401 with WWW-Authenticate, in the words of the scheme.
    """
    scheme, _, text = (header or "").partition(" ")
    if scheme not in ("Token", "Bearer"):
        return None
    token = world.tokens.get(text)
    expired = token is not None and token.expires <= world.clock.now()
    if scheme == "Token":
        if token is None or token.kind != "hex":
            raise unauthorized({"detail": "Invalid token"})
        if expired:
            raise unauthorized({"detail": "Token has expired"})
        return token.user
    if token is None or token.kind == "hex" or expired:
        raise _not_valid("Token is invalid or expired")
    if token.blacklisted:
        raise _not_valid("Token is blacklisted")
    if token.kind != "refresh":
        raise _not_valid("Token has wrong type")
    return token.user


def unauthorized(body: dict[str, Any]) -> Refusal:
    """Return a refusal of the token, which other refusals with 401 are not."""
    return Refusal(401, body, HEADER)


def _not_valid(message: str) -> Refusal:
    entry = {"token_class": "RefreshToken", "token_type": "refresh", "message": message}
    body = {"detail": "Given token not valid for any token type", "code": "token_not_valid"}
    return unauthorized({**body, "messages": [entry]})


FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")

world = cast("World", LocalProxy(lambda: current_app.config["WORLD"]))
"""The state of the sandbox that handles the request."""


def body() -> dict[str, Any]:
    """Return the parsed body; EvalAI's views fail if it is no object.

    Raises:
        Refusal: 415 for another media type, 400 for broken JSON.
    """
    if request.mimetype in FORM_TYPES:
        return request.form.to_dict()
    content = request.get_data()
    if not content:
        return {}
    if request.mimetype != "application/json":
        raise detail(415, f'Unsupported media type "{request.mimetype}" in request.')
    try:
        document = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except ValueError as problem:
        raise detail(400, f"JSON parse error - {problem}") from problem
    if not isinstance(document, dict):
        raise Breakdown("the body is not an object")
    return document


def text(name: str) -> str:
    """Return a field of the body that EvalAI treats as a string without checking."""
    value = body().get(name, "")
    if not isinstance(value, str):
        raise Breakdown(f"{name} is not a string")
    return value


def is_host(challenge: SandboxChallenge) -> bool:
    """Return whether the user is a host or cohost of a challenge."""
    return g.user is not None and g.user.pk in challenge.hosts


def require_host(
    challenge: SandboxChallenge,
    status: int,
    words: str = "Sorry, you are not authorized to make this request!",
) -> None:
    """Refuse users who are not hosts of a challenge.

    Raises:
        Refusal: With the code and the words of the view.
    """
    if not is_host(challenge):
        raise error(status, words)


def challenge_with(queue: str, verb: str = "exist") -> SandboxChallenge:
    """Return the challenge with a queue, or raise 400; break down if two have it."""
    if world.settings.shared_queue:
        raise Breakdown("MultipleObjectsReturned")
    for challenge in world.challenges.values():
        if challenge.queue_name == queue:
            return challenge
    raise error(400, f"Challenge with queue name {queue} does not {verb}")


def phase_with(pk: int) -> SandboxPhase:
    """Return a phase, or raise 404."""
    if pk not in world.phases:
        raise detail(404, f"ChallengePhase {pk} does not exist")
    return world.phases[pk]


def phase_of_split(pk: int) -> SandboxPhase:
    """Return the phase of a challenge phase split, or raise 404."""
    for phase in world.phases.values():
        if phase.split_pk == pk:
            return phase
    raise detail(404, f"ChallengePhaseSplit {pk} does not exist")


def submission_with(pk: int) -> SandboxSubmission:
    """Return a submission, or raise 404 in the words of the reading views."""
    if pk not in world.submissions:
        raise error(404, f"Submission {pk} does not exist")
    return world.submissions[pk]


def own_team(challenge: SandboxChallenge) -> Team:
    """Return the user's team in a challenge.

    Raises:
        Refusal: 403 if the user does not take part.
    """
    team = world.submitting_team(g.user, challenge)
    if team is None:
        raise error(403, "You haven't participated in the challenge")
    return team


def _refuse_constant(name: str) -> float:
    raise ValueError(f"Out of range float values are not JSON compliant: {float(name)!r}")
