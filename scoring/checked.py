"""Check a document from outside against a pydantic model, and say in one sentence what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from scoring.errors import OrganizerError

Model = TypeVar("Model", bound=BaseModel)
SHOWN = 60  # characters of a value


def checked(
    model: type[Model],
    document: Mapping[Any, Any],
    *,
    place: str,
    code: str,
    context: Mapping[str, Any] | None = None,
) -> Model:
    """Return the document as a model.

    Args:
        model: What it must be; a field's description says what its value must be.
        document: Keys and values.
        place: Where it is, for the error, such as ``probe_params``.
        code: The error's code.
        context: What the model's validators need to know.

    Raises:
        OrganizerError: If a key is unknown or missing, or a value is wrong. The first fault is named.
    """
    try:
        return model.model_validate(
            {str(key): value for key, value in document.items()}, context=dict(context or {})
        )
    except ValidationError as error:
        fault = error.errors()[0]
    keys = [str(part) for part in fault["loc"] if str(part).isidentifier()] or [str(fault["loc"][0])]
    key, fields = ".".join(keys), model.model_fields
    if fault["type"] == "extra_forbidden":
        near = get_close_matches(key, fields, n=1)
        raise OrganizerError(
            f"{place} has the unknown key {key!r}.",
            cure=f"Did you mean {near[0]}?" if near else f"Remove it; {place} may have: {', '.join(fields)}.",
            code=code,
        )
    expected = fault["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if len(keys) == 1:
        expected = fields[key].description or expected
    if fault["type"] == "missing":
        raise OrganizerError(f"{place} has no key {key}.", cure=f"Add {key}: {expected}.", code=code)
    raise OrganizerError(
        f"{key} in {place} is {str(fault['input'])[:SHOWN]!r}, not {expected}.",
        cure="Correct the value.",
        code=code,
    )
