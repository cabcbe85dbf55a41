"""Events: the entries of the register, one model for each kind, committed to so that each can be opened completely or in part.

An event is a set of named values. Each value is hashed with a salt of its own, and the commitment is the hash of these hashes. So a private
entry can be shown to exist without showing whose it is. All salts follow from one nonce, which opens everything.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, PlainSerializer, PlainValidator, model_validator
from pydantic.dataclasses import dataclass

from leaderboard import StatedRules
from leaderboard.documents import Document, Number
from scoring.documents import canonical
from scoring.scorecard import folds_from_json, folds_to_json
from worker.fairness.documents import Hash, Moment, digest

SUBMISSION = "submission"
"""The facts about a submission that decide whether and how it is on a board; a new event follows each change."""
SCORE = "score"
"""The scores of a submission."""
PHASE = "phase"
"""A phase's record, rules and decisions; a new event follows each change."""
TEAM = "team"
"""A team's disqualification, which covers all its submissions in all phases, later ones too; a new event follows each change."""
CHALLENGE = "challenge"
"""An event of the whole challenge, such as a restored backup."""
RESTORED, REWRITTEN = "restored", "rewritten"  # what happened to the whole challenge

Fields = Mapping[str, Any]
"""An event as JSON: what is stored, hashed and published."""


def _folds(value: object) -> array[float]:
    """Store folds compactly, because a list takes four times the memory."""
    if isinstance(value, array):
        return value
    folds: list[Any] = list(value) if isinstance(value, Sequence) else [value]
    scores = [score for score in folds if score is not None]
    # By types, because a challenge has millions of scores.
    if (
        not isinstance(value, Sequence)
        or not {*map(type, scores)} <= {int, float}
        or not all(map(math.isfinite, scores))
    ):
        raise ValueError("not a list of fold scores")
    return array("d", scores if len(scores) == len(folds) else folds_from_json(folds))


Folds = Annotated[Any, PlainValidator(_folds), PlainSerializer(lambda folds: folds_to_json(tuple(folds)))]


class _Kept(Document):
    """A part of the register. The daemon keeps a hundred thousand, so what pydantic and JSON repeat in each is shared.

    All fields are always set, and most texts are hashes and names that come again.
    """

    def model_post_init(self, _: object) -> None:
        """Share the names of the fields that are set, and the texts."""
        shared = _FIELDS.setdefault(type(self), self.__pydantic_fields_set__)
        object.__setattr__(self, "__pydantic_fields_set__", shared)
        for name, value in self.__dict__.items():
            if type(value) is str:
                self.__dict__[name] = sys.intern(value)


_FIELDS: dict[type, set[str]] = {}


class ClosedEvent(_Kept):
    """An event of a private entry, of which only the existence is shown."""

    kind: Literal["submission", "score"]
    phase: str
    at: Moment
    entry: str


class QualifyingEvent(ClosedEvent):
    """An event of a private submission, with the facts that let its team compete in another phase."""

    kind: Literal["submission"]
    team_key: Number | None
    answered: bool
    removed: str | None


class SubmissionFacts(_Kept):
    """What decides, besides its scores, whether and how a submission is on a board: what was seen first, and what was decided since."""

    submission: Number
    team_key: Number | None
    team: str | None
    method: str | None
    project_url: str | None
    publication_url: str | None
    submitted_at: Moment | None
    file: Hash | None
    content: Hash | None
    public_at_first: bool | None
    public: bool | None
    own: bool
    answered: bool
    refused: bool
    removed: str | None
    superseded_by: Number | None


class SubmissionEvent(SubmissionFacts, ClosedEvent):
    """The facts about a submission."""

    kind: Literal["submission"]
    reason: str


_Version = Annotated[Hash, AfterValidator(sys.intern)]


@dataclass(slots=True, kw_only=True, config=ConfigDict(extra="forbid", frozen=True))
class Cell:
    """The scores of a submission on one task: K fold scores, NaN for a failed fold; if test parts repeat, the number of each fold's one.

    It has slots, because a daemon keeps one for each submission and task.
    """

    version: _Version
    row_set: _Version
    test_parts: tuple[Annotated[Number, Field(strict=True)], ...]
    folds: Folds

    @model_validator(mode="after")
    def _one_of_each_fold(self) -> Self:
        if len(self.test_parts) not in (0, len(self.folds)):
            raise ValueError("test_parts and folds differ in length")
        return self


class ScoreEvent(ClosedEvent):
    """The scores of a submission, and the value that its participant was shown."""

    kind: Literal["score"]
    submission: Number
    team_key: Number | None
    public_at_first: bool | None
    own: bool
    content: Hash
    protocol: Hash
    cells: Annotated[dict[str, Cell], Field(min_length=1)]
    q_mean: float | None
    counts: bool | None

    @cached_property
    def versions(self) -> dict[str, str]:
        """Task to version."""
        return {task: cell.version for task, cell in self.cells.items()}


class PhaseFacts(Document):
    """A phase's tasks, protocol and rules, and what the organizers have decided in it."""

    record: Hash
    protocol: Hash
    epsilon: Annotated[float, Field(gt=0)]
    tasks: dict[str, Hash]
    rules: StatedRules
    closed_at: Moment | None


class PhaseEvent(PhaseFacts):
    """A change of a phase."""

    kind: Literal["phase"]
    phase: str
    at: Moment
    reason: str


class TeamEvent(Document):
    """A decision of the organizers about a team.

    Attributes:
        team_key: EvalAI's number of the team.
        disqualified: Whether it is disqualified from now on.
        reason: Why.
    """

    kind: Literal["team"]
    phase: None
    at: Moment
    team_key: Number
    disqualified: bool
    reason: str


class ChallengeEvent(Document):
    """Something that happened to the whole challenge.

    Attributes:
        what: Which of these.
        text: A sentence for people.
    """

    kind: Literal["challenge"]
    phase: None
    at: Moment
    what: Literal["restored", "rewritten"]
    text: str


Event = ClosedEvent | QualifyingEvent | SubmissionEvent | ScoreEvent | PhaseEvent | TeamEvent | ChallengeEvent


def parse(fields: Fields) -> Event:
    """Return an event from its fields, or from those that were opened of it.

    Raises:
        LookupError, ValueError: If the fields are not exactly those of its kind, or a value is not possible.
    """
    return _model(fields).model_validate(dict(fields))


def _model(fields: Fields) -> type[Event]:
    kinds: Mapping[str, type[Event]] = {PHASE: PhaseEvent, TEAM: TeamEvent, CHALLENGE: ChallengeEvent}
    if fields["kind"] in kinds:
        return kinds[fields["kind"]]
    if "submission" in fields:
        return ScoreEvent if fields["kind"] == SCORE else SubmissionEvent
    return QualifyingEvent if "team_key" in fields else ClosedEvent


def salt(nonce: bytes, field: str) -> bytes:
    """Return the salt of one field."""
    return bytes.fromhex(digest("salt", nonce, field.encode()))


def field_hash(field: str, value: Any, salted: bytes) -> str:
    """Hash one field's name and value under its salt."""
    return digest("field", salted, canonical([field, value]))


def commitment(hashes: Mapping[str, str]) -> str:
    """Return the hash of an event from the hashes of its fields."""
    return digest("event", canonical(dict(hashes)))


def commitment_of(fields: Fields, nonce: bytes) -> str:
    """Commit to an event."""
    return commitment({name: field_hash(name, value, salt(nonce, name)) for name, value in fields.items()})


def opened(fields: Fields, nonce: bytes) -> dict[str, Any]:
    """Open all fields of an event."""
    return {"nonce": nonce.hex(), "fields": dict(fields)}


def opened_in_part(fields: Fields, nonce: bytes, form: type[ClosedEvent] = ClosedEvent) -> dict[str, Any]:
    """Open those fields of a private event that this form of it has, and show that it has others."""
    return {
        "open": {
            name: [value, salt(nonce, name).hex()]
            for name, value in fields.items()
            if name in form.model_fields
        },
        "hidden": {
            name: field_hash(name, value, salt(nonce, name))
            for name, value in fields.items()
            if name not in form.model_fields
        },
    }


def read_opening(document: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return an opening's commitment and the fields that it shows.

    Raises:
        LookupError, ValueError, TypeError, AttributeError: If the document has another form.
    """
    if document.keys() not in ({"nonce", "fields"}, {"open", "hidden"}):
        raise ValueError("it is neither a whole opening nor one in part")
    if "nonce" in document:
        fields = dict(document["fields"])
        return commitment_of(fields, bytes.fromhex(document["nonce"])), fields
    shown = {name: value for name, (value, _) in document["open"].items()}
    hashes = {
        name: field_hash(name, value, bytes.fromhex(salted))
        for name, (value, salted) in document["open"].items()
    }
    return commitment({**document["hidden"], **hashes}), shown
