"""The published id lists: each appears with the first score of its phase, as committed to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scoring.protocol import ids_hash
from tests.worker.harness.harness import IDS, Harness, StepWorker, embeddings, git
from worker.cli import guarded

LIST = "ids/dev.txt"


@pytest.fixture
def cells() -> None:
    """No phase has scores at the beginning."""


def test_a_list_is_published_with_the_first_score_of_its_phase(
    harness: Harness, worker: StepWorker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids of a phase that has not opened appear nowhere; with those of an open one, participants can check a file."""
    worker.drive()
    assert git(harness.board, "ls-tree", "--name-only", "main", "ids/") == ""
    harness.submit("A", embeddings(1))
    worker.drive()
    assert git(harness.board, "ls-tree", "--name-only", "main", "ids/").split() == [LIST]
    published = harness.published(LIST)
    assert published.split("\n") == [*sorted(IDS), ""]
    protocol = json.loads(harness.published("commitment.json"))[-1]["phases"]["dev"]
    assert protocol["ids_hash"] == ids_hash(tuple(published.split()))
    (tmp_path / "mine.csv").write_bytes(embeddings(1))
    check = ["validate", str(tmp_path / "mine.csv"), "--challenge", str(harness.board), "--phase"]
    assert [guarded([*check, phase]) for phase in ("dev", "eval")] == [0, 2]
    shown = capsys.readouterr()
    assert "The file is valid for phase dev: 60 embeddings" in shown.out
    assert "The ids of phase eval are not published yet" in shown.err
