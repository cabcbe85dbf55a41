"""The initial content of a sandbox: a challenge with its phases and teams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scoring.inputs.formats import SUFFIXES

UNLIMITED = 1_000_000
CHALLENGE: Mapping[str, Any] = {
    "published": True,
    "approved_by_admin": True,
    "manual_participant_approval": False,
    "is_docker_based": False,
    "remote_evaluation": True,
    "allow_participants_resubmissions": False,
    "allow_resuming_submissions": True,
    "allow_host_cancel_submissions": False,
    "allow_cancel_running_submissions": False,
    "is_static_dataset_code_upload": False,
    "use_fifo_sqs": False,
    "is_registration_open": True,
    "is_submission_paused": False,
    "is_frozen": False,
    "is_approval_requested": False,
    "is_disabled": False,  # in no answer: a disabled challenge is refused instead
    "anonymous_leaderboard": False,
    "allowed_email_domains": [],
    "blocked_email_domains": [],
    "banned_email_ids": [],
}
"""EvalAI's fields of a challenge that a test may set to something else."""
PHASE: Mapping[str, Any] = {
    "leaderboard_public": True,
    "max_submissions_per_day": UNLIMITED,
    "max_submissions_per_month": UNLIMITED,
    "max_submissions": UNLIMITED,
    "max_concurrent_submissions_allowed": UNLIMITED,  # 3 at EvalAI
    "is_public": True,
    "allowed_submission_file_types": ", ".join(SUFFIXES),
    "is_restricted_to_select_one_submission": False,
    "is_submission_public": True,
    "is_partial_submission_evaluation_enabled": False,
    "is_submission_paused": False,
    "disable_logs": False,
    "allowed_email_ids": [],
}
"""EvalAI's fields of a phase, likewise."""
SPLIT: Mapping[str, Any] = {
    "visibility": 3,  # 1 host, 2 owner and host, 3 public
    "leaderboard_decimal_precision": 3,
    "is_leaderboard_order_descending": True,
    "show_leaderboard_by_latest_submission": False,  # after every import, whatever the bundle says
    "show_execution_time": False,
    "show_scores_on_leaderboard": True,
}
"""EvalAI's fields of a phase split, likewise."""


@dataclass(frozen=True, kw_only=True)
class PhaseSettings:
    """One challenge phase with its one dataset split.

    ``fields`` are those of ``PHASE`` and ``SPLIT`` that differ. At first, the phase has the challenge's dates. ``sort_ascending`` is in the
    metadata of the leaderboard's schema, where it decides; None if the schema has no metadata.
    """

    codename: str
    name: str = ""
    split: str = ""
    metrics: tuple[str, ...] = ("q_mean",)
    sort_ascending: bool | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def split_codename(self) -> str:
        """The dataset split's codename, by default ``<phase>_split``."""
        return self.split or f"{self.codename}_split"


@dataclass(frozen=True, kw_only=True)
class SandboxSettings:
    """All settings of a sandbox.

    ``host`` is always a host and the only member of the participant team ``host_team``. ``cohost`` is the second host, who gets a team
    ``Host_<number>_Team`` with the first submission. ``otherhost`` hosts another challenge, whose phase is ``elsewhere``. ``teams`` are
    participant teams with the user names of their members. ``fields`` are those of ``CHALLENGE`` that differ. Primary keys of different
    kinds differ, so that a client that confuses them fails. The files have the port after ``port``; with 0, both are free ones.
    """

    title: str = "Sandbox challenge"
    challenge: int = 7
    queue: str = "sandbox-queue"
    phases: tuple[PhaseSettings, ...] = (PhaseSettings(codename="dev"), PhaseSettings(codename="eval"))
    teams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    host_team: str = "Host Participant Team"
    fields: Mapping[str, Any] = field(default_factory=dict)
    visibility_timeout_s: float = 30.0
    throttle_per_minute: int = 60
    page_size: int = 150  # of a phase's listing of submissions
    shared_queue: bool = False  # another challenge has a queue of the same name, on which EvalAI fails
    port: int = 0


def from_challenge(configuration: Mapping[str, Any], **changes: Any) -> SandboxSettings:
    """Return settings that match a worker's challenge configuration.

    Title, primary key, queue, phases, splits and metrics are copied, so that the same file can be rehearsed with only the server changed.
    """
    evalai = configuration["evalai"]
    phases = tuple(
        PhaseSettings(
            codename=codename, split=phase["split"], metrics=(phase["metric"],), sort_ascending=False
        )
        for codename, phase in configuration["phases"].items()
    )
    copied = {
        "title": configuration["challenge"]["title"],
        "challenge": evalai["challenge"] or SandboxSettings.challenge,  # there may be no number yet
        "queue": evalai["queue"],
        "host_team": "Host_1_Team",
        "phases": phases,
    }
    return SandboxSettings(**copied | changes)
