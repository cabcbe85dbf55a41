"""Settings of the whole suite.

Hypothesis tries the same examples in every run, on a machine of any speed. Search at random only where somebody looks at the outcome:
``pytest --hypothesis-profile=search``, or ``make fuzz``.

With ``--quick``, a test is skipped as soon as it starts a process.
"""

from __future__ import annotations

import gc
import os
import sys
import threading

import pytest
from hypothesis import HealthCheck, settings

any_speed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("repeatable", any_speed, derandomize=True)
settings.register_profile("search", any_speed, derandomize=False, max_examples=1000)
settings.load_profile("repeatable")

STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--quick``."""
    parser.addoption("--quick", action="store_true", help="skip tests that start a process or are slow")


def pytest_configure(config: pytest.Config) -> None:
    """Watch for processes that tests start, and look for no garbage until all tests are imported."""
    gc.disable()
    if config.option.quick:
        sys.addaudithook(_skip)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the slow tests, so that no processor waits for one at the end; in a quick run, leave them out."""
    items.sort(key=_is_quick)
    if config.option.quick:
        items[:] = [item for item in items if _is_quick(item)]


def pytest_collection_finish() -> None:
    """Look for garbage, but not among what was imported, nor after every few hundred objects."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


def _is_quick(item: pytest.Item) -> bool:
    return not {"slow", "browser"} & {mark.name for mark in item.iter_markers()}


def _skip(event: str, _: object) -> None:
    stage = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[2]
    in_a_test = stage in {"(setup)", "(call)"} and threading.current_thread() is threading.main_thread()
    if in_a_test and event in STARTS:
        pytest.skip("starts a process")
