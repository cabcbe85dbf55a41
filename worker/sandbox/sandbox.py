"""The sandbox as one object, which tests, the demo and the rehearsal start, control, inspect and close."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from datetime import timedelta
from functools import wraps
from typing import Any, Self, TypeVar, cast

from worker.sandbox import lifecycle
from worker.sandbox.application import Listener, create_application
from worker.sandbox.call import LIFETIME, error, issue
from worker.sandbox.faults import FaultPlan
from worker.sandbox.journal import Clock
from worker.sandbox.serialization import submission_json
from worker.sandbox.settings import SandboxSettings
from worker.sandbox.state import SandboxChallenge, SandboxPhase, Team, User, World
from worker.sandbox.views.challenge import board

PLACEHOLDER = b"file_content"
"""The whole file of a large upload that is not finished."""
F = TypeVar("F", bound=Callable[..., Any])


def _locked(method: F) -> F:
    """Let a method run while no request is handled."""

    @wraps(method)
    def run(sandbox: Sandbox, *args: Any, **kwargs: Any) -> Any:
        with sandbox.world.lock:
            return method(sandbox, *args, **kwargs)

    return cast("F", run)


def _set(thing: SandboxChallenge | SandboxPhase, changes: Mapping[str, Any]) -> None:
    """Set fields, which must exist."""
    if unknown := changes.keys() - thing.fields:
        raise LookupError(f"The sandbox has no fields {', '.join(unknown)}.")
    thing.fields |= changes


class Sandbox(ExitStack):
    """An EvalAI server on loopback, with its state in memory.

    It is a context manager that listens until its end; after that, the state can still be read. Its methods act at once and without HTTP,
    so they need no token, do not count against the rate limit and have no faults; calls over HTTP have all of these.

    Args:
        settings: The challenge.
        clock: The server's time source; a ``ManualClock().clock()`` makes throttle, visibility and expiry testable.
        rng: Draws faults.
    """

    def __init__(
        self,
        settings: SandboxSettings | None = None,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        super().__init__()
        self.settings = settings or SandboxSettings()
        draws = rng or random.Random(0)  # noqa: S311 - draws faults, not secrets
        self.world = World(self.settings, clock or Clock(), draws)
        self.journal, self.faults = self.world.journal, self.world.faults
        self.challenge, self.queue = self.settings.challenge, self.settings.queue
        self._issued: dict[str, str] = {}
        self.url = ""
        self.media_url = ""

    def __enter__(self) -> Self:
        """Listen on two ports of loopback: one for the API, and one for the files, which then have another origin."""
        app, port = create_application(self.world), self.settings.port
        self.url, self.media_url = (
            self.enter_context(closing(Listener(app, number))).url for number in (port, port and port + 1)
        )
        self.world.media_url = self.media_url
        return self

    @property
    def media_host(self) -> str:
        """The origin of the files as ``host:port``, for ``media_hosts``."""
        return self.media_url.removeprefix("http://")

    # Accounts ---------------------------------------------------------------------------------

    @_locked
    def token(self, user: str = "host") -> str:
        """Return a user's JSON web token (scheme Bearer), always the same."""
        if user not in self._issued:
            self._issued[user] = issue(self.world, self.world.user(user))
        return self._issued[user]

    @_locked
    def issue_token(self, user: str, *, kind: str = "refresh", lifetime: timedelta = LIFETIME) -> str:
        """Sign another token; a negative lifetime makes an expired one, kind ``access`` one of the wrong type."""
        return issue(self.world, self.world.user(user), kind=kind, lifetime=lifetime)

    @_locked
    def refresh_token(self, user: str = "host") -> str:
        """Blacklist the user's token and return a new one, as the profile's button does."""
        self.world.tokens[self.token(user)].blacklisted = True
        del self._issued[user]
        return self.token(user)

    @_locked
    def add_team(self, name: str, members: tuple[str, ...] = (), *, elsewhere: bool = False) -> Team:
        """Let a team take part, in the challenge of ``otherhost`` if it is ``elsewhere``; without members it gets a new user."""
        return self.world.add_team(name, members, self.world.elsewhere if elsewhere else None)

    @_locked
    def change_hosts(self, *names: str) -> None:
        """Make these users the hosts of the challenge; the others have left the host team."""
        self.world.challenge.hosts = {self.world.user(name).pk for name in names}

    @_locked
    def rename_team(self, name: str, new_name: str) -> None:
        """Give a team another name."""
        self.world.team(name).name = new_name

    # The challenge ----------------------------------------------------------------------------

    def phase_pk(self, codename: str) -> int:
        """Return the primary key of a phase."""
        return self.world.phase(codename).pk

    def end_challenge(self) -> None:
        """End the challenge and its phases now: they accept no new submissions, and everything else continues."""
        challenge, now = self.world.challenge, self.world.clock.now()
        for fields in (challenge.fields, *(phase.fields for phase in self.world.phases_of(challenge))):
            fields["end_date"] = min(fields["end_date"], now)

    @_locked
    def set_challenge(self, **changes: Any) -> None:
        """Change fields of the challenge, as hosts and EvalAI's administrators can."""
        _set(self.world.challenge, changes)

    @_locked
    def set_phase(self, codename: str, **changes: Any) -> None:
        """Change fields of a phase or of its split, as hosts can."""
        _set(self.world.phase(codename), changes)

    @_locked
    def give_up(self, waiting: timedelta = timedelta(days=14), *, as_failed: bool = False) -> list[int]:
        """End what was not answered for so long, in all challenges.

        EvalAI's maintenance cancels it, also what is running; its queue time limit makes failed what nobody has picked up.

        Returns:
            The submissions that were ended. None of them was answered by a worker.
        """
        world, now = self.world, self.world.clock.now()
        ended = lifecycle.WAITING if as_failed else lifecycle.GIVEN_UP
        given_up = [
            s
            for s in world.submissions.values()
            if s["status"] in ended and (s["rerun_resumed_at"] or s["submitted_at"]) <= now - waiting
        ]
        for submission in given_up:
            lifecycle.edit(world, submission, {"status": "failed" if as_failed else "cancelled"})
            if as_failed:
                submission["completed_at"] = now
                submission["stderr_file"] = world.store(submission, "x.txt", lifecycle.QUEUE_TIMEOUT)
        return [submission["id"] for submission in given_up]

    # Submissions ------------------------------------------------------------------------------

    @_locked
    def submit(
        self,
        team: str,
        phase: str,
        content: bytes,
        *,
        file_name: str = "embeddings.csv",
        method_name: str = "a method",
        is_public: bool | None = True,
        **description: Any,
    ) -> int:
        """Submit a file for a team and return the submission's primary key.

        An unknown team is made first; for the name of a host, this is the host's team.

        Raises:
            Refusal: If the server does not accept it (limits, empty file, inactive phase).
        """
        submission = lifecycle.create(
            self.world,
            *self._entrant(team, phase),
            content=content,
            file_name=file_name,
            description=description | {"method_name": method_name, "is_public": is_public},
        )
        return int(submission["id"])

    @_locked
    def begin_upload(self, team: str, phase: str, **description: Any) -> int:
        """Begin a large upload for a team: the submission has a placeholder, and no message is sent.

        Raises:
            Refusal: If the server does not accept it.
        """
        entrant = self._entrant(team, phase)
        challenge, user = entrant[0].challenge, entrant[2]
        if not challenge.fields["approved_by_admin"] and user.pk not in challenge.hosts:
            raise error(406, "Challenge is not yet approved by admin.")
        submission = lifecycle.add(
            self.world,
            *entrant,
            content=PLACEHOLDER,
            file_name="embeddings.csv",
            description={"method_name": "a method", "is_public": True, **description},
        )
        return int(submission["id"])

    @_locked
    def finish_upload(self, pk: int, content: bytes, *, message: bool = True) -> None:
        """Replace the placeholder of a large upload with the file at the same address, and send the message."""
        self.world.media[self.world.submissions[pk]["input_file"]] = content
        self.world.effect("uploaded", pk)
        if message:
            self.send_again(pk)

    def _entrant(self, name: str, phase: str) -> tuple[SandboxPhase, Team, User]:
        """Return the phase, the team and the user of a submission; an unknown team is made first."""
        try:
            team = self.world.team(name)
        except LookupError:
            challenge, user = self.world.phase(phase).challenge, self.world.users
            host = next((user[pk] for pk in challenge.hosts if user[pk].name == name), None)
            theirs = host and self.world.submitting_team(host, challenge)
            team = theirs or self.world.add_team(name, challenge=challenge)
        return self.world.phase(phase), team, self.world.users[team.members[0]]

    @_locked
    def rerun(self, pk: int) -> int:
        """Re-run a submission, as a host does; return the new primary key."""
        return int(lifecycle.rerun(self.world, self.world.submissions[pk])["id"])

    @_locked
    def resume(self, pk: int) -> None:
        """Resume a failed submission under the same primary key, as a host does; its old stdout and stderr stay."""
        self.world.submissions[pk] |= {"status": "resuming", "rerun_resumed_at": self.world.clock.now()}
        self.world.effect("resumed", pk)
        lifecycle.send(self.world, self.world.submissions[pk], is_static_dataset_code_upload_submission=False)

    @_locked
    def send_again(self, pk: int, *, phase: str | None = None) -> None:
        """Put another message about a submission into the queue, as any participant may in any state, and with any phase."""
        named = None if phase is None else self.world.phase(phase)
        lifecycle.send(self.world, self.world.submissions[pk], phase=named)

    @_locked
    def edit(self, pk: int, **changes: Any) -> None:
        """Change fields of a submission as participants and hosts can on the web: phase (codename), is_public ...

        ``status="cancelled"`` cancels it, as any member of its team may, and ``ignore_submission=True`` deletes it; its message stays.
        Nobody can write ``submission_number``, but two that are made at the same moment get the same one.
        """
        if "phase" in changes:
            changes["challenge_phase"] = self.phase_pk(changes.pop("phase"))
        lifecycle.edit(self.world, self.world.submissions[pk], changes)

    @_locked
    def expire_link(self, pk: int) -> None:
        """Let the present address of a submission's file respond with 403; reading the submission gives one with a fresh signature."""
        path = self.world.submissions[pk]["input_file"]
        self.world.signatures[path] = self.world.signatures.get(path, 0) + 1

    @_locked
    def flatten(self, pk: int) -> None:
        """Move the file of a submission to where older ones have it: below a folder with only the submission's number."""
        world, submission = self.world, self.world.submissions[pk]
        path = f"submission_files/submission_{pk}/{submission['input_file'].rpartition('/')[2]}"
        world.media[path] = world.media.pop(submission["input_file"])
        submission["input_file"] = path

    @_locked
    def submission(self, pk: int) -> dict[str, Any]:
        """Return a submission as the challenge's host sees it."""
        return submission_json(self.world, self.world.submissions[pk], host=True)

    @_locked
    def submissions(self) -> list[dict[str, Any]]:
        """Return all submissions as a host reads them, oldest first."""
        return [submission_json(self.world, s, host=True) for s in self.world.submissions.values()]

    @_locked
    def text(self, pk: int, name: str) -> str:
        """Return the content of a submission's ``stdout_file``, ``stderr_file``, ``submission_result_file`` ..., empty if nothing."""
        path = self.world.submissions[pk][name]
        return "" if path is None else self.world.media[path].decode("utf-8", "surrogatepass")

    @_locked
    def leaderboard(self, phase: str, *, public_only: bool = True) -> list[dict[str, Any]]:
        """Return EvalAI's own leaderboard of a phase."""
        return board(self.world, self.world.phase(phase), public_only=public_only)

    # Queue, journal and faults ----------------------------------------------------------------

    @_locked
    def queue_length(self) -> int:
        """Return the number of messages that were not deleted, visible or not."""
        return len(self.world.challenge.queue)

    @_locked
    def purge_queue(self) -> None:
        """Lose every message, as at the end of the retention period."""
        self.world.challenge.queue.purge()

    @_locked
    def send_message(self, body: Mapping[str, Any]) -> None:
        """Put a message of any content into the queue."""
        self.world.challenge.queue.send(body)

    @_locked
    def set_faults(self, plan: FaultPlan) -> None:
        """Change how often faults occur from now on."""
        self.faults.plan = plan

    @_locked
    def facts(self) -> Mapping[str, Any]:
        """Return what a client needs: addresses, also of each phase's submissions, queue, and the tokens of hosts and teams."""
        world = self.world
        own = f"{self.url}/api/jobs/challenge/{self.challenge}/challenge_phase"
        hosts = world.challenge.hosts
        teams = [
            team
            for team in world.teams.values()
            if team.challenge is world.challenge and hosts.isdisjoint(team.members)
        ]
        return {
            "url": self.url,
            "media_url": self.media_url,
            "challenge": self.challenge,
            "title": self.settings.title,
            "queue": self.queue,
            "phases": {
                phase.settings.codename: f"{own}/{phase.pk}/submission/"
                for phase in world.phases_of(world.challenge)
            },
            "tokens": {(name := world.users[pk].name): self.token(name) for pk in sorted(hosts)},
            "teams": {team.name: self.token(world.users[team.members[0]].name) for team in teams},
        }
