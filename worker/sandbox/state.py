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
class Team:
    """A participant team; members are primary keys of users."""

    pk: int
    name: str
    members: list[int]


@dataclass(kw_only=True)
class Phase:
    """A challenge phase with its one split. ``fields`` are those of EvalAI's phase and split that a host sets."""

    pk: int
    split_pk: int
    dataset_split_pk: int
    settings: PhaseSettings
    start_date: datetime
    end_date: datetime
    fields: dict[str, Any]

    @property
    def name(self) -> str:
        """The phase's name as people see it."""
        return self.settings.name or f"{self.settings.codename.capitalize()} phase"


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


class World:
    """The state of one sandbox. Readers and writers must hold ``lock``."""

    def __init__(self, settings: SandboxSettings, clock: Clock, rng: random.Random) -> None:
        self.settings = settings
        self.clock = clock
        self.lock = threading.RLock()
        self.journal = Journal()
        self.throttle = Throttle(settings.throttle_per_minute)
        self.faults = FaultSource(rng)
        self.queue = Queue(settings.visibility_timeout_s, self.faults)
        self.media_url = ""
        self.media: dict[str, bytes] = {}
        self.signatures: dict[str, int] = {}  # files whose addresses have a signature that expires
        self.start_date = clock.now() - timedelta(days=30)
        self.end_date = clock.now() + timedelta(days=335)
        self.fields = {**CHALLENGE, **settings.fields}
        self.users: dict[int, User] = {}
        self.tokens: dict[str, Token] = {}
        self.teams: dict[int, Team] = {}
        self.submissions: dict[int, Submission] = {}
        self.rows: dict[tuple[int, int], dict[str, Any]] = {}  # leaderboard rows by submission and split
        self.phases = {
            11 + i: Phase(
                pk=11 + i,
                split_pk=31 + i,
                dataset_split_pk=51 + i,
                settings=phase,
                start_date=phase.start_date or self.start_date,
                end_date=phase.end_date or self.end_date,
                fields={**PHASE, **SPLIT, **phase.fields},
            )
            for i, phase in enumerate(settings.phases)
        }
        self.hosts = {self.user(name).pk for name in ("host", "cohost")}
        self.host_team_pk = 401
        self.tells_hosts = True  # whether the server responds to requests about the host team
        self.user("otherhost")
        for name, members in {settings.host_team: ("host",), **settings.teams}.items():
            self.add_team(name, members)

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

    def add_team(self, name: str, members: tuple[str, ...] = ()) -> Team:
        """Create a team; without members it gets one with a name derived from the team's."""
        slug = re.sub(r"\W+", "-", name.lower(), flags=re.ASCII).strip("-")
        names = members or (f"{slug}-{len(self.teams)}",)
        team = Team(pk=201 + len(self.teams), name=name, members=[self.user(member).pk for member in names])
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

    def submitting_team(self, user: User) -> Team | None:
        """Return the team with which a user submits; a host without a team gets one, as at EvalAI."""
        team = next((team for team in self.teams.values() if user.pk in team.members), None)
        if team is None and user.pk in self.hosts:
            team = self.add_team(f"Host_{len(self.teams) + 1}_Team", (user.name,))
        return team

    # The challenge ----------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """Whether the challenge has started and not ended."""
        return self.start_date <= self.clock.now() < self.end_date

    def is_open(self, phase: Phase) -> bool:
        """Return whether the challenge and a phase are both active."""
        return self.is_active and phase.start_date <= self.clock.now() < phase.end_date

    def phase(self, codename: str) -> Phase:
        """Return the phase with a codename."""
        return next(phase for phase in self.phases.values() if phase.settings.codename == codename)

    def of(self, team: Team, phase: Phase) -> list[Submission]:
        """Return a team's submissions to a phase, oldest first."""
        key = (team.pk, phase.pk)
        return [s for s in self.submissions.values() if (s["participant_team"], s["challenge_phase"]) == key]

    def effect(self, name: str, submission: int | None = None, **details: Any) -> None:
        """Record a change of state in the journal."""
        self.journal.write("effect", at=self.clock.now(), name=name, submission=submission, detail=details)

    # Files ------------------------------------------------------------------------------------

    def store(self, submission: Submission, name: str, content: bytes) -> str:
        """Store a file of a submission under a random name, which keeps only the last suffix, and return its path.

        The random name depends only on the submission and on the number of its files, so two sandboxes with the same history use the same
        names.
        """
        submission["files_written"] += 1
        root = uuid5(NAMESPACE_OID, f"{submission['id']}/{submission['files_written']}")
        folder = f"challenge_{self.settings.challenge}/phase_{submission['challenge_phase']}/submission_{submission['id']}"
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
