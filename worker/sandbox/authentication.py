"""EvalAI's two token schemes, which are not interchangeable."""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from typing import Any

import jwt

from worker.sandbox.replies import CHALLENGE_HEADER, Refusal
from worker.sandbox.state import User, World

LIFETIME = timedelta(days=365)
ALGORITHM = "HS256"


class Tokens:
    """Issues JSON web tokens and reads the Authorization header."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._key = hashlib.sha256(f"sandbox/{world.settings.seed}".encode()).digest()

    def issue(self, user: User, *, kind: str = "refresh", lifetime: timedelta = LIFETIME) -> str:
        """Sign a token for a user; a negative lifetime makes an expired one."""
        user.issued += 1
        payload = {
            "token_type": kind,
            "exp": int((self._world.clock.now() + lifetime).timestamp()),
            "jti": hashlib.sha256(f"{user.pk}/{user.issued}".encode()).hexdigest()[:32],
            "user_id": user.pk,
        }
        return jwt.encode(payload, self._key, ALGORITHM)

    def blacklist(self, token: str) -> None:
        """Refuse a token from now on, as after its user pressed "refresh token"."""
        payload = self._verified(token)
        if payload is not None:
            self._world.users[payload["user_id"]].blacklisted.add(payload["jti"])

    def authenticate(self, header: str | None) -> User | None:
        """Return the user to whom an Authorization header belongs, None if there is no header.

        Raises:
            Refusal: 401 with WWW-Authenticate, in the words of the scheme.
        """
        scheme, _, token = (header or "").partition(" ")
        match scheme.lower():
            case "token":
                return self._by_hex(token)
            case "bearer":
                return self._by_jwt(token)
        return None

    def _by_hex(self, token: str) -> User:
        for user in self._world.users.values():
            if hmac.compare_digest(user.hex_token.encode(), token.encode()):
                if self._world.clock.now() - user.hex_created > LIFETIME:
                    raise _unauthorized({"detail": "Token has expired"})
                return user
        raise _unauthorized({"detail": "Invalid token"})

    def _by_jwt(self, token: str) -> User:
        payload = self._verified(token)
        if payload is None or payload["exp"] <= self._world.clock.now().timestamp():
            raise _not_valid("Token is invalid or expired")
        user = self._world.users[payload["user_id"]]
        if payload["jti"] in user.blacklisted:
            raise _not_valid("Token is blacklisted")
        if payload["token_type"] != "refresh":  # noqa: S105 - a kind of token, not a token
            raise _not_valid("Token has wrong type")
        return user

    def _verified(self, token: str) -> dict[str, Any] | None:
        # The sandbox's clock decides whether it has expired.
        try:
            decoded: dict[str, Any] = jwt.decode(
                token, self._key, algorithms=[ALGORITHM], options={"verify_exp": False}
            )
        except jwt.InvalidTokenError:
            return None
        return decoded


def _unauthorized(body: dict[str, Any]) -> Refusal:
    return Refusal(401, body, CHALLENGE_HEADER)


def _not_valid(message: str) -> Refusal:
    entry = {"token_class": "RefreshToken", "token_type": "refresh", "message": message}
    body = {
        "detail": "Given token not valid for any token type",
        "code": "token_not_valid",
        "messages": [entry],
    }
    return _unauthorized(body)
