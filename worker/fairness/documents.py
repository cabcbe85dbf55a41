"""Published documents: strict models with which they are both written and read, so that writer and reader cannot differ.

A missing, unknown or repeated key and an impossible value are errors. Nothing has a default, and an absent value is written as null.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
)

from scoring.errors import OrganizerError


def _moment(value: object) -> datetime:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ValueError("not a time with a time zone")
    return moment


Moment = Annotated[datetime, BeforeValidator(_moment), PlainSerializer(lambda moment: moment.isoformat())]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Signature = Annotated[str, Field(pattern="^[0-9a-f]{128}$")]

T = TypeVar("T")


class Document(BaseModel):
    """A published document, or a part of one."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    def to_json(self) -> dict[str, Any]:
        """Return it as it is published, hashed and signed."""
        return self.model_dump(mode="json")

    def file_text(self) -> str:
        """Return the text of its file."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"


class Malformed(ValueError):
    """A document is not what it must be; the message says where and why."""


def read(form: type[T], content: bytes | str, where: str) -> T:
    """Read a document.

    Args:
        form: Its model, or a list of models.
        content: The JSON.
        where: Its path, for the message.

    Raises:
        Malformed: If it is not exactly such a document.
    """
    parsed(content, where)
    try:
        return TypeAdapter(form).validate_json(content)
    except ValidationError as error:
        raise Malformed(_message(error, where)) from None


def parsed(content: bytes | str, where: str) -> Any:
    """Return a JSON value.

    Raises:
        Malformed: If it is not JSON, or a key in it occurs twice.
    """
    try:
        return json.loads(content, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{where}: it is not valid JSON ({error})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys are all different; JSON readers would otherwise use the last of equal keys."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key occurs twice")
    return values


def _message(error: ValidationError, where: str) -> str:
    """Return where the first fault is and what it is, such as ``commitment.json, entry 2: made_at: is missing``."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = list(fault["loc"])
    if place and isinstance(place[0], int):
        where, place = f"{where}, entry {place[0] + 1}", place[1:]
    what = {"missing": "is missing", "extra_forbidden": "is unknown"}.get(fault["type"], fault["msg"])
    return ": ".join([where, *([".".join(map(str, place))] if place else []), what])


FORMAT: Literal[1] = 1


def check_format(commitments: bytes | None) -> None:
    """Check that this version reads a repository's format, which is the one of its first commitment.

    Raises:
        OrganizerError: If it does not.
    """
    try:
        stated = json.loads(commitments or b"[]")[0]["format"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return  # the checks report it
    if isinstance(stated, int) and stated != FORMAT:
        raise OrganizerError(
            f"The repository has format {stated}; this version reads format {FORMAT}.",
            cure="Check it with the version of neuco-worker that its commitment.json names.",
            code="verify.format",
        )
