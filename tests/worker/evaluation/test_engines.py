"""The engine of a score is recorded, published if it is not the kernel, and verified with the kernel."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from leaderboard.rendering.assets import schema_bytes
from tests.worker.harness.harness import NEW, Harness, embeddings, git
from worker.fairness import events
from worker.fairness.verify import Worth, verdicts
from worker.fairness.verify.public import opened
from worker.fairness.verify.published import published_verdicts
from worker.sandbox import ManualClock

SENTENCE = "Scores were computed with the scoring engine"


def published(harness: Harness) -> dict[str, object]:
    """Return the JSON of the board, which must fit its schema, and check that page and README say the same."""
    document: dict[str, object] = json.loads(git(harness.board, "show", "main:leaderboard/dev.json"))
    jsonschema.validate(document, json.loads(schema_bytes()))
    for file in ("index.html", "README.md"):
        assert (SENTENCE in git(harness.board, "show", f"main:{file}")) == ("engines" in document)
    return document


def test_a_score_says_which_engine_made_it(tmp_path: Path) -> None:
    """The cell, the board and the register say it; `verify` recomputes torch's scores with the kernel."""
    changes = {"scoring": {"engine": "torch"}, "fairness": {"publish_files": "all"}}
    with Harness(tmp_path, clock=ManualClock(), changes=changes) as harness:
        with harness.worker() as worker:
            harness.submit("A", embeddings(NEW))
            worker.drive()
            assert published(harness)["engines"] == ["torch"]
            with worker.store.read() as tx:
                assert {cell.engine for cell in tx.all_cells()} == {"torch"}
                (score,) = (event.fields for event in tx.events() if event.fields["kind"] == events.SCORE)
        assert score["engines"] == ["torch"]
        for command in (
            ["board", "freeze", "--phase", "dev", "--now", "--yes"],
            ["challenge", "reveal", "--yes"],
        ):
            done = harness.command(*command)
            assert done.returncode == 0, done.stderr
        with opened(str(harness.board)) as repository:
            found = list(verdicts(repository))
            found += published_verdicts(repository)
    assert not [verdict for verdict in found if verdict.worth is Worth.CONTRADICTED]
    assert [verdict.submissions for verdict in found if verdict.worth is Worth.RECOMPUTED]


def test_a_challenge_that_changes_its_engine_says_so(tmp_path: Path) -> None:
    """From then on the board names the other engine."""
    with Harness(tmp_path, clock=ManualClock()) as harness, harness.worker() as worker:
        harness.submit("A", embeddings(NEW))
        worker.drive()
        assert "engines" not in published(harness)
        harness.configure({"scoring": {"engine": "torch"}})
        harness.rescore()
        harness.submit("B", embeddings(NEW + 1))
        worker.drive()
        assert published(harness)["engines"] == ["torch"]
