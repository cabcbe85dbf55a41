"""How a request reaches a view: who asks, what the body says, and what the framework refuses before any view runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from flask import Request

from worker.sandbox.authentication import Tokens
from worker.sandbox.replies import CHALLENGE_HEADER, Breakdown, Refusal, Reply, detail, error
from worker.sandbox.state import Team, User, World

FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


@dataclass(frozen=True)
class Upload:
    """A file in a multipart body."""

    name: str
    content: bytes


class Call:
    """One request on its way through a view."""

    def __init__(self, world: World, tokens: Tokens, request: Request, user: User | None) -> None:
        self.world = world
        self.tokens = tokens
        self.user = user
        self.method = request.method
        self.query: Mapping[str, str] = request.args
        self.address = request.base_url
        self._mimetype = request.mimetype
        self._body = b"" if self._mimetype in FORM_TYPES else request.get_data()
        self._form = dict(request.form) if self._mimetype in FORM_TYPES else {}
        self.files = {name: Upload(f.filename or "", f.read()) for name, f in request.files.items()}

    @property
    def known_user(self) -> User:
        """The user; only for views that are closed to the anonymous."""
        if self.user is None:
            raise Breakdown("a view that needs a user was reached without one")
        return self.user

    @cached_property
    def content(self) -> Any:
        """The parsed body, whatever its type.

        Raises:
            Refusal: 415 another media type, 400 broken JSON.
        """
        if self._mimetype in FORM_TYPES:
            return self._form
        if not self._body:
            return {}
        if self._mimetype != "application/json":
            raise detail(415, f'Unsupported media type "{self._mimetype}" in request.')
        try:
            return json.loads(self._body.decode("utf-8"), parse_constant=_refuse_constant)
        except ValueError as problem:
            raise detail(400, f"JSON parse error - {problem}") from problem

    @property
    def data(self) -> Mapping[str, Any]:
        """The parsed body as a mapping; EvalAI's views fall over when it is something else."""
        if not isinstance(self.content, dict):
            raise Breakdown("the body is no object")
        return self.content

    def text(self, name: str) -> str:
        """Return a field of the body that EvalAI takes for a string without looking."""
        value = self.data.get(name, "")
        if not isinstance(value, str):
            raise Breakdown(f"{name} is no string")
        return value

    @property
    def is_host(self) -> bool:
        """Whether a host or cohost asks."""
        return self.world.is_host(self.user)

    def require_host(self, status: int, text: str) -> None:
        """Let only hosts pass.

        Raises:
            Refusal: In the code and the words of the view.
        """
        if not self.is_host:
            raise error(status, text)

    def require_own_queue(self) -> None:
        """Break down, as EvalAI does, when two challenges have a queue of the same name."""
        if self.world.settings.shared_queue:
            raise Breakdown(
                "MultipleObjectsReturned: get() returned more than one Challenge -- it returned 2!"
            )

    def require_challenge(self, challenge: int) -> None:
        """Raise 404 unless the challenge is the one that lives here."""
        if challenge != self.world.settings.challenge:
            raise detail(404, f"Challenge {challenge} does not exist")

    def team(self) -> Team:
        """Return the asking user's team.

        Raises:
            Refusal: 403, the user takes no part.
        """
        team = self.world.submitting_team(self.known_user)
        if team is None:
            raise error(403, "You haven't participated in the challenge")
        return team


View = Callable[..., Reply]


@dataclass(frozen=True, kw_only=True)
class Route:
    """One address with its views by method.

    ``public`` routes need no token (a bad one is refused all the same); ``throttled`` ones count against the minute.
    """

    path: str
    views: Mapping[str, View] = field(default_factory=dict)
    public: bool = False
    throttled: bool = True


def answer(
    route: Route, world: World, tokens: Tokens, request: Request, arguments: Mapping[str, Any]
) -> tuple[Reply, User | None]:
    """Run a request through authentication, permission, throttle and view, in the framework's order."""
    user: User | None = None
    try:
        user = tokens.authenticate(request.headers.get("Authorization"))
        if user is None and not route.public:
            text = "Authentication credentials were not provided."
            raise Refusal(401, {"detail": text}, CHALLENGE_HEADER)
        if user is not None and not user.verified and not route.public:
            raise detail(403, "Please verify your email!")
        if route.throttled:
            _throttle(world, user)
        view = route.views.get(request.method)
        if view is None:
            raise detail(405, f'Method "{request.method}" not allowed.')
        return view(Call(world, tokens, request, user), **arguments), user
    except Refusal as refusal:
        return refusal.reply, user


def _throttle(world: World, user: User | None) -> None:
    wait_s = world.throttle.admit(user.name if user else "", world.clock.monotonic())
    if wait_s is not None:
        seconds = "second" if wait_s == 1 else "seconds"
        text = f"Request was throttled. Expected available in {wait_s} {seconds}."
        raise Refusal(429, {"detail": text}, {"Retry-After": str(wait_s)})


def _refuse_constant(name: str) -> float:
    value = repr(float(name))
    raise ValueError(f"Out of range float values are not JSON compliant: {value}")
