"""The sandbox's whole state: users, teams, phases, submissions, leaderboard rows, files, queue and tokens."""

from __future__ import annotations

import math
import random
import re
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from worker.sandbox.faults import FaultSource
from worker.sandbox.journal import Clock, Journal
from worker.sandbox.queue import Queue
from worker.sandbox.settings import CHALLENGE, PHASE, SPLIT, PhaseSettings, SandboxSettings

WINDOW_S = 60.0


class Throttle:
    """Accepts at most ``per_minute`` calls of one user in any sixty seconds.

    All endpoints and both token schemes share one count. Refused calls do not count.
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._calls: dict[str, deque[float]] = {}

    def admit(self, user: str, now_s: float) -> int | None:
        """Count a call; return None if it is accepted, otherwise the whole seconds to wait."""
        calls = self._calls.setdefault(user, deque())
        while calls and calls[0] <= now_s - WINDOW_S:
            calls.popleft()
        if len(calls) < self.per_minute:
            calls.append(now_s)
            return None
        return max(1, math.ceil(WINDOW_S - (now_s - calls[0])))


@dataclass(kw_only=True)
class User:
    """An account."""

    pk: int
    name: str
    hex_token: str
    verified: bool = True

    @property
    def email(self) -> str:
        """The account's address."""
        return f"{self.name}@sandbox.example"


@dataclass(kw_only=True)
class Token:
    """A token: its user, its kind (``hex``, ``refresh`` or ``access``), and when it ends."""

    user: User
    kind: str
    expires: datetime
    blacklisted: bool = False


@dataclass(kw_only=True)
class SandboxChallenge:
    """A challenge with its queue; hosts are primary keys of users. ``fields`` are those of EvalAI's that hosts or administrators set."""

    pk: int
    title: str
    queue_name: str
    hosts: set[int]
    host_team_pk: int
    fields: dict[str, Any]
    queue: Queue


@dataclass(kw_only=True)
class Team:
    """A participant team of one challenge; members are primary keys of users."""

    pk: int
    name: str
    members: list[int]
    challenge: SandboxChallenge


@dataclass(kw_only=True)
class SandboxPhase:
    """A challenge phase with its one split. ``fields`` are those of EvalAI's phase and split that a host sets."""

    challenge: SandboxChallenge
    pk: int
    split_pk: int
    dataset_split_pk: int
    settings: PhaseSettings
    fields: dict[str, Any]

    @property
    def name(self) -> str:
        """The phase's name as people see it."""
        return self.settings.name or f"{self.settings.codename.capitalize()} phase"


SandboxSubmission = dict[str, Any]
"""A submission by EvalAI's names for its fields; files are paths under /media/."""
NEW: SandboxSubmission = {
    "status": "submitted",
    "submission_input_file": None,
    "stdout_file": None,
    "stderr_file": None,
    "environment_log_file": None,
    "submission_result_file": None,
    "submission_metadata_file": None,
    "started_at": None,
    "completed_at": None,
    "rerun_resumed_at": None,
    "when_made_public": None,
    "method_name": "",
    "method_description": "",
    "project_url": "",
    "publication_url": "",
    "is_flagged": False,
    "ignore_submission": False,
    "is_baseline": False,
    "is_verified_by_host": False,
    "submission_metadata": None,
    "files_written": 0,
}
"""What a new submission has, besides the fields that differ from one to the next."""


class World:
    """The state of one sandbox. Readers and writers must hold ``lock``."""

    def __init__(self, settings: SandboxSettings, clock: Clock, rng: random.Random) -> None:
        self.settings = settings
        self.clock = clock
        self.lock = threading.RLock()
        self.journal = Journal()
        self.throttle = Throttle(settings.throttle_per_minute)
        self.faults = FaultSource(rng)
        self.media_url = ""
        self.media: dict[str, bytes] = {}
        self.signatures: dict[str, int] = {}  # files whose addresses have a signature that expires
        self.users: dict[int, User] = {}
        self.tokens: dict[str, Token] = {}
        self.teams: dict[int, Team] = {}
        self.challenges: dict[int, SandboxChallenge] = {}
        self.phases: dict[int, SandboxPhase] = {}
        self.submissions: dict[int, SandboxSubmission] = {}
        self.rows: dict[tuple[int, int], dict[str, Any]] = {}  # leaderboard rows by submission and split
        self.tells_hosts = True  # whether the server responds to requests about the host team
        self.challenge = self.add_challenge(
            settings.challenge, settings.title, settings.queue, ("host", "cohost"), settings.phases
        )
        self.challenge.fields |= settings.fields
        elsewhere = (PhaseSettings(codename="elsewhere"),)
        self.elsewhere = self.add_challenge(
            settings.challenge + 1, "Another challenge", "another-queue", ("otherhost",), elsewhere
        )
        for name, members in {settings.host_team: ("host",), **settings.teams}.items():
            self.add_team(name, members)

    def add_challenge(
        self, pk: int, title: str, queue: str, hosts: tuple[str, ...], phases: tuple[PhaseSettings, ...]
    ) -> SandboxChallenge:
        """Create a challenge, as anybody with an account can."""
        now = self.clock.now()
        dates = {"start_date": now - timedelta(days=30), "end_date": now + timedelta(days=335)}
        challenge = self.challenges[pk] = SandboxChallenge(
            pk=pk,
            title=title,
            queue_name=queue,
            hosts={self.user(name).pk for name in hosts},
            host_team_pk=401 + len(self.challenges),
            fields={**CHALLENGE, **dates},
            queue=Queue(self.settings.visibility_timeout_s, self.faults),
        )
        for phase in phases:
            number = len(self.phases)
            self.phases[11 + number] = SandboxPhase(
                challenge=challenge,
                pk=11 + number,
                split_pk=31 + number,
                dataset_split_pk=51 + number,
                settings=phase,
                fields={**PHASE, **SPLIT, **dates, **phase.fields},
            )
        return challenge

    # Accounts ---------------------------------------------------------------------------------

    def user(self, name: str) -> User:
        """Return the user with a name, who is created if necessary."""
        for user in self.users.values():
            if user.name == name:
                return user
        digits = uuid5(NAMESPACE_OID, name).hex + "0" * 8
        user = User(pk=501 + len(self.users), name=name, hex_token=digits)
        self.users[user.pk] = user
        self.tokens[digits] = Token(user=user, kind="hex", expires=self.clock.now() + timedelta(days=365))
        return user

    def add_team(
        self, name: str, members: tuple[str, ...] = (), challenge: SandboxChallenge | None = None
    ) -> Team:
        """Create a team, by default of our challenge; without members it gets one with a name derived from the team's."""
        slug = re.sub(r"\W+", "-", name.lower(), flags=re.ASCII).strip("-")
        names = members or (f"{slug}-{len(self.teams)}",)
        team = Team(
            pk=201 + len(self.teams),
            name=name,
            members=[self.user(member).pk for member in names],
            challenge=challenge or self.challenge,
        )
        self.teams[team.pk] = team
        return team

    def team(self, name: str) -> Team:
        """Return the team with a name, or with a user of that name.

        Raises:
            LookupError: If there is none.
        """
        for team in self.teams.values():
            if name == team.name or name in (self.users[pk].name for pk in team.members):
                return team
        raise LookupError(f"The sandbox has no team {name!r}.")

    def submitting_team(self, user: User, challenge: SandboxChallenge) -> Team | None:
        """Return the team with which a user submits to a challenge; a host without a team gets one, as at EvalAI."""
        theirs = (t for t in self.teams.values() if t.challenge is challenge and user.pk in t.members)
        team = next(theirs, None)
        if team is None and user.pk in challenge.hosts:
            team = self.add_team(f"Host_{len(self.teams) + 1}_Team", (user.name,), challenge)
        return team

    # The challenges ---------------------------------------------------------------------------

    def is_active(self, thing: SandboxChallenge | SandboxPhase) -> bool:
        """Return whether a challenge or a phase has started and not ended."""
        return bool(thing.fields["start_date"] <= self.clock.now() < thing.fields["end_date"])

    def phases_of(self, challenge: SandboxChallenge) -> list[SandboxPhase]:
        """Return the phases of a challenge."""
        return [phase for phase in self.phases.values() if phase.challenge is challenge]

    def challenge_of(self, submission: SandboxSubmission) -> SandboxChallenge:
        """Return the challenge to whose phase a submission belongs now."""
        return self.phases[submission["challenge_phase"]].challenge

    def phase(self, codename: str) -> SandboxPhase:
        """Return the phase with a codename."""
        return next(phase for phase in self.phases.values() if phase.settings.codename == codename)

    def of(self, team: Team, phase: SandboxPhase) -> list[SandboxSubmission]:
        """Return a team's submissions to a phase, oldest first."""
        key = (team.pk, phase.pk)
        return [s for s in self.submissions.values() if (s["participant_team"], s["challenge_phase"]) == key]

    def effect(self, name: str, submission: int | None = None, **details: Any) -> None:
        """Record a change of state in the journal."""
        self.journal.write("effect", at=self.clock.now(), name=name, submission=submission, detail=details)

    # Files ------------------------------------------------------------------------------------

    def store(self, submission: SandboxSubmission, name: str, content: bytes) -> str:
        """Store a file of a submission under a random name, which keeps only the last suffix, and return its path.

        The random name depends only on the submission and on the number of its files, so two sandboxes with the same history use the same
        names.
        """
        submission["files_written"] += 1
        root = uuid5(NAMESPACE_OID, f"{submission['id']}/{submission['files_written']}")
        challenge, phase = self.challenge_of(submission).pk, submission["challenge_phase"]
        folder = f"challenge_{challenge}/phase_{phase}/submission_{submission['id']}"
        path = f"submission_files/{folder}/{root}{PurePosixPath(name).suffix}"
        self.media[path] = content
        return path

    def url(self, path: str | None) -> str | None:
        """Return the absolute address of a stored file."""
        if path is None:
            return None
        query = f"?signature={self.signatures[path]}" if path in self.signatures else ""
        return f"{self.media_url}/media/{path}{query}"

    def write_row(self, submission_pk: int, split_pk: int, result: Mapping[str, float]) -> None:
        """Create or overwrite a submission's row on a split; rows are in the order in which they were last written."""
        key = (submission_pk, split_pk)
        row = self.rows.pop(key, {"id": 9001 + len(self.rows)})
        self.rows[key] = row | {"submission": submission_pk, "split": split_pk, "result": dict(result)}
