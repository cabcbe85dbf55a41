"""Fixtures of the acceptance tests: those of the worker's room that they share, and a fair challenge."""

from __future__ import annotations

from tests.acceptance.fair_challenge import fair  # noqa: F401 - a fixture
from tests.worker.conftest import _warm_kernels, cells, nursery  # noqa: F401 - fixtures
