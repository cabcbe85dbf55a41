"""A long challenge is verified in little memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.bench_verify import measured
from tests.benchmarks.long_challenge import Size, make_repository

VERSIONS = 200
LIMIT_MB = 160  # imports take 65 MB; holding all boards as values would take another 130 MB


@pytest.mark.slow
def test_memory_does_not_grow_with_the_square_of_the_boards(tmp_path: Path) -> None:
    """Every version of every growing file is compared and every board is recomputed, but only a few are in memory at once."""
    repository = make_repository(tmp_path, Size(versions=VERSIONS))
    printed, megabytes, _ = measured("verify", str(repository), "--json")
    report = json.loads(printed)
    assert report["verdict"] == "consistent"
    assert [sums["entries"] for sums in report["phases"].values()] == [VERSIONS]
    assert megabytes < LIMIT_MB
