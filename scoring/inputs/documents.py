"""Read YAML documents that people wrote or that came from elsewhere.

All such texts are read here, so that every fault is a ``yaml.YAMLError``; PyYAML itself raises other errors for an impossible date and for
very deep nesting.
"""

from __future__ import annotations

from typing import Any


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
