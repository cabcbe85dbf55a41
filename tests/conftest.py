"""Settings of the whole suite.

Hypothesis tries the same examples in every run, on a machine of any speed. Search at random only where somebody looks at the outcome:
``pytest --hypothesis-profile=search``, or ``make fuzz``.
"""

from __future__ import annotations

import gc

import pytest
from hypothesis import HealthCheck, settings

any_speed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("repeatable", any_speed, derandomize=True)
settings.register_profile("search", any_speed, derandomize=False, max_examples=1000)
settings.load_profile("repeatable")


def pytest_configure() -> None:
    """Look for no garbage until all tests are imported."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow tests, so that no processor waits for one at the end."""
    items.sort(key=lambda item: not {"slow", "browser"} & {mark.name for mark in item.iter_markers()})


def pytest_collection_finish() -> None:
    """Look for garbage, but not among what was imported, nor after every few hundred objects."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()
