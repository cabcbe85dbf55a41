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
    (harness.folder / "tasks" / "dev" / "gamma__regr.csv").unlink()
    assert harness.rescore() == 6
    worker.drive()
    assert [answer(harness, pk)[1] for pk in (rerun, near)] == [True, False]
    harness.decide("board", "close", "--phase", "dev", "--now", "--yes")
    harness.decide("challenge", "reveal", "--yes")
    assert harness.contradictions() == []
    assert ("boards", Status.CONSISTENT) in {
        (verdict.check, verdict.status) for verdict in harness.verdicts()
    }


def follow(harness: Harness, worker: StepWorker, pk: int, *, public: bool) -> None:
    """Take over that a team made a submission public or private."""
    harness.evalai.edit(pk, is_public=public)
    worker.advance(700)
    harness.decide("challenge", "follow", str(pk), "--reason", "a wish", "--yes")
    worker.drive()


def test_what_is_disqualified_or_changes_its_visibility_changes_its_ladder(
    harness: Harness, worker: StepWorker
) -> None:
    """Later answers are corrected; a submission that its own team deletes stays on the ladder and on the board.

    One that was made private is on no ladder: the next best of its team counts. One that was made public leaves the private ones of its
    team, which nobody can check, and keeps its place in time among the public ones.
    """
    pks = {}
    for team, name, content, public in (
        *(("A", "bad", BAD, True), ("A", "good", GOOD, True), ("A", "near", NEAR, True)),
        *(("B", "made private", GOOD, True), ("B", "next", NEAR, True)),
        *(("C", "private", GOOD, False), ("C", "made public", NEAR, False), ("C", "later", BAD, True)),
    ):
        pks[name] = harness.submit(team, content, is_public=public)
        worker.drive()

    def shown() -> tuple[dict[str, bool], dict[str, int]]:
        counts = {name: answer(harness, pks[name])[1] for name in ("near", "next", "made public", "later")}
        return counts, {row["team"]: row["submission"] for row in harness.boards()}

    counts = {"near": False, "next": False, "made public": False, "later": True}
    assert shown()[0] == counts
    harness.evalai.edit(pks["good"], ignore_submission=True)
    follow(harness, worker, pks["made private"], public=False)
    follow(harness, worker, pks["made public"], public=True)
    counts |= {"next": True, "made public": True, "later": False}
    board = {"A": pks["good"], "B": pks["next"], "C": pks["made public"]}
    assert shown() == (counts, board)
    harness.decide("challenge", "disqualify", str(pks["good"]), "--reason", "a test")
    worker.drive()
    final = counts | {"near": True}, board | {"A": pks["near"]}
    assert shown() == final
    harness.decide("board", "close", "--phase", "dev", "--now", "--yes")
    harness.decide("challenge", "disqualify", str(pks["good"]), "--undo", "--reason", "too late")
    worker.drive()
    assert shown() == final  # the board is closed, and so are its answers
    again = harness.evalai.rerun(pks["near"])
    worker.drive()
    assert shown()[1] == final[1]
    off = (
        f"Submission {pks['near']} of “A” was taken off later boards: it was run again as submission {again}."
    )
    assert off in harness.published("README.md")
    harness.decide("challenge", "reveal", "--yes")
    assert harness.contradictions() == []


def test_what_is_taken_off_before_its_answer_shows_no_more_than_the_ladder(
    harness: Harness, worker: StepWorker
) -> None:
    """Otherwise a file that is sent to be disqualified, or a re-run of one that was, would show its own value."""
    commands = {"A": "disqualify", "B": "follow"}
    for team in commands:
        harness.submit(team, BAD, is_public=False)
    good = {team: harness.submit(team, GOOD) for team in commands}
    worker.drive()
    harness.decide("challenge", "pause")
    near = {team: harness.submit(team, NEAR) for team in commands}
    worker.drive(lambda: all(worker.states().get(pk) == State.FETCHED for pk in near.values()))
    for pk in near.values():
        harness.evalai.edit(pk, is_public=False)
    worker.drive(lambda: all(worker.row(pk).at_evalai["public"] is False for pk in near.values()))
    for team, command in commands.items():
        harness.decide("challenge", command, str(near[team]), "--yes", "--reason", "a test")
    harness.decide("challenge", "pause", "--undo")
    worker.finish(*near.values())
    for team, command in commands.items():
        assert harness.stdout(near[team])["q_mean"] == answer(harness, good[team])[0], command
        assert "counts" not in harness.stdout(near[team]), command
    harness.decide("board", "close", "--phase", "dev", "--now")
    harness.decide("challenge", "reveal")
    assert harness.contradictions() == []
