"""EvalAI's two token schemes, which are not interchangeable."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import jwt

from worker.sandbox.replies import Refusal
from worker.sandbox.state import Token, User, World

LIFETIME = timedelta(days=365)
HEADER = {"WWW-Authenticate": 'Bearer realm="api"'}
KEY = "the key of every sandbox, which protects nothing"


def issue(world: World, user: User, *, kind: str = "refresh", lifetime: timedelta = LIFETIME) -> str:
    """Sign a JSON web token for a user; a negative lifetime makes an expired one."""
    expires = world.clock.now() + lifetime
    payload = {
        "token_type": kind,
        "exp": int(expires.timestamp()),
        "jti": str(len(world.tokens)),
        "user_id": user.pk,
    }
    token = jwt.encode(payload, KEY, "HS256")
    world.tokens[token] = Token(user=user, kind=kind, expires=expires)
    return token


def authenticate(world: World, header: str | None) -> User | None:
    """Return the user to whom an Authorization header belongs, None if there is no header.

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
