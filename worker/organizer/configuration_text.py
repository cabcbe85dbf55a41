"""Edit the text of a configuration file value by value, without losing its comments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from scoring.documents import read_yaml


def with_values(text: str, values: Mapping[tuple[str, ...], object]) -> str:
    """Return a YAML text with some values set; the comments, order and quotes of everything else stay.

    A text that cannot be edited in place, such as a section that is written once and used twice (by an anchor), gets the right values,
    but loses its comments.

    Args:
        text: A mapping.
        values: New values by their path of keys; missing keys and sections are added. A value that does not change keeps its spelling.
    """
    wanted = _unshared(read_yaml(text))
    changed = {}
    for path, value in values.items():
        section = wanted
        for key in path[:-1]:
            section[key] = section.get(key) or {}
            section = section[key]
        if section.get(path[-1]) != value:
            section[path[-1]] = changed[path] = value
    try:
        edited = text
        for path, value in changed.items():
            edited = _edited(edited, path, value)
        faithful = read_yaml(edited) == wanted
    except yaml.YAMLError:
        faithful = False
    return edited if faithful else _block(wanted)


def scalar(value: object) -> str:
    """Return a single value as it is written behind a key."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=2**31)
    first, *more = text.splitlines()
    if more not in ([], ["..."]):  # a line break, which double quotes escape
        return yaml.safe_dump(value, default_style='"', width=2**31).rstrip("\n")
    return first


def _edited(text: str, path: tuple[str, ...], value: object) -> str:
    """Replace the value at a path of keys, or add the keys that are missing there."""
    node: yaml.Node = yaml.compose(text, Loader=yaml.SafeLoader) or yaml.MappingNode("", [])
    for depth, key in enumerate(path):
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        inner = next((inner for name, inner in pairs if name.value == key), None)
        if inner is None:
            return _extended(text, node, path[depth:], value, nested=depth > 0)
        node = inner
    start, end = node.start_mark.index, node.end_mark.index
    return f"{text[:start]}{'' if end > start else ' '}{scalar(value)}{text[end:]}"


def _extended(text: str, section: yaml.Node, path: tuple[str, ...], value: object, *, nested: bool) -> str:
    """Add a value with its keys: at the beginning of a section, or at the end of the text."""
    for key in reversed(path):
        value = {key: value}
    if not nested:
        return f"{text.rstrip()}\n{_block(value)}"
    indent = " " * section.start_mark.column
    lines = "".join(f"{line}\n{indent}" for line in _block(value).splitlines())
    return f"{text[: section.start_mark.index]}{lines}{text[section.start_mark.index :]}"


def _block(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=2**31)


def _unshared(value: Any) -> Any:
    """Copy a document without shared parts, so that each of them can be changed alone."""
    if isinstance(value, dict):
        return {key: _unshared(inner) for key, inner in value.items()}
    return [_unshared(inner) for inner in value] if isinstance(value, list) else value
