"""What participants say of their methods is copied from EvalAI to the board as far as it may be shown."""

from __future__ import annotations

from tests.worker.harness.harness import Harness, StepWorker, embeddings, git

PAPER, CODE = "https://arxiv.org/abs/1", "https://git.example/code"


def test_methods_follow_evalai_and_private_ones_are_not_shown(harness: Harness, worker: StepWorker) -> None:
    """They are on the board with the value, change with EvalAI's, and are removed when the submission is made private."""
    words = {"method_name": "first method", "project_url": CODE, "publication_url": "javascript:alert(1)"}
    pk = harness.submit("A", embeddings(1), **words)
    harness.submit("B", embeddings(2), method_name="quiet method", is_public=False)
    worker.drive()
    (entry,) = harness.boards()
    assert (entry["method"], entry["project_url"], entry["publication_url"]) == ("first method", CODE, "")
    harness.evalai.edit(pk, publication_url=PAPER, method_name="second method")
    worker.drive()
    (entry,) = harness.boards()
    assert (entry["method"], entry["publication_url"]) == ("second method", PAPER)
    harness.evalai.edit(pk, is_public=False)
    worker.drive()
    (entry,) = harness.boards()  # its value counts as it was sent
    assert not any(entry[key] for key in ("method", "project_url", "publication_url"))
    everything = git(harness.board, "log", "--patch", "--all")
    assert "second method" in everything
    assert "quiet method" not in everything
