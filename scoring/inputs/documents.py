"""Read YAML documents that people wrote or that came from elsewhere.

All such texts are read here, so that every fault is a ``yaml.YAMLError``; PyYAML itself raises other errors for an impossible date and for
very deep nesting.
"""

from __future__ import annotations

from typing import Any


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

    try:
        return yaml.load(text, Loader)  # noqa: S506 - a SafeLoader
    except ValueError as error:  # a date such as 2026-99-99
        raise yaml.YAMLError(str(error)) from error
    except RecursionError as error:
        raise yaml.YAMLError("it is nested too deeply") from error
