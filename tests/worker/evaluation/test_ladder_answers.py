"""The Ladder from end to end: answers, receipts, boards, corrections, a rescore, and the verification."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.state import State
from worker.verify import Status

pytestmark = pytest.mark.processes

STEP = 1.0
BAD, GOOD, NEAR = embeddings(1), embeddings(2), embeddings(0)  # -1.4, 1.7 and 1.0


@pytest.fixture
def changes() -> dict[str, Any]:
    """The development phase has a ladder with large steps."""
    return {"phases": {"dev": {"selection": "ladder", "ladder_step": STEP}}}


def answer(harness: Harness, pk: int) -> tuple[float, bool]:
    """Return what a participant was shown: the value, and whether the submission counts."""
    document = harness.stdout(pk)
    receipt, [result] = document["receipt"], json.loads(harness.posts(pk)[-1]["result"])
    assert (receipt["q_mean"], receipt["counts"]) == (document["q_mean"], document["counts"])
    assert result["accuracies"]["q_mean"] == document["q_mean"]
    return document["q_mean"], document["counts"]


def test_only_submissions_that_beat_the_earlier_value_count(harness: Harness, worker: StepWorker) -> None:
    """The others show the earlier value again, marked as rounded; re-runs and a rescore follow, and `verify` confirms it."""
    first = harness.submit("A", BAD)
    worker.drive()
    good = harness.submit("A", GOOD)
    worker.drive()
    near, again, other = (
        harness.submit(team, file) for team, file in (("A", NEAR), ("A", GOOD), ("B", NEAR))
    )
    hidden = harness.submit("A", NEAR, is_public=False)
    worker.drive()
    low, high = answer(harness, first)[0], answer(harness, good)[0]
    assert low + STEP <= high
    assert {low % STEP, high % STEP} == {0}
    answers = [answer(harness, pk) for pk in (first, good, near, again)]
    assert answers == [(low, True), (high, True), (high, False), (high, True)]
    assert "does not count" in harness.stdout(near)["explanation"]
    assert answer(harness, hidden)[1]  # a ladder of its own, which has no entry yet
    assert harness.stdout(near)["rounded_to"] == STEP
    assert f"| ≈ {high:.3f} |" in harness.published("README.md")
    rows = {row["team"]: (row["submission"], row["q_mean"], row["submissions"]) for row in harness.boards()}
    assert rows == {"A": (good, high, 4), "B": (other, answer(harness, other)[0], 1)}
    listed = json.loads(harness.command("submissions", "--json").stdout)["submissions"]
    assert {row["number"]: (row["place"], row["why"]) for row in listed} == {
        **dict.fromkeys((good, other), ("counts", "")),
        **dict.fromkeys((first, again), ("replaced", "")),
        near: ("not counted", "the Ladder"),
        hidden: ("not counted", "private"),
    }
    # Ranks follow from values that are not rounded.
    assert [worker.row(pk).q_mean % STEP > 0 for pk in (good, near)] == [True, True]

    rerun = harness.evalai.rerun(good)
    worker.drive()
    assert answer(harness, rerun) == (high, True)  # it has the time of the submission that it repeats
    assert {row["submission"] for row in harness.boards()} == {rerun, other}
    harness.add_task("late__regr", seed=1)
    assert harness.rescore() == 6
    worker.drive()
    assert [answer(harness, pk)[1] for pk in (rerun, near)] == [True, False]
    harness.decide("board", "close", "--phase", "dev", "--now", "--yes")
    harness.decide("challenge", "reveal", "--yes")
    assert harness.contradictions() == []
    assert ("boards", Status.CONSISTENT) in {
        (verdict.check, verdict.status) for verdict in harness.verdicts()
    }


def test_disqualified_submissions_are_on_no_ladder(harness: Harness, worker: StepWorker) -> None:
    """Later answers are corrected; a submission that its own team deletes stays on the ladder and on the board."""
    pks = []
    for content in (BAD, GOOD, NEAR):
        pks.append(harness.submit("A", content))
        worker.drive()
    _, good, near = pks
    assert not answer(harness, near)[1]
    harness.evalai.edit(good, ignore_submission=True)
    worker.advance(700)
    assert not answer(harness, near)[1]
    assert [row["submission"] for row in harness.boards()] == [good]
    harness.decide("challenge", "disqualify", str(good), "--reason", "a test")
    worker.drive()
    assert answer(harness, near)[1]
    assert [row["submission"] for row in harness.boards()] == [near]
    harness.decide("board", "close", "--phase", "dev", "--now", "--yes")
    harness.decide("challenge", "disqualify", str(good), "--undo", "--reason", "too late")
    worker.drive()
    assert answer(harness, near)[1]  # the board is closed, and so are its answers
    again = harness.evalai.rerun(near)
    worker.drive()
    assert [row["submission"] for row in harness.boards()] == [near]
    off = f"Submission {near} of “A” was taken off later boards: it was run again as submission {again}."
    assert off in harness.published("README.md")


@pytest.mark.parametrize("command", ["disqualify", "follow"])
def test_what_is_taken_off_before_its_answer_shows_no_more_than_the_ladder(
    harness: Harness, worker: StepWorker, command: str
) -> None:
    """Otherwise a file that is sent to be disqualified, or a re-run of one that was, would show its own value."""
    harness.submit("A", BAD, is_public=False)
    good = harness.submit("A", GOOD)
    worker.drive()
    harness.decide("challenge", "pause")
    near = harness.submit("A", NEAR)
    worker.drive(lambda: worker.states().get(near) == State.FETCHED)
    harness.evalai.edit(near, is_public=False)
    worker.drive(lambda: worker.row(near).at_evalai["public"] is False)
    harness.decide("challenge", command, str(near), "--yes", "--reason", "a test")
    harness.decide("challenge", "pause", "--undo")
    worker.finish(near)
    assert harness.stdout(near)["q_mean"] == answer(harness, good)[0]
    assert "counts" not in harness.stdout(near)
    harness.decide("board", "close", "--phase", "dev", "--now")
    harness.decide("challenge", "reveal")
    assert harness.contradictions() == []


def follow(harness: Harness, worker: StepWorker, pk: int, *, public: bool) -> None:
    """Take over that a team made a submission public or private."""
    harness.evalai.edit(pk, is_public=public)
    worker.advance(700)
    harness.decide("challenge", "follow", str(pk), "--reason", "a wish", "--yes")
    worker.drive()


def test_a_submission_that_was_made_private_is_on_no_ladder(harness: Harness, worker: StepWorker) -> None:
    """As one that was disqualified: the next best of its team counts, and nothing is contradicted."""
    pks = []
    for content in (GOOD, NEAR):
        pks.append(harness.submit("A", content))
        worker.drive()
    good, near = pks
    assert not answer(harness, near)[1]
    follow(harness, worker, good, public=False)
    assert answer(harness, near)[1]
    assert [row["submission"] for row in harness.boards()] == [near]
    harness.decide("board", "close", "--phase", "dev", "--now", "--yes")
    harness.decide("challenge", "reveal", "--yes")
    assert harness.contradictions() == []


def test_a_submission_that_was_made_public_changes_its_ladder(harness: Harness, worker: StepWorker) -> None:
    """It leaves the private ones of its team, which nobody can check, and keeps its place in time among the public ones."""
    pks = []
    for content, public in ((GOOD, False), (NEAR, False), (BAD, True)):
        pks.append(harness.submit("A", content, is_public=public))
        worker.drive()
    _, near, bad = pks
    assert [answer(harness, pk)[1] for pk in (near, bad)] == [False, True]
    follow(harness, worker, near, public=True)
    assert [answer(harness, pk)[1] for pk in (near, bad)] == [True, False]
    assert [row["submission"] for row in harness.boards()] == [near]
    harness.decide("board", "close", "--phase", "dev", "--now", "--yes")
    harness.decide("challenge", "reveal", "--yes")
    assert harness.contradictions() == []
