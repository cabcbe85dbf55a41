"""The Ladder from end to end: answers, receipts, boards, corrections, a rescore, and the verification."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.fairness.verify import Worth, verdicts
from worker.fairness.verify.public import opened
from worker.sandbox import ManualClock

STEP = 1.0
BAD, GOOD, NEAR = embeddings(1), embeddings(2), embeddings(0)  # -1.4, 1.7 and 1.0


@pytest.fixture
def harness(tmp_path: Path, cells: Path) -> Iterator[Harness]:
    """A challenge whose development phase has a ladder with large steps."""
    changes = {"phases": {"dev": {"selection": "ladder", "ladder_step": STEP}}}
    with Harness(tmp_path, clock=ManualClock(), cells=cells, changes=changes) as harness:
        yield harness


def told(harness: Harness, pk: int) -> tuple[float, bool]:
    """Return what a participant was shown: the value, and whether the submission counts."""
    document = harness.stdout(pk)
    receipt = document["receipt"]
    assert (receipt["q_mean"], receipt["counts"]) == (document["q_mean"], document["counts"])
    return document["q_mean"], document["counts"]


def at_evalai(harness: Harness, pk: int) -> object:
    """Return the value that EvalAI's own leaderboard shows of a submission."""
    [accuracies] = [one["accuracies"] for one in json.loads(harness.posts(pk)[-1]["result"])]
    return accuracies["q_mean"]


def test_only_submissions_that_beat_the_earlier_value_count(harness: Harness, worker: StepWorker) -> None:
    """The others show the earlier value again; our board and EvalAI's show the same."""
    first = harness.submit("A", BAD)
    worker.drive()
    good = harness.submit("A", GOOD)
    worker.drive()
    near, again = harness.submit("A", NEAR), harness.submit("A", GOOD)
    hidden = harness.submit("A", NEAR, is_public=False)
    other = harness.submit("B", NEAR)
    worker.drive()
    low, high = told(harness, first)[0], told(harness, good)[0]
    assert low + STEP <= high
    assert {low % STEP, high % STEP} == {0}
    assert told(harness, first) == (low, True)
    assert told(harness, near) == (high, False)
    assert "does not count" in harness.stdout(near)["explanation"]
    assert told(harness, again) == told(harness, good) == (high, True)
    assert told(harness, hidden)[1]  # a ladder of its own, which has no rung yet
    assert told(harness, other)[1]
    assert [at_evalai(harness, pk) for pk in (good, near, again)] == [high] * 3
    rows = {row["team"]: (row["submission"], row["q_mean"], row["submissions"]) for row in harness.boards()}
    assert rows == {"A": (good, high, 4), "B": (other, told(harness, other)[0], 1)}
    rerun = harness.evalai.rerun(good)
    worker.drive()
    assert told(harness, rerun) == (high, True)
    # The re-run has the time of the submission that it repeats.
    assert {row["submission"] for row in harness.boards()} == {rerun, other}
    # Ranks follow from values that are not rounded.
    assert [worker.row(pk).q_mean % STEP > 0 for pk in (good, near)] == [True, True]


def test_disqualified_submissions_are_on_no_ladder(harness: Harness, worker: StepWorker) -> None:
    """Later answers are corrected; a submission that its own team deletes stays on the ladder."""
    pks = []
    for content in (BAD, GOOD, NEAR):
        pks.append(harness.submit("A", content))
        worker.drive()
    _, good, near = pks
    assert not told(harness, near)[1]
    harness.evalai.delete(good)
    worker.wait(700)
    worker.drive()
    assert not told(harness, near)[1]
    assert [row["submission"] for row in harness.boards()] == [pks[0]]
    assert (
        harness.command("challenge", "disqualify", str(good), "--yes", "--reason", "a test").returncode == 0
    )
    worker.drive()
    assert told(harness, near)[1]
    assert [row["submission"] for row in harness.boards()] == [near]


def test_a_rescore_computes_the_ladder_again_and_verify_confirms_it(
    harness: Harness, worker: StepWorker
) -> None:
    """Answers before and after follow from what was registered by then; any other answer is a contradiction."""
    for content in (BAD, GOOD, NEAR):
        harness.submit("A", content)
        worker.drive()
    harness.submit("B", NEAR)
    worker.drive()
    private = []
    for content in (GOOD, BAD):
        private.append(harness.submit("B", content, is_public=False))
        worker.drive()
    assert [told(harness, pk)[1] for pk in private] == [True, False]
    # So it is revealed, and the one before it on the ladder is not.
    harness.evalai.edit(private[1], is_public=True)
    first_again = harness.evalai.rerun(1002)
    worker.drive()
    assert told(harness, first_again)[1]
    harness.add_task("late__regr", seed=1)
    assert harness.rescore() == 6
    worker.drive()
    assert [told(harness, pk)[1] for pk in (first_again, 1003)] == [True, False]
    worker.stop()
    assert (
        harness.command(
            "board", "freeze", "--phase", "dev", "--now", "--yes", "--reason", "a test"
        ).returncode
        == 0
    )
    done = harness.command("challenge", "reveal", "--yes", "--reason", "a test")
    assert done.returncode == 0, done.stderr
    with opened(str(harness.board)) as public:
        found = list(verdicts(public))
    assert [one.sentence for one in found if one.worth is Worth.CONTRADICTED] == []
    assert any(one.check == "boards" and one.worth is Worth.CONSISTENT for one in found)
