"""The sandbox as one object, which tests, the demo and the rehearsal start, control, inspect and close."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from worker.sandbox import lifecycle, uploads
from worker.sandbox.authentication import LIFETIME, Tokens
from worker.sandbox.clock import Clock, system_clock
from worker.sandbox.faults import FaultPlan, FaultSource
from worker.sandbox.journal import Journal
from worker.sandbox.serialization import submission_json
from worker.sandbox.server import Api, Listener, Media
from worker.sandbox.settings import SandboxSettings
from worker.sandbox.state import Entrant, Submission, Team, World
from worker.sandbox.views.leaderboard import board


class Sandbox:
    """An EvalAI server on loopback, with its state in memory.

    It is a context manager that listens from ``__enter__`` to ``__exit__``. Its methods act at once and without HTTP, so they need no
    token, do not count against the rate limit and have no faults; calls over HTTP have all of these.

    Args:
        settings: The challenge.
        clock: The server's time source; a ``ManualClock().clock()`` makes throttle, visibility and expiry testable.
        rng: Draws faults; by default seeded from the settings.
    """

    def __init__(
        self,
        settings: SandboxSettings | None = None,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.settings = settings or SandboxSettings()
        clock = clock or system_clock()
        rng = rng or random.Random(self.settings.seed)  # noqa: S311 - draws faults, not secrets
        self.world = World(self.settings, clock, rng)
        self.tokens = Tokens(self.world)
        self.faults = FaultSource(self.settings.faults or FaultPlan(), rng, clock.monotonic)
        self._issued: dict[str, str] = {}
        self._listeners: list[Listener] = []
        self.url = ""
        self.media_url = ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> Self:
        """Listen on two ports of loopback."""
        host = self.settings.host
        media = Listener(Media(self.world, self.faults), host, self.settings.media_port)
        self._listeners.append(media)
        self.media_url = self.world.media_url = media.url
        api = Listener(Api(self.world, self.tokens, self.faults), host, self.settings.port)
        self._listeners.append(api)
        self.url = api.url
        return self

    def close(self) -> None:
        """Stop listening; the state can still be read."""
        while self._listeners:
            self._listeners.pop().close()

    @property
    def media_host(self) -> str:
        """The origin of the files as ``host:port``, for ``media_hosts``."""
        return self.media_url.removeprefix("http://")

    # Accounts ---------------------------------------------------------------------------------

    def token(self, user: str = "host") -> str:
        """Return a user's JSON web token (scheme Bearer), always the same."""
        with self.world.lock:
            if user not in self._issued:
                self._issued[user] = self.tokens.issue(self.world.user(user))
            return self._issued[user]

    def issue_token(self, user: str, *, kind: str = "refresh", lifetime: timedelta = LIFETIME) -> str:
        """Sign another token; a negative lifetime makes an expired one, kind ``access`` one of the wrong type."""
        with self.world.lock:
            return self.tokens.issue(self.world.user(user), kind=kind, lifetime=lifetime)

    def refresh_token(self, user: str = "host") -> str:
        """Blacklist the user's token and return a new one, as the profile's button does."""
        with self.world.lock:
            if user in self._issued:
                self.tokens.blacklist(self._issued.pop(user))
        return self.token(user)

    def add_team(self, name: str, members: tuple[str, ...] = ()) -> Team:
        """Let a team take part; without members it gets a new user."""
        with self.world.lock:
            return self.world.add_team(name, members)

    def change_hosts(self, *names: str) -> None:
        """Make these users the hosts of the challenge."""
        with self.world.lock:
            self.world.hosts = {self.world.add_user(name).pk for name in names}

    def rename_team(self, name: str, new_name: str) -> None:
        """Give a team another name."""
        with self.world.lock:
            self.world.team(name).name = new_name

    # The challenge ----------------------------------------------------------------------------

    @property
    def challenge(self) -> int:
        """The challenge's primary key."""
        return self.settings.challenge

    @property
    def queue(self) -> str:
        """The name of the challenge's queue."""
        return self.settings.queue

    def phase_pk(self, codename: str) -> int:
        """Return the primary key of a phase."""
        return self.world.phase(codename).pk

    def end_challenge(self) -> None:
        """End the challenge now: it accepts no new submissions, and everything else continues."""
        with self.world.lock:
            self.world.end_date = self.world.clock.now()

    def rename_metric(self, codename: str, metric: str) -> None:
        """Change the metric of a phase's leaderboard, as a host does by mistake."""
        with self.world.lock:
            phase = self.world.phase(codename)
            phase.settings = replace(phase.settings, metrics=(metric,))

    # Submissions ------------------------------------------------------------------------------

    def submit(
        self,
        team: str,
        phase: str,
        file: bytes | Path,
        *,
        method_name: str = "a method",
        project_url: str = "",
        publication_url: str = "",
        is_public: bool | None = True,
        file_name: str = "",
    ) -> int:
        """Submit a file for a team and return the submission's primary key.

        An unknown team is made first; for the name of a host, this is the host's team.

        Raises:
            Refusal: If the server does not accept it (limits, empty file, inactive phase).
        """
        content = file.read_bytes() if isinstance(file, Path) else file
        name = file_name or (file.name if isinstance(file, Path) else "embeddings.csv")
        with self.world.lock:
            description = {
                "method_name": method_name,
                "project_url": project_url,
                "publication_url": publication_url,
                "is_public": is_public,
            }
            return int(
                lifecycle.create(self.world, self._entrant(team, phase), content, name, description)["id"]
            )

    def begin_upload(
        self, team: str, phase: str, *, method_name: str = "a method", is_public: bool | None = True
    ) -> int:
        """Begin a large upload for a team: the submission has a placeholder, and no message is sent.

        Raises:
            Refusal: If the server does not accept it.
        """
        with self.world.lock:
            description = {"method_name": method_name, "is_public": is_public}
            entrant = self._entrant(team, phase)
            return int(uploads.begin(self.world, entrant, "embeddings.csv", description, count=1)[1]["id"])

    def finish_upload(self, pk: int, content: bytes, *, message: bool = True) -> None:
        """Replace the placeholder of a large upload with the file, and send the message, as the command line does."""
        with self.world.lock:
            name = uploads.of(self.world, pk)
            path = self._submission(pk)["input_file"]
            part = uploads.put(self.world, path, name, "1", content)
            uploads.finish(self.world, name, [(1, str(part))])
            if message:
                self.send_again(pk)

    def _entrant(self, team: str, phase: str) -> Entrant:
        """Return the user, the team and the phase of a submission, if the server accepts it; an unknown team is made first."""
        try:
            found = self.world.team(team)
        except LookupError:
            found = self._new_team(team)
        stage, user = self.world.phase(phase), self.world.users[found.members[0]]
        lifecycle.check_open(self.world, stage, user)
        lifecycle.check_room(self.world, stage, found)
        return Entrant(phase=stage, team=found, user=user)

    def rerun(self, pk: int) -> int:
        """Re-run a submission, as a host does; return the new primary key."""
        with self.world.lock:
            return int(lifecycle.rerun(self.world, self._submission(pk))["id"])

    def resume(self, pk: int) -> None:
        """Resume a failed submission, as a host does."""
        with self.world.lock:
            lifecycle.resume(self.world, self._submission(pk))

    def send_again(self, pk: int) -> None:
        """Put another message about a submission into the queue, as its team may in any state."""
        with self.world.lock:
            submission = self._submission(pk)
            lifecycle.send(self.world, submission, lifecycle.message(self.world, submission, flag=False))

    def edit(self, pk: int, **changes: Any) -> None:
        """Change fields of a submission as participants and hosts can on the web: status, phase (codename), is_public ..."""
        with self.world.lock:
            if "phase" in changes:
                changes["challenge_phase"] = self.phase_pk(changes.pop("phase"))
            if changes.get("is_public"):
                changes["when_made_public"] = self.world.clock.now()
            lifecycle.edit(self.world, self._submission(pk), changes)

    def cancel(self, pk: int) -> None:
        """Cancel a submission, as any member of its team may; its message stays."""
        self.edit(pk, status="cancelled")

    def delete(self, pk: int) -> None:
        """Soft-delete a submission; status and message stay."""
        self.edit(pk, ignore_submission=True)

    def replace_file(self, pk: int, content: bytes, suffix: str = ".csv") -> None:
        """Give a submission another input file, as a participant can at any time."""
        with self.world.lock:
            lifecycle.replace_file(self.world, self._submission(pk), content, suffix)

    def expire_link(self, pk: int) -> None:
        """Let the present address of a submission's file respond with 403; reading the submission gives one with a fresh signature."""
        with self.world.lock:
            path = self._submission(pk)["input_file"]
            self.world.signatures[path] = self.world.signatures.get(path, 0) + 1

    def submission(self, pk: int) -> dict[str, Any]:
        """Return a submission as the challenge's host sees it."""
        with self.world.lock:
            return submission_json(self.world, self._submission(pk), self.world.user("host"))

    def submissions(self) -> list[dict[str, Any]]:
        """Return all submissions as a host reads them, oldest first."""
        with self.world.lock:
            host = self.world.user("host")
            return [submission_json(self.world, s, host) for s in self.world.submissions.values()]

    def text(self, pk: int, name: str) -> str:
        """Return the content of a submission's ``stdout_file``, ``stderr_file``, ``submission_result_file`` ..., empty if nothing."""
        with self.world.lock:
            path = self._submission(pk)[name]
            return "" if path is None else self.world.media[path].decode("utf-8", "surrogatepass")

    def leaderboard(self, phase: str, *, public_only: bool = True) -> list[dict[str, Any]]:
        """Return EvalAI's own leaderboard of a phase."""
        with self.world.lock:
            return board(self.world, self.world.phase(phase), public_only=public_only)

    # Queue and journal ------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        """Every request to the server and every change in it, in order."""
        return self.world.journal

    def queue_length(self) -> int:
        """Return the number of messages that were not deleted, visible or not."""
        with self.world.lock:
            return len(self.world.queue)

    def lose_messages(self) -> None:
        """Lose every message, as at the end of the retention period."""
        with self.world.lock:
            self.world.queue.purge()

    def set_faults(self, plan: FaultPlan) -> None:
        """Change how often faults occur from now on, including the queue's."""
        with self.world.lock:
            self.faults.plan = plan
            self.world.queue.faults = plan.queue

    def facts(self) -> Mapping[str, Any]:
        """Return what a client needs: addresses, primary keys, queue and tokens."""
        return {
            "url": self.url,
            "media_url": self.media_url,
            "challenge": self.challenge,
            "title": self.settings.title,
            "queue": self.queue,
            "phases": {
                p.settings.codename: {
                    "pk": p.pk,
                    "split": p.settings.split_codename,
                    "split_pk": p.split_pk,
                    "metrics": list(p.settings.metrics),
                }
                for p in self.world.phases.values()
            },
            "tokens": {
                user.name: {"bearer": self.token(user.name), "hex": user.hex_token}
                for user in list(self.world.users.values())
            },
        }

    def _submission(self, pk: int) -> Submission:
        return self.world.submissions[pk]

    def _new_team(self, name: str) -> Team:
        host = next((user for user in self.world.users.values() if user.name == name), None)
        team = self.world.submitting_team(host) if self.world.is_host(host) and host is not None else None
        return team or self.world.add_team(name)
