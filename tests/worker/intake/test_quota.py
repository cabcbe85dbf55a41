"""Answers are counted here, because EvalAI gives a team its share back for a row that is set to cancelled."""

from __future__ import annotations

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings

pytestmark = pytest.mark.processes

DAY = 86400.0
LIMIT = "max_submissions_per_day"


def answered(harness: Harness, worker: StepWorker, team: str, content: bytes) -> int:
    """Let a team's submission be answered."""
    pk = harness.submit(team, content)
    worker.drive()
    return pk


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"max_submissions_per_day": 2}, "3 on 2026-01-01, where EvalAI allows 2 a day"),
        ({"max_submissions_per_month": 2}, "3 in 2026-01, where EvalAI allows 2 a month"),
        ({"max_submissions": 2}, "3, where EvalAI allows 2 in all"),
    ],
)
def test_more_answers_than_evalai_allows_are_told(
    harness: Harness, worker: StepWorker, limit: dict[str, int], words: str
) -> None:
    """For a day, with the numbers and whose they are; each is answered and counts, and a team within the limit is not named."""
    harness.evalai.set_phase("dev", **limit)
    worker.drive()
    first, _ = (answered(harness, worker, "A", embeddings(number)) for number in range(2))
    answered(harness, worker, "B", embeddings(3))
    assert worker.alert("submission.quota") == ""
    harness.evalai.edit(first, status="cancelled")
    third = answered(harness, worker, "A", embeddings(2))
    assert harness.status(third) == "finished"
    assert words in worker.alert("submission.quota")
    assert f"Team 'A' (number {worker.row(third).team_key})" in worker.alert("submission.quota")
    assert {row["submission"] for row in harness.boards() if row["team"] == "A"} == {third}
    worker.advance(DAY + 60)
    assert worker.alert("submission.quota") == ""


def test_files_with_faults_are_free_and_each_day_begins_at_midnight(
    harness: Harness, worker: StepWorker
) -> None:
    """As at EvalAI, in UTC."""
    harness.evalai.set_phase("dev", **{LIMIT: 1})
    worker.drive()
    for _ in range(2):
        answered(harness, worker, "A", b"id,0\nx,1\n")
    answered(harness, worker, "A", embeddings(0))
    worker.advance(DAY)
    answered(harness, worker, "A", embeddings(1))
    assert worker.alert("submission.quota") == ""
