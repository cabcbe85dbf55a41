"""The published id lists: each appears with the first score of its phase, as committed to, and is checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scoring.protocol import ids_hash
from tests.worker.harness.harness import IDS, Harness, StepWorker, embeddings, git
from worker.cli import guarded
from worker.fairness.verify import Worth, verdicts
from worker.fairness.verify.public import opened
from worker.sandbox import ManualClock


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    """A challenge with two phases without scores."""
    with Harness(tmp_path, clock=ManualClock(datetime.now(UTC))) as harness:
        yield harness


def test_a_list_is_published_with_the_first_score_of_its_phase(
    harness: Harness, worker: StepWorker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids of a phase that has not opened appear nowhere; those of an open one match the commitment."""
    worker.drive()
    assert git(harness.board, "ls-tree", "--name-only", "main", "ids/") == ""
    harness.submit("A", embeddings(1))
    worker.drive()
    assert git(harness.board, "ls-tree", "--name-only", "main", "ids/").split() == ["ids/dev.txt"]
    published = git(harness.board, "show", "main:ids/dev.txt")
    assert published.split("\n") == [*sorted(IDS), ""]
    protocol = json.loads(git(harness.board, "show", "main:commitment.json"))[-1]["phases"]["dev"]
    assert protocol["ids_hash"] == ids_hash(tuple(published.split()))
    (tmp_path / "mine.csv").write_bytes(embeddings(1))
    check = ["validate", str(tmp_path / "mine.csv"), "--challenge", str(harness.board), "--phase"]
    done = [guarded([*check, phase]) for phase in ("dev", "eval")]
    assert done == [0, 2]
    told = capsys.readouterr()
    assert "The file is valid for phase dev: 60 embeddings" in told.out
    assert "The ids of phase eval are not published yet" in told.err


def test_a_list_without_a_commitment_is_detected(harness: Harness, worker: StepWorker) -> None:
    """This holds before the reveal, too, because it would mislead a participant's own check."""
    harness.submit("A", embeddings(1))
    worker.drive()
    with opened(str(harness.board)) as repository:
        for content, worth in (
            (b"", Worth.CONTRADICTED),
            (b"\xff\n", Worth.CONTRADICTED),
            ("\n".join(IDS[1:]).encode(), Worth.CONTRADICTED),
            ("\n".join(IDS).encode(), Worth.CONSISTENT),
        ):
            changed = replace(repository, files={**repository.files, "ids/dev.txt": content})
            assert [one.worth for one in verdicts(changed) if one.check == "ids"] == [worth]
        without = {path: repository.files[path] for path in repository.files if path != "ids/dev.txt"}
        assert [one for one in verdicts(replace(repository, files=without)) if one.check == "ids"] == []
