"""Documents: YAML that somebody wrote by hand, or that came from somewhere else.

Every such text goes through here, so that whatever is wrong with it is one kind of error: YAML's own library also lets a date that does not
exist and a nesting without end out as errors of other kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml import Node


def read_yaml(text: str | bytes) -> Any:
    """Return what a YAML text says, in plain values; nothing in it can make objects of other kinds.

    Raises:
        yaml.YAMLError: If it is not YAML; ``problem_mark`` says where, if it is known.
    """
    import yaml

    try:
        return yaml.safe_load(text)
    except ValueError as error:  # a date such as 2026-99-99
        raise yaml.YAMLError(str(error)) from error
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error


def with_values(text: str, values: Mapping[tuple[str, ...], str]) -> str:
    """Return a YAML text with some texts in it replaced; comments, order and quotes of all else stay.

    A section that is written once and used twice cannot be edited so; then the values are right and the comments are lost.

    Args:
        text: A mapping.
        values: By the keys that lead to each from the top. What has that value already is left as it is written.
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
    """Copy a document so that what it uses twice is there twice."""
    if isinstance(value, dict):
        return {key: _unshared(one) for key, one in value.items()}
    return [_unshared(one) for one in value] if isinstance(value, list) else value


def _place(node: Node | None, path: tuple[str, ...]) -> tuple[int, int]:
    """Return where the value that keys lead to begins and ends in the text; nowhere for one that is not written."""
    import yaml

    for key in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for name, value in pairs if name.value == key), None)
    return (0, 0) if node is None else (node.start_mark.index, node.end_mark.index)
