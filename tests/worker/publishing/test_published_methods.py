"""What participants say of their methods is copied from EvalAI to the board as far as it may be shown."""

from __future__ import annotations

import json
from typing import Any

from tests.worker.harness.harness import Harness, StepWorker, embeddings, git

PAPER, CODE = "https://arxiv.org/abs/1", "https://git.example/code"


def entries(harness: Harness) -> list[dict[str, Any]]:
    """Return the published rows of phase dev, by team."""
    document = json.loads(git(harness.board, "show", "main:leaderboard/dev.json"))
    return sorted(document["entries"], key=lambda entry: str(entry["team"]))


def test_methods_follow_evalai_and_private_ones_are_not_shown(harness: Harness, worker: StepWorker) -> None:
    """They are on the board with the value, change with EvalAI's, and are removed when the submission is made private."""
    pk = harness.submit(
        "A",
        embeddings(1),
        method_name="first method",
        project_url=CODE,
        publication_url="javascript:alert(1)",
    )
    hidden = harness.submit("B", embeddings(2), method_name="quiet method", is_public=False)
    worker.drive(lambda: {harness.status(pk), harness.status(hidden)} == {"finished"})
    worker.drive()
    (entry,) = entries(harness)
    assert (entry["method"], entry["project_url"], entry.get("publication_url")) == (
        "first method",
        CODE,
        None,
    )
    harness.evalai.edit(pk, publication_url=PAPER, method_name="second method")
    worker.drive()
    assert (entries(harness)[0]["method"], entries(harness)[0]["publication_url"]) == ("second method", PAPER)
    harness.evalai.edit(pk, is_public=False)
    worker.drive()
    (entry,) = entries(harness)  # its value counts as it was sent
    assert not {"method", "project_url", "publication_url"} & set(entry)
    everything = git(harness.board, "log", "--patch", "--all")
    assert "second method" in everything
    assert "quiet method" not in everything
