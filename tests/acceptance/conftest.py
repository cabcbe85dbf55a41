"""Fixtures of the acceptance tests: fixtures shared with the worker's tests, a fair challenge, and an installation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.fair_challenge import ended, fair, moments  # noqa: F401 - fixtures
from tests.acceptance.installation import ROOT, Installation, build_wheel
from tests.worker.conftest import _warm_kernels, cells, fork_server  # noqa: F401 - fixtures


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout."""
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation of the wheel with the libraries that it declares, and nothing else."""
    installation = Installation(tmp_path_factory.mktemp("installation"))
    installation.run("pip", "install", "--quiet", str(wheel), cwd=installation.folder)
    with installation.start():
        yield installation
