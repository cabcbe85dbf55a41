"""The initial content of a sandbox: one challenge with its phases, users, teams and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from worker.sandbox.faults import FaultPlan

UNLIMITED = 1_000_000


@dataclass(frozen=True, kw_only=True)
class PhaseSettings:
    """One challenge phase with its one dataset split.

    Limits are those of EvalAI's phase form. ``max_concurrent`` is 3 at EvalAI; here it has no effect unless a test sets it.
    """

    codename: str
    name: str = ""
    split: str = ""
    metrics: tuple[str, ...] = ("q_mean",)
    max_per_day: int = UNLIMITED
    max_per_month: int = UNLIMITED
    max_total: int = UNLIMITED
    max_concurrent: int = UNLIMITED
    start_date: datetime | None = None  # those of the challenge, unless set
    end_date: datetime | None = None
    is_public: bool = True
    is_submission_public: bool = True
    leaderboard_public: bool = True
    disable_logs: bool = False
    partial_evaluation: bool = False
    visibility: int = 3  # 1 host, 2 owner and host, 3 public
    by_latest: bool = False  # after every import, whatever the bundle says
    show_execution_time: bool = False
    decimals: int = 3
    descending: bool = True
    show_scores: bool = True
    file_types: str = ".csv, .gz, .zip, .parquet, .npz"
    one_public: bool = False

    @property
    def title(self) -> str:
        """The phase's name as people see it."""
        return self.name or f"{self.codename.capitalize()} phase"

    @property
    def split_codename(self) -> str:
        """The dataset split's codename, by default ``<phase>_split``."""
        return self.split or f"{self.codename}_split"


@dataclass(frozen=True, kw_only=True)
class TeamSettings:
    """A participant team and the user names of its members, the first of whom created it."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SandboxSettings:
    """All settings of a sandbox.

    ``host`` is always a host and the only member of the participant team ``host_team``. ``cohost`` is the second host, who gets a team
    ``Host_<number>_Team`` with the first submission. ``otherhost`` hosts another challenge. Primary keys of different kinds differ, so that
    a client that confuses them fails.
    """

    title: str = "Sandbox challenge"
    challenge: int = 7
    queue: str = "sandbox-queue"
    phases: tuple[PhaseSettings, ...] = (PhaseSettings(codename="dev"), PhaseSettings(codename="eval"))
    teams: tuple[TeamSettings, ...] = ()
    outsiders: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    host_team: str = "Host Participant Team"
    pk_offset: int = 0
    visibility_timeout_s: float = 30.0
    retention_s: float = 4 * 86400.0
    throttle_per_minute: int = 60
    fifo: bool = False
    remote_evaluation: bool = True
    published: bool = True
    docker_based: bool = False
    approved: bool = True
    manual_approval: bool = False
    participants_rerun: bool = False
    shared_queue: bool = False  # another challenge has a queue of the same name, on which EvalAI fails
    seed: int = 0
    host: str = "127.0.0.1"
    port: int = 0
    media_port: int = 0
    faults: FaultPlan | None = None


def from_challenge(configuration: Mapping[str, Any], **changes: Any) -> SandboxSettings:
    """Return settings that match a worker's challenge configuration, as read from its YAML file.

    Title, primary key, queue, phases, splits and metrics are copied, so that the same file can be rehearsed with only the server changed.
    """
    evalai = configuration.get("evalai") or {}
    phases = tuple(
        PhaseSettings(
            codename=str(codename),
            split=str((phase or {}).get("split", "")),
            metrics=(str((phase or {}).get("metric", "q_mean")),),
        )
        for codename, phase in (configuration.get("phases") or {}).items()
    )
    known: dict[str, Any] = {"host_team": "Host_1_Team"}
    if title := (configuration.get("challenge") or {}).get("title"):
        known["title"] = str(title)
    if evalai.get("challenge"):  # 0 until it has a number
        known["challenge"] = int(evalai["challenge"])
    if evalai.get("queue"):
        known["queue"] = str(evalai["queue"])
    if phases:
        known["phases"] = phases
    return SandboxSettings(**{**known, **changes})
