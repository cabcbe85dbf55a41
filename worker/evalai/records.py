"""EvalAI's answers, as values.

Answers are parsed defensively: primary keys come as integers or as strings, keys vary with EvalAI's version, unknown keys are ignored.
Only fields without a default are required; these come from the server, while participants may have edited the others. A field that
cannot be parsed counts as absent. Settings of the challenge that only the doctor compares are not parsed here, so that none has a default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import AliasPath, BeforeValidator, Field, TypeAdapter, ValidationError

from worker.evalai.errors import ODD_ANSWER, Unintelligible

LARGEST_INTEGER = 2**63 - 1  # the largest that a database column holds
LONGEST_ADDRESS = 1000  # characters
_DIGITS = re.compile(r"-?[0-9]{1,18}")
_Record = TypeVar("_Record")


def integer(value: Any) -> int | None:
    """Return an integer, which may come as a string of digits; None if it is neither, or too large to be stored."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        return int(value)
    usable = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER
    return value if usable else None


def text(value: Any) -> str | None:
    """Return a text without characters that no database and no page can hold; None if it is not a text."""
    return clean(value) if isinstance(value, str) else None


def clean(text: str) -> str:
    """Replace lone surrogates and NUL, which neither UTF-8 nor PostgreSQL can hold."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")


def address(value: Any) -> str | None:
    """Return an address given by a participant; None if it is empty, or longer than EvalAI's own fields."""
    given = (text(value) or "").strip()
    return given if 0 < len(given) <= LONGEST_ADDRESS else None


def moment(value: Any) -> datetime | None:
    """Return an aware date and time; None if there is none that can be parsed."""
    if not isinstance(value, str):
        return None
    try:
        read = datetime.fromisoformat(value)
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


Integer = Annotated[int, BeforeValidator(integer)]
OptionalInteger = Annotated[int | None, BeforeValidator(integer)]
Text = Annotated[str, Field(min_length=1), BeforeValidator(text)]
OptionalText = Annotated[str | None, BeforeValidator(text)]
Words = Annotated[str, BeforeValidator(lambda value: text(value) or "")]
Address = Annotated[str | None, BeforeValidator(address)]
Moment = Annotated[datetime, BeforeValidator(moment)]
OptionalMoment = Annotated[datetime | None, BeforeValidator(moment)]
Flag = Annotated[bool, BeforeValidator(lambda value: value is True)]
UsualFlag = Annotated[bool, BeforeValidator(lambda value: value is not False)]  # assumed unless denied


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message of the queue: it only says that a submission needs attention.

    ``phase_pk`` and ``challenge_pk`` are None if the sender left them out. Only EvalAI's own messages contain ``code_upload``:
    participants can send one about any submission, in which they name any phase of a challenge in which they take part.
    """

    submission_pk: Annotated[Integer, Field(validation_alias=AliasPath("body", "submission_pk"))]
    phase_pk: Annotated[OptionalInteger, Field(validation_alias=AliasPath("body", "phase_pk"))] = None
    challenge_pk: Annotated[OptionalInteger, Field(validation_alias=AliasPath("body", "challenge_pk"))] = None
    code_upload: Annotated[
        bool | None, Field(validation_alias=AliasPath("body", "is_static_dataset_code_upload_submission"))
    ] = None
    receipt_handle: Text

    @property
    def sent_to(self) -> int | None:
        """The phase to which the submission was sent, if EvalAI says so itself."""
        return None if self.code_upload is None else self.phase_pk


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A submission as the challenge's host sees it.

    ``status``, ``phase_pk``, ``input_file``, ``is_public`` and the texts can be edited by participants at any time. ``ignored`` means
    soft-deleted. ``created_by`` is the user who sent it, by number.
    """

    pk: Annotated[Integer, Field(alias="id")]
    status: Text
    phase_pk: Annotated[Integer, Field(alias="challenge_phase")]
    team_pk: Annotated[Integer, Field(alias="participant_team")]
    team_name: Annotated[Words, Field(alias="participant_team_name")] = ""
    created_by: OptionalInteger = None
    input_file: OptionalText = None
    submitted_at: Moment
    method_name: Words = ""
    project_url: Address = None
    publication_url: Address = None
    stdout_file: OptionalText = None
    stderr_file: OptionalText = None
    result_file: Annotated[OptionalText, Field(alias="submission_result_file")] = None
    is_public: Flag = False
    is_flagged: Flag = False
    is_baseline: Flag = False
    ignored: Annotated[Flag, Field(alias="ignore_submission")] = False


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of a participant team."""

    user: Annotated[Text, Field(alias="username")]


@dataclass(frozen=True, kw_only=True)
class Author:
    """The author of a submission, its team and the team's members, all by name, as in the listing of a phase.

    Nobody can write ``number`` and ``made_at``; see :mod:`worker.evalai.numbers`.
    """

    submission_pk: Annotated[Integer, Field(alias="id")]
    user: Annotated[Text, Field(alias="created_by")]
    team: Annotated[Words, Field(alias="participant_team")] = ""
    members: Annotated[tuple[Member, ...], Field(alias="participant_team_members")] = ()
    number: Annotated[OptionalInteger, Field(alias="submission_number")] = None
    made_at: Annotated[OptionalMoment, Field(alias="created_at")] = None

    @property
    def is_member(self) -> bool:
        """Whether the author belongs to the team; believed if EvalAI lists no members."""
        return not self.members or any(member.user == self.user for member in self.members)


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of the listing of a phase."""

    results: tuple[Author, ...]


@dataclass(frozen=True, kw_only=True)
class Described:
    """A thing with a primary key, and everything that EvalAI says of it, unparsed."""

    pk: Annotated[Integer, Field(alias="id")]
    said: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class Challenge(Described):
    """The challenge behind a queue. ``host_team_pk`` is the team of its hosts."""

    title: Words = ""
    host_team_pk: Annotated[
        int | None,
        Field(alias="creator"),
        BeforeValidator(lambda value: integer(value.get("id") if isinstance(value, dict) else value)),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Host:
    """A member of the host team."""

    user: Text


@dataclass(frozen=True, kw_only=True)
class HostTeam:
    """The team of a challenge's hosts, with the name of its founder."""

    members: tuple[Host, ...]
    created_by: OptionalText = None

    @property
    def names(self) -> frozenset[str]:
        """The names of all its members, the founder's among them."""
        founder = {self.created_by} if self.created_by else set()
        return frozenset(founder | {member.user for member in self.members})


@dataclass(frozen=True, kw_only=True)
class Phase(Described):
    """A challenge phase; it counts as open unless EvalAI denies it.

    The worker must honor ``disable_logs`` itself, because EvalAI stores logs all the same.
    """

    codename: Text
    end_date: OptionalMoment = None
    is_active: UsualFlag = True
    is_public: UsualFlag = True
    disable_logs: Flag = False
    is_submission_paused: Flag = False
    max_submissions_per_day: OptionalInteger = None
    max_submissions_per_month: OptionalInteger = None
    max_submissions: OptionalInteger = None


@dataclass(frozen=True, kw_only=True)
class PhaseSplit(Described):
    """A phase on a dataset split, with the labels that a result must have."""

    phase_pk: Annotated[Integer, Field(alias="challenge_phase")]
    dataset_split_pk: Annotated[Integer, Field(alias="dataset_split")]
    labels: Annotated[tuple[str, ...], Field(validation_alias=AliasPath("leaderboard_schema", "labels"))]


@dataclass(frozen=True, kw_only=True)
class DatasetSplit:
    """A dataset split; no other record contains its codename."""

    codename: Text


def parse(kind: type[_Record], document: Any, record: str) -> _Record:
    """Parse one JSON object; ``record`` names it in errors.

    Raises:
        Unintelligible: If it is not an object, or lacks a required field.
    """
    if not isinstance(document, dict):
        raise Unintelligible(f"EvalAI answered with something that is not a {record}.", hint=ODD_ANSWER)
    # None of our keys is lost by this, and pydantic fails on a lone surrogate even in an unknown key.
    fields = {key: value for key, value in document.items() if key.isascii()}
    try:
        parsed: _Record = _adapter(kind).validate_python({**fields, "said": fields})  # type: ignore[arg-type]  # classes are hashable
    except ValidationError as problem:
        place = ".".join(str(part) for part in problem.errors(include_input=False)[0]["loc"])
        raise Unintelligible(
            f"EvalAI answered with a {record} without a usable “{place}”.", hint=ODD_ANSWER
        ) from None
    return parsed


def read_message(document: Any) -> Message | None:
    """Parse an answer of the queue; None if it holds no message."""
    if isinstance(document, dict) and document.get("body") is None:
        return None
    return parse(Message, document, "message of the queue")


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
