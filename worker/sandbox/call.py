"""One request during its handling by a view: its user and its body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from flask import request

from worker.sandbox import lifecycle
from worker.sandbox.replies import Breakdown, detail, error
from worker.sandbox.state import Entrant, Phase, Submission, Team, User, World

TEXTS = ("method_name", "method_description", "project_url", "publication_url")
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


class Call:
    """Flask's request and its user."""

    def __init__(self, world: World, user: User | None) -> None:
        self.world = world
        self.user = user

    @property
    def known_user(self) -> User:
        """The user, for views that require one."""
        if self.user is None:
            raise Breakdown("a view that needs a user was reached without one")
        return self.user

    @cached_property
    def content(self) -> Any:
        """The parsed body, of any type.

        Raises:
            Refusal: 415 for another media type, 400 for broken JSON.
        """
        if request.mimetype in FORM_TYPES:
            return request.form.to_dict()
        body = request.get_data()
        if not body:
            return {}
        if request.mimetype != "application/json":
            raise detail(415, f'Unsupported media type "{request.mimetype}" in request.')
        try:
            return json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        except ValueError as problem:
            raise detail(400, f"JSON parse error - {problem}") from problem

    @property
    def data(self) -> Mapping[str, Any]:
        """The parsed body as a mapping; EvalAI's views fail if it is something else."""
        if not isinstance(self.content, dict):
            raise Breakdown("the body is not an object")
        return self.content

    def text(self, name: str) -> str:
        """Return a field of the body that EvalAI treats as a string without checking."""
        value = self.data.get(name, "")
        if not isinstance(value, str):
            raise Breakdown(f"{name} is not a string")
        return value

    @property
    def description(self) -> dict[str, Any]:
        """The description of a new submission in the body."""
        wish = self.data.get("is_public")
        try:
            is_public = None if wish is None else bool(json.loads(wish))
        except (TypeError, ValueError) as problem:
            raise Breakdown("is_public is not JSON") from problem
        return {"is_public": is_public} | {name: str(self.data.get(name, "")) for name in TEXTS}

    @property
    def is_host(self) -> bool:
        """Whether the user is a host or cohost."""
        return self.world.is_host(self.user)

    def require_host(self, status: int, text: str) -> None:
        """Refuse users who are not hosts.

        Raises:
            Refusal: With the code and the words of the view.
        """
        if not self.is_host:
            raise error(status, text)

    def require_queue(self, queue: str, verb: str = "exist") -> None:
        """Raise 400 unless the queue belongs to the challenge.

        It breaks down, as EvalAI does, if two challenges have a queue of the same name.
        """
        if self.world.settings.shared_queue:
            raise Breakdown(
                "MultipleObjectsReturned: get() returned more than one Challenge -- it returned 2!"
            )
        if queue != self.world.settings.queue:
            raise error(400, f"Challenge with queue name {queue} does not {verb}")

    def require_challenge(self, challenge: int) -> None:
        """Raise 404 unless the challenge is the sandbox's."""
        if challenge != self.world.settings.challenge:
            raise detail(404, f"Challenge {challenge} does not exist")

    def phase(self, pk: int) -> Phase:
        """Return a phase, or raise 404."""
        if pk not in self.world.phases:
            raise detail(404, f"ChallengePhase {pk} does not exist")
        return self.world.phases[pk]

    def phase_of_split(self, split: int) -> Phase:
        """Return the phase of a challenge phase split, or raise 404."""
        phase = self.world.phase_of_split(split)
        if phase is None:
            raise detail(404, f"ChallengePhaseSplit {split} does not exist")
        return phase

    def submission(self, pk: int) -> Submission:
        """Return a submission, or raise 404 in the words of the reading views."""
        found = self.world.submissions.get(pk)
        if found is None:
            raise error(404, f"Submission {pk} does not exist")
        return found

    def team(self) -> Team:
        """Return the user's team.

        Raises:
            Refusal: 403 if the user does not take part.
        """
        team = self.world.submitting_team(self.known_user)
        if team is None:
            raise error(403, "You haven't participated in the challenge")
        return team

    def entrant(self, phase: Phase) -> Entrant:
        """Return the user and the team that submit to a phase.

        Raises:
            Refusal: If the phase accepts no submissions from them, or no more.
        """
        lifecycle.check_open(self.world, phase, self.known_user)
        entrant = Entrant(phase=phase, team=self.team(), user=self.known_user)
        lifecycle.check_room(self.world, phase, entrant.team)
        return entrant


def _refuse_constant(name: str) -> float:
    value = repr(float(name))
    raise ValueError(f"Out of range float values are not JSON compliant: {value}")
