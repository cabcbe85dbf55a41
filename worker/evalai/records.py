"""What EvalAI tells us, as values.

Answers are read defensively: primary keys come as integers or as strings, keys vary with EvalAI's version, unknown ones are ignored.
Only what cannot be done without is required; it comes from the server, while the rest may have been edited by participants.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from worker.evalai.errors import Unintelligible

LARGEST_INTEGER = 2**63 - 1  # what a database column holds
_DIGITS = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message of the queue: a hint that a submission wants attention, nothing more.

    ``phase_pk`` and ``challenge_pk`` are None when the producer left them out.
    """

    submission_pk: int
    phase_pk: int | None
    challenge_pk: int | None
    receipt_handle: str


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A submission as its host reads it.

    ``status``, ``phase_pk``, ``input_file`` and ``is_public`` can be edited by participants at any time. ``ignored`` means soft-deleted.
    ``execution_time_s`` is None until start and end are known; it can be negative. ``created_by`` is the user who sent it, by number.
    """

    pk: int
    status: str
    phase_pk: int
    team_pk: int
    team_name: str
    created_by: int | None
    input_file: str | None
    submitted_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    rerun_resumed_at: datetime | None
    execution_time_s: float | None
    method_name: str
    is_public: bool
    is_flagged: bool
    is_baseline: bool
    ignored: bool
    stdout_file: str | None
    stderr_file: str | None
    result_file: str | None


@dataclass(frozen=True, kw_only=True)
class Challenge:
    """The challenge behind a queue. ``host_team_pk`` is the team of its hosts."""

    pk: int
    title: str
    remote_evaluation: bool
    is_active: bool
    start_date: datetime | None
    end_date: datetime | None
    allow_resuming: bool
    use_fifo: bool
    is_docker_based: bool
    published: bool
    host_team_pk: int | None


@dataclass(frozen=True, kw_only=True)
class Account:
    """A user of EvalAI."""

    pk: int
    name: str


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A challenge phase. ``disable_logs`` is ours to honour: EvalAI stores logs all the same."""

    pk: int
    codename: str
    name: str
    challenge_pk: int
    end_date: datetime | None
    is_active: bool
    is_public: bool
    is_submission_public: bool
    leaderboard_public: bool
    disable_logs: bool
    partial_evaluation: bool
    is_submission_paused: bool
    max_concurrent: int | None
    allowed_file_types: str


@dataclass(frozen=True, kw_only=True)
class PhaseSplit:
    """A phase on a dataset split, with the labels that a result must have. ``visibility`` is 1 host, 2 owner and host, 3 public."""

    pk: int
    phase_pk: int
    dataset_split_pk: int
    dataset_split_name: str
    visibility: int
    labels: tuple[str, ...]
    order_by: str
    by_latest: bool
    show_execution_time: bool


@dataclass(frozen=True, kw_only=True)
class DatasetSplit:
    """A dataset split, the only place where its codename stands."""

    pk: int
    codename: str
    name: str


class Fields:
    """Typed reading of one JSON object; ``what`` names it in errors."""

    def __init__(self, document: Any, what: str) -> None:
        if not isinstance(document, dict):
            raise Unintelligible(f"EvalAI answered with something that is no {what}.")
        self._document: Mapping[str, Any] = document
        self._what = what

    def missing(self, name: str) -> Unintelligible:
        """Build the error for a field that is absent or of the wrong kind."""
        return Unintelligible(f"EvalAI answered with a {self._what} without a usable “{name}”.")

    def raw(self, name: str) -> Any:
        """Return a field as it is, None when it is absent."""
        return self._document.get(name)

    def optional_integer(self, name: str) -> int | None:
        """Return an integer, also when it comes as a string of digits; None when it is neither."""
        value = self._document.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER:
            return value
        if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
            return int(value)
        return None

    def integer(self, name: str) -> int:
        """Return an integer that must be there."""
        value = self.optional_integer(name)
        if value is None:
            raise self.missing(name)
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text, without what no database and no page can hold; None when it is no text."""
        value = self._document.get(name)
        return clean(value) if isinstance(value, str) else None

    def text(self, name: str) -> str:
        """Return a text that must be there."""
        value = self.optional_text(name)
        if not value:
            raise self.missing(name)
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean."""
        value = self._document.get(name)
        return value if isinstance(value, bool) else default

    def optional_moment(self, name: str) -> datetime | None:
        """Return an aware date and time; None when there is none that can be read."""
        value = self._document.get(name)
        if not isinstance(value, str):
            return None
        try:
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):
            return None

    def moment(self, name: str) -> datetime:
        """Return a date and time that must be there."""
        value = self.optional_moment(name)
        if value is None:
            raise self.missing(name)
        return value

    def number(self, name: str) -> float | None:
        """Return a finite number, also when it comes as a string; EvalAI writes the word "None" for no number."""
        return finite(self._document.get(name))


def finite(value: Any) -> float | None:
    """Return a finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def clean(text: str) -> str:
    """Replace lone surrogates and NUL, which neither UTF-8 nor PostgreSQL can hold."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")


def read_message(document: Any) -> Message | None:
    """Read an answer of the queue; None when it holds no message."""
    fields = Fields(document, "queue answer")
    if fields.raw("body") is None:
        return None
    body = Fields(fields.raw("body"), "message")
    return Message(
        submission_pk=body.integer("submission_pk"),
        phase_pk=body.optional_integer("phase_pk"),
        challenge_pk=body.optional_integer("challenge_pk"),
        receipt_handle=fields.text("receipt_handle"),
    )


def read_submission(document: Any) -> Submission:
    """Read a submission in the shape of the endpoint for one and of the listing of a challenge."""
    fields = Fields(document, "submission")
    return Submission(
        pk=fields.integer("id"),
        status=fields.text("status"),
        phase_pk=fields.integer("challenge_phase"),
        team_pk=fields.integer("participant_team"),
        team_name=fields.optional_text("participant_team_name") or "",
        created_by=fields.optional_integer("created_by"),
        input_file=fields.optional_text("input_file"),
        submitted_at=fields.moment("submitted_at"),
        started_at=fields.optional_moment("started_at"),
        completed_at=fields.optional_moment("completed_at"),
        rerun_resumed_at=fields.optional_moment("rerun_resumed_at"),
        execution_time_s=fields.number("execution_time"),
        method_name=fields.optional_text("method_name") or "",
        is_public=fields.flag("is_public"),
        is_flagged=fields.flag("is_flagged"),
        is_baseline=fields.flag("is_baseline"),
        ignored=fields.flag("ignore_submission"),
        stdout_file=fields.optional_text("stdout_file"),
        stderr_file=fields.optional_text("stderr_file"),
        result_file=fields.optional_text("submission_result_file"),
    )


def read_challenge(document: Any) -> Challenge:
    """Read a challenge."""
    fields = Fields(document, "challenge")
    creator = fields.raw("creator")
    team = Fields(creator if isinstance(creator, dict) else {"id": creator}, "host team")
    return Challenge(
        pk=fields.integer("id"),
        title=fields.optional_text("title") or "",
        remote_evaluation=fields.flag("remote_evaluation"),
        is_active=fields.flag("is_active"),
        start_date=fields.optional_moment("start_date"),
        end_date=fields.optional_moment("end_date"),
        allow_resuming=fields.flag("allow_resuming_submissions"),
        use_fifo=fields.flag("use_fifo_sqs"),
        is_docker_based=fields.flag("is_docker_based"),
        published=fields.flag("published", default=True),
        host_team_pk=team.optional_integer("id"),
    )


def read_account(document: Any) -> Account:
    """Read the account of a token."""
    fields = Fields(document, "account")
    return Account(pk=fields.integer("pk"), name=fields.text("username"))


def read_members(document: Any) -> frozenset[str]:
    """Read the names of a host team's members, its founder among them."""
    fields = Fields(document, "host team")
    listed = fields.raw("members")
    if not isinstance(listed, list):
        raise fields.missing("members")
    names = {Fields(member, "host").text("user") for member in listed}
    founder = fields.optional_text("created_by")
    return frozenset(names | {founder} if founder else names)


def read_author(document: Any) -> tuple[int, str]:
    """Read who sent a submission, from the listing of a phase: (submission, user name)."""
    fields = Fields(document, "submission")
    return fields.integer("id"), fields.text("created_by")


def read_phase(document: Any) -> Phase:
    """Read a challenge phase."""
    fields = Fields(document, "phase")
    return Phase(
        pk=fields.integer("id"),
        codename=fields.text("codename"),
        name=fields.optional_text("name") or "",
        challenge_pk=fields.integer("challenge"),
        end_date=fields.optional_moment("end_date"),
        is_active=fields.flag("is_active"),
        is_public=fields.flag("is_public"),
        is_submission_public=fields.flag("is_submission_public"),
        leaderboard_public=fields.flag("leaderboard_public"),
        disable_logs=fields.flag("disable_logs"),
        partial_evaluation=fields.flag("is_partial_submission_evaluation_enabled"),
        is_submission_paused=fields.flag("is_submission_paused"),
        max_concurrent=fields.optional_integer("max_concurrent_submissions_allowed"),
        allowed_file_types=fields.optional_text("allowed_submission_file_types") or "",
    )


def read_phase_split(document: Any) -> PhaseSplit:
    """Read a challenge phase split."""
    fields = Fields(document, "phase split")
    schema = fields.raw("leaderboard_schema")
    labels = schema.get("labels") if isinstance(schema, dict) else None
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise fields.missing("leaderboard_schema")
    return PhaseSplit(
        pk=fields.integer("id"),
        phase_pk=fields.integer("challenge_phase"),
        dataset_split_pk=fields.integer("dataset_split"),
        dataset_split_name=fields.optional_text("dataset_split_name") or "",
        visibility=fields.optional_integer("visibility") or 0,
        labels=tuple(labels),
        order_by=str(schema.get("default_order_by", "")),
        by_latest=fields.flag("show_leaderboard_by_latest_submission"),
        show_execution_time=fields.flag("show_execution_time"),
    )


def read_dataset_split(document: Any) -> DatasetSplit:
    """Read a dataset split."""
    fields = Fields(document, "dataset split")
    return DatasetSplit(
        pk=fields.integer("id"), codename=fields.text("codename"), name=fields.optional_text("name") or ""
    )
