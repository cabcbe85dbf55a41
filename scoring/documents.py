"""Documents: read YAML, say in one sentence what is wrong with a document or an address, and write JSON that is hashed.

All YAML from outside is read here, so that every fault is a ``yaml.YAMLError``; PyYAML itself raises other errors for an impossible date
and for very deep nesting.
"""

from __future__ import annotations

import csv
import errno
import json
import os
import re
import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from scoring.errors import OrganizerError

if TYPE_CHECKING:  # a child process that scores a file must not load them
    import yaml
    from pydantic import BaseModel

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, csv.Error)
"""What reading a document raises if somebody else has given it another form."""
SHOWN = 60  # characters of a value


def read_yaml(text: str | bytes) -> Any:
    """Return the content of a YAML text as plain values; a text cannot create other objects.

    Raises:
        yaml.YAMLError: If it is not YAML, or a mapping has a key twice; ``problem_mark`` has the position, if it is known.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a mapping with a repeated key, of which YAML would silently use the last."""

        def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
            node = super().compose_mapping_node(anchor)
            lines: dict[tuple[str, str], int] = {}
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    first = lines.setdefault((key.tag, key.value), key.start_mark.line + 1)
                    if first != key.start_mark.line + 1:
                        problem = f"the key `{key.value}` is already in line {first}"
                        raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            return node

        def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
            # no path and no text of ours may have these; "\ud800" is half a character
            if isinstance(node.value, str) and re.search("[\0\ud800-\udfff]", node.value):
                raise yaml.MarkedYAMLError(
                    problem="a text has the character NUL, or half a character", problem_mark=node.start_mark
                )
            if node in self.recursive_objects:
                raise yaml.MarkedYAMLError(problem="this contains itself", problem_mark=node.start_mark)
            try:
                return super().construct_object(node, deep=True)  # else, a value is made before its parts
            except (AttributeError, LookupError) as error:  # !!timestamp x, !!bool x
                raise yaml.constructor.ConstructorError(problem_mark=node.start_mark) from error
            except ValueError as error:  # a date such as 2026-99-99
                raise yaml.MarkedYAMLError(
                    problem=f"`{node.value[:SHOWN]}`: {error}".rstrip("."), problem_mark=node.start_mark
                ) from error

    try:
        text = text if isinstance(text, str) else text.decode("utf-8-sig")
        return yaml.load(text, Loader)  # noqa: S506 - a SafeLoader
    except UnicodeDecodeError as error:
        raise yaml.YAMLError(f"line {_line(error)} is not UTF-8; save the file as UTF-8") from error
    except ValueError as error:  # an escape such as \UFFFFFFFF
        raise yaml.YAMLError(str(error)) from error
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error


def yaml_fault(error: yaml.YAMLError, place: object) -> str:
    """Return what is wrong with a text, as a sentence; PyYAML's own words are for programmers."""
    import yaml

    mark = getattr(error, "problem_mark", None)
    where = f"{place}, line {mark.line + 1}, column {mark.column + 1}" if mark else str(place)
    # only our own reader raises these two classes, and not one derived from them
    ours = {yaml.MarkedYAMLError: getattr(error, "problem", ""), yaml.YAMLError: str(error)}
    return f"{where}: {ours.get(type(error), 'this is not valid YAML')}."


def whole(default: int | None, most: int, **options: Any) -> Any:
    """Return a field of a model for a whole number from 1 to a limit; its description says so, for :func:`checked`."""
    from pydantic import Field

    return Field(default, ge=1, le=most, description=f"a whole number from 1 to {most:,}", **options)


def not_a_switch(value: Any) -> Any:
    """Return a value that is to be a number, if it is not true or false, which pydantic takes for 1 and 0.

    Raises:
        ValueError: If it is.
    """
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def expanded(path: str | PathLike[str]) -> Path:
    """Return a path with the home folder in place of ``~``; an unknown ``~USER`` stays, so that it is refused where it is used."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises a RuntimeError if it does not know the user


def contents(path: Path) -> bytes:
    """Return what a file contains.

    Raises:
        OSError: If it cannot be read, or is a device, which may never end.
    """
    if path.is_char_device():
        raise OSError(errno.ENODEV, "it is a device, not a file", str(path))
    return path.read_bytes()


def read_text(path: Path) -> str:
    """Return the text of a file, without a byte order mark.

    Raises:
        OSError: If it cannot be read.
        OrganizerError: If it is not UTF-8.
    """
    try:
        return contents(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OrganizerError(
            f"{path} is not UTF-8 text, first on line {_line(error)}.",
            hint=f"Save it as UTF-8, for example if it is Latin-1: iconv -f latin1 -t utf-8 {shlex.quote(str(path))}",
            code="file.encoding",
        ) from None


def _line(error: UnicodeDecodeError) -> int:
    return error.object.count(b"\n", 0, error.start) + 1


def read_yaml_file(path: Path, *, code: str, hint: str) -> Any:
    """Return the content of a YAML file.

    Args:
        path: The file.
        code: The code of an error about its content.
        hint: Where to get a file to start from.

    Raises:
        OrganizerError: If it cannot be read, or is not UTF-8, empty or not YAML.
    """
    import yaml

    try:
        document = read_yaml(read_text(path))
    except OSError as error:
        raise OrganizerError(f"{path} cannot be read: {error.strerror}.", hint=hint, code=code) from error
    except yaml.YAMLError as error:
        raise OrganizerError(yaml_fault(error, path), hint=f"Correct it. {hint}", code=code) from error
    if document is None:
        raise OrganizerError(f"{path} is empty.", hint=hint, code=code)
    return document


Model = TypeVar("Model", bound="BaseModel")


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
        place: Where it is, for the error, such as ``probe_params``; empty for the arguments of a Python function.
        code: The error's code.
        context: What the model's validators need to know.

    Raises:
        OrganizerError: If a key is unknown or missing, or a value is wrong. The first fault is named.
    """
    from pydantic import ValidationError

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
            hint=f"Did you mean {near[0]}?" if near else f"Remove it; {place} may have: {', '.join(fields)}.",
            code=code,
        )
    named = f"{key} in {place}" if place else f"The argument {key}"
    expected = fault["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if len(keys) == 1:
        expected = fields[key].description or expected
    if fault["type"] == "missing":
        raise OrganizerError(f"{place} has no key {key}.", hint=f"Add {key}: {expected}.", code=code)
    raise OrganizerError(
        f"{named} is {str(fault['input'])[:SHOWN]!r}, not {expected}.",
        hint="Correct the value.",
        code=code,
    )


# One for all, because ``dumps`` would make another one for each of thousands of fields.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(document: Any) -> bytes:
    """Write a JSON value in its one canonical form: sorted keys, no spaces, ASCII; floats in their shortest exact form.

    Raises:
        ValueError: For NaN and infinities, which JSON does not have.
    """
    return _CANONICAL.encode(document).encode()


def is_loopback(host: str | None) -> bool:
    """Return whether a host, as a name or as an address without brackets, means this machine."""
    return (host or "").lower() in {"localhost", "127.0.0.1", "::1"}
