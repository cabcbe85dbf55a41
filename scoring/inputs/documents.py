"""Read YAML documents that people wrote or that came from elsewhere.

All such texts are read here, so that every fault is a ``yaml.YAMLError``; PyYAML itself raises other errors for an impossible date and for
very deep nesting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml import Node


def read_yaml(text: str | bytes) -> Any:
    """Return the content of a YAML text as plain values; a text cannot create other objects.

    Raises:
        yaml.YAMLError: If it is not YAML; ``problem_mark`` has the position, if it is known.
    """
    import yaml

    try:
        return yaml.safe_load(text)
    except ValueError as error:  # a date such as 2026-99-99
        raise yaml.YAMLError(str(error)) from error
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error


def with_values(text: str, values: Mapping[tuple[str, ...], str]) -> str:
    """Return a YAML text with some values replaced; the comments, order and quotes of everything else stay.

    A section that is written once and used twice (by an anchor) cannot be edited in place; the result then has the right values, but no
    comments.

    Args:
        text: A mapping.
        values: New values by their path of keys. A value that does not change keeps its spelling.
    """
    import yaml

    wanted = _unshared(read_yaml(text))
    places = []
    for path, value in values.items():
        section = wanted
        for key in path[:-1]:
            section = section[key]
        if section.get(path[-1]) != value:
            section[path[-1]] = value
            places.append((_place(yaml.compose(text, Loader=yaml.SafeLoader), path), value))
    edited = text
    for (start, end), value in sorted(places, reverse=True):
        written = yaml.safe_dump(value, width=2**31, allow_unicode=True).splitlines()[0]
        edited = f"{edited[:start]}{'' if end > start else ' '}{written}{edited[end:]}"
    try:
        faithful = read_yaml(edited) == wanted
    except yaml.YAMLError:
        faithful = False
    dumped: str = edited if faithful else yaml.safe_dump(wanted, sort_keys=False, allow_unicode=True)
    return dumped


def _unshared(value: Any) -> Any:
    """Copy a document without shared parts, so that each of them can be changed alone."""
    if isinstance(value, dict):
        return {key: _unshared(one) for key, one in value.items()}
    return [_unshared(one) for one in value] if isinstance(value, list) else value


def _place(node: Node | None, path: tuple[str, ...]) -> tuple[int, int]:
    """Return where the value at a path of keys begins and ends in the text; (0, 0) if it is not there."""
    import yaml

    for key in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for name, value in pairs if name.value == key), None)
    return (0, 0) if node is None else (node.start_mark.index, node.end_mark.index)
