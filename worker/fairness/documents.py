"""How published documents are read, and how they are hashed.

A missing, unknown or repeated key and an impossible value are errors. Nothing has a default, and an absent value is written as null.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
)

from scoring.documents import UNREADABLE
from scoring.errors import OrganizerError
from scoring.protocol import framed


def _moment(value: object) -> datetime:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime) or moment.utcoffset() != timedelta():  # reports show no time zone
        raise ValueError("not a time in UTC")
    return moment


Moment = Annotated[datetime, BeforeValidator(_moment), PlainSerializer(lambda moment: moment.isoformat())]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Signature = Annotated[str, Field(pattern="^[0-9a-f]{128}$")]

T = TypeVar("T")


NONCE_BYTES = 32


def digest(domain: str, *parts: bytes) -> str:
    """Hash length-prefixed parts under a domain, so that no two kinds of commitment have the same input; SHA-256 in hex."""
    return hashlib.sha256(framed((f"neuco-worker/{domain}".encode(), *parts))).hexdigest()


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
    except UNREADABLE:
        return  # the checks report it
    if isinstance(stated, int) and stated != FORMAT:
        raise OrganizerError(
            f"The repository has format {stated}; this version reads format {FORMAT}.",
            hint="Check it with the version of neuco-worker that its commitment.json names.",
            code="verify.format",
        )
