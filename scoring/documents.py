"""Documents: YAML that somebody wrote by hand, or that came from somewhere else.

Every such text goes through here, so that whatever is wrong with it is one kind of error: YAML's own library also lets a date that does not
exist and a nesting without end out as errors of other kinds.
"""

from __future__ import annotations

from typing import Any


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
