"""Libraries that take a second to import, and that few tests use.

Every process of the tests imports all test modules, but only one runs the tests of the group ``torch``, and imports these libraries then.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

GROUP = pytest.mark.xdist_group("torch")


class Later:
    """A module that is imported when something in it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest and Hypothesis look for marks of theirs
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
