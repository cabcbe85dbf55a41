"""Tokens: the login that gives 40 hexadecimal digits, the profile that gives a JSON web token."""

from __future__ import annotations

import hashlib

from worker.sandbox.replies import Refusal, Reply
from worker.sandbox.routing import Call, Route
from worker.sandbox.serialization import moment
from worker.sandbox.state import World


def password(name: str) -> str:
    """Return the password of a user of the sandbox."""
    return f"{name}-password"


def log_in(call: Call) -> Reply:
    """Give the user's 40 hexadecimal digits, fresh ones when the old ones ran out."""
    name, secret = call.data.get("username"), call.data.get("password")
    world = call.world
    for user in world.users.values():
        if user.name == name and secret == password(user.name):
            renew_hex(world, user.name)
            return Reply(body={"token": user.hex_token})
    raise Refusal(400, {"non_field_errors": ["Unable to log in with provided credentials."]})


def renew_hex(world: World, name: str) -> None:
    """Replace a user's hex token when it is a year old."""
    user = world.user(name)
    if (world.clock.now() - user.hex_created).days >= 365:
        user.hex_token = hashlib.sha1(user.hex_token.encode(), usedforsecurity=False).hexdigest()
        user.hex_created = world.clock.now()


def auth_token(call: Call) -> Reply:
    """Give the token that the profile shows."""
    token = call.tokens.issue(call.known_user)
    return Reply(body={"token": token, "expires_at": moment(call.tokens.expiry(token))})


def own_account(call: Call) -> Reply:
    """Tell users their own account; [src]."""
    user = call.known_user
    body = {"pk": user.pk, "username": user.name, "email": user.email, "first_name": "", "last_name": ""}
    return Reply(body=body)


ROUTES = (
    Route(path="/api/auth/login", views={"POST": log_in}, public=True),
    Route(path="/api/accounts/user/get_auth_token", views={"GET": auth_token}),
    Route(path="/api/auth/user/", views={"GET": own_account}),
)
