"""Fixtures of the acceptance tests: scores that are known ahead, and a nursery of workers that die."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.fair_challenge import fair  # noqa: F401 - a fixture
from tests.worker.conftest import _warm_kernels, cells  # noqa: F401 - fixtures
from tests.worker.killing import Nursery


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """A process that starts workers quickly."""
    with Nursery() as nursery:
        yield nursery
