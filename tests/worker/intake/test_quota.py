"""Answers are counted here, because EvalAI gives a team its share back for a row that is set to cancelled."""

from __future__ import annotations

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings

pytestmark = pytest.mark.processes

DAY = 86400.0


def answered(harness: Harness, worker: StepWorker, team: str, content: bytes) -> int:
    """Let a team's submission be answered."""
    pk = harness.submit(team, content)
    worker.drive()
    return pk


def test_more_answers_than_evalai_allows_are_told(harness: Harness, worker: StepWorker) -> None:
    """For a day, with the numbers and whose they are; each is answered and counts, and a team within the limit is not named."""
    answered(harness, worker, "B", embeddings(3))
    for limit, words in (
        ("max_submissions_per_day", "3 on 2026-01-01, where EvalAI allows 2 a day"),
        ("max_submissions_per_month", "3 in 2026-01, where EvalAI allows 2 a month"),
        ("max_submissions", "3, where EvalAI allows 2 in all"),
    ):
        harness.evalai.set_phase("dev", **{limit: 2})
        worker.drive()
        first, _ = (answered(harness, worker, limit, embeddings(number)) for number in range(2))
        assert worker.alert("submission.quota") == ""
        harness.evalai.edit(first, status="cancelled")
        third = answered(harness, worker, limit, embeddings(2))
        assert harness.status(third) == "finished"
        assert words in worker.alert("submission.quota")
        assert f"Team '{limit}' (number {worker.row(third).team_key})" in worker.alert("submission.quota")
        assert {row["submission"] for row in harness.boards() if row["team"] == limit} == {third}
        worker.advance(DAY + 60)
        assert worker.alert("submission.quota") == ""
        harness.evalai.set_phase("dev", **{limit: 100_000})


def test_files_with_faults_are_free_and_each_day_begins_at_midnight(
    harness: Harness, worker: StepWorker
) -> None:
    """As at EvalAI, in UTC."""
    harness.evalai.set_phase("dev", max_submissions_per_day=1)
    worker.drive()
    for _ in range(2):
        answered(harness, worker, "A", b"id,0\nx,1\n")
    answered(harness, worker, "A", embeddings(0))
    worker.advance(DAY)
    answered(harness, worker, "A", embeddings(1))
    assert worker.alert("submission.quota") == ""
