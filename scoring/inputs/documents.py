"""Read YAML documents that people wrote or that came from elsewhere.

All such texts are read here, so that every fault is a ``yaml.YAMLError``; PyYAML itself raises other errors for an impossible date and for
very deep nesting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml


def read_yaml(text: str | bytes) -> Any:
    """Return the content of a YAML text as plain values; a text cannot create other objects.

    Raises:
        yaml.YAMLError: If it is not YAML, or a mapping has a key twice; ``problem_mark`` has the position, if it is known.
    """
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        _check_repeated(node)
        return None if node is None else loader.construct_document(node)
    except ValueError as error:  # a date such as 2026-99-99
        raise yaml.YAMLError(str(error)) from error
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error


def _check_repeated(root: yaml.Node | None) -> None:
    """Refuse a mapping with a repeated key, of which YAML would silently use the last."""
    import yaml

    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        if isinstance(node, yaml.MappingNode):
            lines: dict[tuple[str, str], int] = {}
            for key, value in node.value:
                waiting.append(value)
                if not isinstance(key, yaml.ScalarNode):
                    continue
                first = lines.setdefault((key.tag, key.value), key.start_mark.line + 1)
                if first != key.start_mark.line + 1:
                    problem = f"the key `{key.value}` is already in line {first}"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
