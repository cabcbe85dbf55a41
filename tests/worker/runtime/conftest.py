"""Fixtures for the tests of runners."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from worker.state import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A database."""
    with closing(Store(f"sqlite:///{tmp_path}/worker.db")) as store:
        yield store
