"""The sandbox's whole state: users, teams, challenge, phases, splits, submissions, leaderboard rows and files."""

from __future__ import annotations

import hashlib
import random
import re
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from worker.sandbox.clock import Clock
from worker.sandbox.journal import Journal
from worker.sandbox.queue import Queue, QueueFaults
from worker.sandbox.replies import Breakdown, detail
from worker.sandbox.settings import PhaseSettings, SandboxSettings
from worker.sandbox.throttle import Throttle

IN_PROGRESS = ("submitted", "submitting", "resuming", "queued", "running")
STATUSES = (*IN_PROGRESS, "failed", "cancelled", "finished", "archived", "partially_evaluated")
MAX_PATH = 100  # characters; EvalAI's FileField cuts longer names


@dataclass(kw_only=True)
class User:
    """An account."""

    pk: int
    name: str
    verified: bool = True
    hex_token: str
    hex_created: datetime
    blacklisted: set[str] = field(default_factory=set)
    issued: int = 0

    @property
    def email(self) -> str:
        """The account's address."""
        return f"{self.name}@sandbox.example"


@dataclass(kw_only=True)
class Team:
    """A participant team; members are primary keys of users, the first of whom created it."""

    pk: int
    name: str
    members: list[int]


@dataclass(kw_only=True)
class Phase:
    """A challenge phase with its one split."""

    pk: int
    split_pk: int
    dataset_split_pk: int
    settings: PhaseSettings
    start_date: datetime
    end_date: datetime
    is_submission_paused: bool = False


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """The user, the team and the phase of a submission."""

    phase: Phase
    team: Team
    user: User


Submission = dict[str, Any]
"""A submission by EvalAI's names for its fields; files are paths under /media/."""
NEW: Submission = {
    "status": "submitted",
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


@dataclass(kw_only=True)
class Upload:
    """A large upload in progress: the expected number of parts, and those received so far, by number."""

    submission: int
    path: str
    count: int
    parts: dict[int, bytes] = field(default_factory=dict)


class World:
    """The state of one sandbox. Readers and writers must hold ``lock``."""

    def __init__(self, settings: SandboxSettings, clock: Clock, rng: random.Random) -> None:
        self.settings = settings
        self.clock = clock
        self.lock = threading.RLock()
        self.journal = Journal()
        self.throttle = Throttle(settings.throttle_per_minute)
        self.queue = Queue(
            visibility_timeout_s=settings.visibility_timeout_s,
            retention_s=settings.retention_s,
            fifo=settings.fifo,
            seed=settings.seed,
            faults=settings.faults.queue if settings.faults else QueueFaults(),
            rng=rng,
        )
        self.media_url = ""
        self.media: dict[str, bytes] = {}
        self.signatures: dict[str, int] = {}  # files whose addresses have a signature that expires
        self.start_date = clock.now() - timedelta(days=30)
        self.end_date = clock.now() + timedelta(days=335)
        self.approved = settings.approved
        self.users: dict[int, User] = {}
        self.teams: dict[int, Team] = {}
        self.submissions: dict[int, Submission] = {}
        self.rows: dict[tuple[int, int], dict[str, Any]] = {}  # leaderboard rows by submission and split
        self.uploads: dict[str, Upload] = {}
        first = settings.pk_offset
        self.phases = {
            first + 11 + i: Phase(
                pk=first + 11 + i,
                split_pk=first + 31 + i,
                dataset_split_pk=first + 51 + i,
                settings=phase,
                start_date=phase.start_date or self.start_date,
                end_date=phase.end_date or self.end_date,
            )
            for i, phase in enumerate(settings.phases)
        }
        self.hosts = {self.add_user(name).pk for name in ("host", "cohost")}
        self.host_team_pk = first + 401
        self.tells_hosts = True  # whether the server responds to requests about the host team
        self.add_user("otherhost")
        self.add_team(settings.host_team, ("host",))
        for name in (*settings.outsiders, *settings.unverified):
            self.add_user(name)
        for team in settings.teams:
            self.add_team(team.name, team.members)

    # Accounts ---------------------------------------------------------------------------------

    def add_user(self, name: str) -> User:
        """Return the user with a name, who is created if necessary."""
        for user in self.users.values():
            if user.name == name:
                return user
        token = hashlib.sha1(f"{self.settings.seed}/user/{name}".encode(), usedforsecurity=False).hexdigest()
        user = User(
            pk=self.settings.pk_offset + 501 + len(self.users),
            name=name,
            verified=name not in self.settings.unverified,
            hex_token=token,
            hex_created=self.clock.now(),
        )
        self.users[user.pk] = user
        return user

    def add_team(self, name: str, members: tuple[str, ...] = ()) -> Team:
        """Create a team; without members it gets one with a name derived from the team's."""
        if not members:
            members = (re.sub(r"\W+", "-", name.lower(), flags=re.ASCII).strip("-") + f"-{len(self.teams)}",)
        team = Team(
            pk=self.settings.pk_offset + 201 + len(self.teams),
            name=name,
            members=[self.add_user(member).pk for member in members],
        )
        self.teams[team.pk] = team
        return team

    def user(self, name: str) -> User:
        """Return the user with a name.

        Raises:
            LookupError: If there is none.
        """
        for user in self.users.values():
            if user.name == name:
                return user
        raise LookupError(f"The sandbox has no user {name!r}.")

    def team(self, name: str) -> Team:
        """Return the team with a name, or the team of the user with that name.

        Raises:
            LookupError: If there is none.
        """
        for team in self.teams.values():
            if name == team.name or name in (self.users[pk].name for pk in team.members):
                return team
        raise LookupError(f"The sandbox has no team {name!r}.")

    def team_of(self, user: User) -> Team | None:
        """Return the team with which a user takes part."""
        return next((team for team in self.teams.values() if user.pk in team.members), None)

    def submitting_team(self, user: User) -> Team | None:
        """Return the team with which a user submits; a host without a team gets one, as at EvalAI."""
        team = self.team_of(user)
        if team is None and self.is_host(user):
            team = self.add_team(f"Host_{len(self.teams) + 1}_Team", (user.name,))
        return team

    def is_host(self, user: User | None) -> bool:
        """Return whether a user is a host or cohost of the challenge."""
        return user is not None and user.pk in self.hosts

    # The challenge ----------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """Whether the challenge has started and not ended."""
        return self.start_date <= self.clock.now() < self.end_date

    def is_open(self, phase: Phase) -> bool:
        """Return whether the challenge and a phase are both active."""
        return self.is_active and phase.start_date <= self.clock.now() < phase.end_date

    def phase(self, codename: str) -> Phase:
        """Return the phase with a codename.

        Raises:
            LookupError: If there is none.
        """
        for phase in self.phases.values():
            if phase.settings.codename == codename:
                return phase
        raise LookupError(f"The sandbox has no phase {codename!r}.")

    def phase_of_split(self, split_pk: int) -> Phase | None:
        """Return the phase of a challenge phase split."""
        return next((phase for phase in self.phases.values() if phase.split_pk == split_pk), None)

    # Submissions ------------------------------------------------------------------------------

    def submission(self, value: Any) -> Submission:
        """Return a submission as EvalAI's writing views do.

        Raises:
            Breakdown: If the value is not an integer.
            Refusal: 404 if there is no such submission.
        """
        try:
            pk = None if value is None else int(value)
        except (TypeError, ValueError) as error:
            raise Breakdown("a primary key must be an integer") from error
        if pk is None or pk not in self.submissions:
            raise detail(404, f"Submission {value} does not exist")
        return self.submissions[pk]

    def next_submission_pk(self) -> int:
        """Return the primary key for the next submission."""
        return self.settings.pk_offset + 1001 + len(self.submissions)

    def write_row(self, submission_pk: int, split_pk: int, result: Mapping[str, float]) -> None:
        """Create or overwrite a submission's row on a split; rows are in the order in which they were last written."""
        key = (submission_pk, split_pk)
        row = self.rows.pop(key, {"id": self.settings.pk_offset + 9001 + len(self.rows)})
        self.rows[key] = row | {"submission": submission_pk, "split": split_pk, "result": dict(result)}

    def effect(self, name: str, submission: int | None = None, **details: Any) -> None:
        """Record a change of state in the journal."""
        self.journal.write("effect", at=self.clock.now(), name=name, submission=submission, detail=details)

    # Files ------------------------------------------------------------------------------------

    def store(self, phase_pk: int, submission_pk: int, number: int, suffix: str, content: bytes) -> str:
        """Store a file under a random name, truncated as EvalAI truncates long ones, and return its path.

        The name depends only on the seed, the submission and the number, so two sandboxes with the same history use the same names.
        """
        seed = f"{self.settings.seed}/{submission_pk}/{number}"
        digest = hashlib.sha256(seed.encode()).digest()
        folder = f"submission_files/challenge_{self.settings.challenge}/phase_{phase_pk}/submission_{submission_pk}"
        root = str(uuid.UUID(bytes=digest[:16], version=4))
        path = f"{folder}/{root}{suffix}"
        if len(path) > MAX_PATH:
            tail = f"_{digest.hex()[-7:]}{suffix}"
            keep = max(1, MAX_PATH - len(folder) - 1 - len(tail))
            path = f"{folder}/{root[:keep]}{tail}"
        self.media[path] = content
        return path

    def url(self, path: str | None) -> str | None:
        """Return the absolute address of a stored file."""
        if path is None:
            return None
        query = f"?signature={self.signatures[path]}" if path in self.signatures else ""
        return f"{self.media_url}/media/{path}{query}"


def last_suffix(name: str) -> str:
    """Return the last suffix of a file name, which is all that EvalAI keeps of it."""
    return PurePosixPath(name).suffix
