"""The published id lists: each appears with the first score of its phase, as committed to, and is checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from scoring.protocol import ids_hash
from tests.worker.harness.harness import IDS, Harness, StepWorker, embeddings, git
from worker.cli import guarded
from worker.fairness.verify import Worth, verdicts
from worker.fairness.verify.public import opened

LIST = "ids/dev.txt"


@pytest.fixture
def cells() -> None:
    """No phase has scores at the beginning."""


def test_a_list_is_published_with_the_first_score_of_its_phase(
    harness: Harness, worker: StepWorker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids of a phase that has not opened appear nowhere; those of an open one match the commitment, or are a contradiction."""
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
    with opened(str(harness.board)) as repository:
        for content, worth in (
            (b"", Worth.CONTRADICTED),
            (b"\xff\n", Worth.CONTRADICTED),
            ("\n".join(IDS[1:]).encode(), Worth.CONTRADICTED),
            ("\n".join(IDS).encode(), Worth.CONSISTENT),
        ):
            changed = replace(repository, files={**repository.files, LIST: content})
            assert [one.worth for one in verdicts(changed) if one.check == "ids"] == [worth]
        without = {path: repository.files[path] for path in repository.files if path != LIST}
        assert [one for one in verdicts(replace(repository, files=without)) if one.check == "ids"] == []
