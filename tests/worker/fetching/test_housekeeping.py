"""Stored files are removed when they are old, except those that a reveal may have to publish."""

from __future__ import annotations

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.fairness import disclosure


def tidied(harness: Harness, worker: StepWorker) -> set[int]:
    """Let the worker look through its stored files once; return the submissions whose files still exist."""
    stray = harness.state / "files" / "ab" / ("ab" * 32)
    stray.parent.mkdir(exist_ok=True)
    stray.touch()
    worker.clock.advance(3600)
    worker.drive(lambda: not stray.exists())
    with worker.store.read() as tx:
        rows = tx.submissions()
    return {row.pk for row in rows if worker.daemon.files.find(row.file_hash or "") is not None}


@pytest.mark.processes
@pytest.mark.parametrize(("rule", "kept"), [("baselines", {"baseline"}), ("top:1", {"baseline", "A", "B"})])
def test_files_that_may_be_published_are_kept_until_the_reveal(
    harness: Harness, rule: str, kept: set[str]
) -> None:
    """The first rows are known only at the end, so such a rule keeps every public file, and every rule keeps baselines."""
    harness.configure({"submission": {"keep_days": 1e-6}, "fairness": {"publish_files": rule}})
    with harness.worker() as worker:
        pks = {name: harness.submit(name, embeddings(seed)) for seed, name in enumerate(("A", "B"))}
        pks["private"] = harness.submit("C", embeddings(2), is_public=False)
        pks["baseline"] = harness.submit("host", embeddings(3), method_name="Baseline mean embeddings")
        worker.drive()
        assert tidied(harness, worker) == {pks[name] for name in kept}
        assert (
            harness.command(
                "board", "close", "--phase", "dev", "--now", "--yes", "--reason", "a test"
            ).returncode
            == 0
        )
        worker.drive()
        assert tidied(harness, worker) == {pks[name] for name in kept}
    done = harness.command("challenge", "reveal", "--yes")
    assert (done.returncode, "not published" in done.stdout) == (0, False), done.stderr
    with harness.worker() as worker:
        worker.drive()
        assert tidied(harness, worker) == {pks["baseline"]}  # what the organizers sent is always kept


@pytest.mark.parametrize(
    ("rule", "baseline", "public", "may_be"),
    [
        (None, True, False, True),
        (None, False, True, False),
        ("baselines", False, True, False),
        ("top:1", False, True, True),
        ("top:1", False, False, False),
    ],
)
def test_every_published_submission_was_expected_to_be_due(
    rule: str | None, baseline: bool, public: bool, may_be: bool
) -> None:
    """Everything that :func:`worker.fairness.disclosure.due` returns at the end was kept."""
    assert disclosure.may_be_due(rule, baseline=baseline, public=public) is may_be
