"""A long challenge is verified in little memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.fair_challenge import Fair
from tests.acceptance.liar import Git
from tests.acceptance.test_fairness_vandals import MALLORY
from tests.benchmarks.bench_verify import measured
from tests.benchmarks.long_challenge import Size, make_repository
from tests.worker.harness.commits import sign_head
from worker.fairness import commitments, receipts

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


@pytest.mark.slow
@pytest.mark.xdist_group("fairness")
def test_nobody_can_fill_the_memory(fair: Fair, tmp_path: Path) -> None:
    """A file that others push may be so long that reading it would take twenty times its size; it is not read."""
    clone, lists = (
        Git(tmp_path / "clone", fair.signer, clone_of=fair.board),
        b"[" + b"[]," * 6_000_000 + b"[]]",
    )
    own = {path: clone.read(path) for path in (commitments.PATH, receipts.PATH)}
    clone.commit(dict.fromkeys(own, lists))
    sign_head(clone.folder, MALLORY)
    clone.commit(own)
    printed, megabytes, _ = measured("verify", str(clone.folder), "--no-recompute", "--json")
    assert json.loads(printed)["verdict"] == "consistent"
    assert megabytes < LIMIT_MB
