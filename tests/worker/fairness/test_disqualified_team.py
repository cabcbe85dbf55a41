"""`challenge disqualify --team`: a team leaves the boards of all phases, with what it sent and with what it sends later."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings, today
from worker.verify import Status, receipt_verdicts
from worker.verify.public import opened

pytestmark = pytest.mark.processes
clock = today

STEP, REASON = 1.0, "several accounts"
BAD, GOOD, NEAR = embeddings(1), embeddings(2), embeddings(0)  # -1.4, 1.7 and 1.0


@pytest.fixture
def changes() -> dict[str, Any]:
    """Phase dev has a ladder with large steps, and phase eval requires a score in it."""
    return {
        "phases": {
            "dev": {"selection": "ladder", "ladder_step": STEP},
            "eval": {"eligible_if_scored_in": "dev"},
        }
    }


def decide(harness: Harness, worker: StepWorker, pk: int, *options: str) -> str:
    """Disqualify the team of a submission, or reinstate it, and let the worker publish that."""
    number = str(worker.row(pk).team_key)
    said = harness.decide("challenge", "disqualify", "--team", number, "--reason", REASON, *options)
    worker.drive()
    return said


def test_a_disqualified_team_is_on_no_board_and_gets_its_answers(
    harness: Harness, worker: StepWorker
) -> None:
    """Its answers, the ladder included, are those that it would get anyway; a reinstatement puts everything back."""
    pks = {
        "before": harness.submit("A", BAD),
        "private": harness.submit("A", NEAR, is_public=False),
        "other": harness.submit("B", NEAR),
        "eval": harness.submit("A", GOOD, phase="eval"),
    }
    worker.drive()
    assert (set(harness.teams()), harness.teams("eval")) == ({"A", "B"}, ["A"])
    assert "no longer counts from now on" in decide(harness, worker, pks["before"])
    assert "already disqualified; nothing was done" in decide(harness, worker, pks["before"])
    pks["good"] = harness.submit("A", GOOD)
    worker.drive()
    pks["near"] = harness.submit("A", NEAR)
    pks["late eval"] = harness.submit("A", NEAR, phase="eval")
    pks["refused"] = harness.submit("A", b"no embeddings")
    worker.drive()
    assert [harness.stdout(pks[name])["counts"] for name in ("before", "good", "near")] == [True, True, False]
    assert harness.stdout(pks["near"])["q_mean"] == harness.stdout(pks["good"])["q_mean"]
    assert "q_mean" in harness.stdout(pks["late eval"])
    assert (harness.teams(), harness.teams("eval")) == (["B"], [])
    assert harness.contradictions() == []  # although a board has become empty
    text = f"Team “A” was disqualified with all its submissions ({REASON})."
    assert all(text in harness.published(path) for path in ("README.md", "index.html"))
    listed = json.loads(harness.command("submissions", "--team", "A", "--json").stdout)["submissions"]
    assert {(row["place"], row["why"]) for row in listed} == {("removed", REASON)}
    posts = {pk: harness.posts(pk) for pk in pks.values()}

    assert "counts again from now on" in decide(harness, worker, pks["near"], "--undo")
    assert "is not disqualified; nothing was done" in decide(harness, worker, pks["near"], "--undo")
    rows = {row["team"]: row["submission"] for row in harness.boards()}
    assert rows == {"A": pks["good"], "B": pks["other"]}
    assert [row["submission"] for row in harness.boards("eval")] == [pks["late eval"]]
    assert {pk: harness.posts(pk) for pk in pks.values()} == posts


def test_its_decision_is_registered_and_checked(harness: Harness, worker: StepWorker) -> None:
    """The reveal opens it in each phase, `verify` lists it with its effect, and a receipt says why the submission has no place."""
    first = harness.submit("A", GOOD)
    harness.submit("B", BAD)
    worker.drive()
    harness.submit("A", NEAR, phase="eval", is_public=False)
    harness.submit("B", BAD, phase="eval")
    worker.drive()
    decide(harness, worker, first)
    later = harness.submit("A", GOOD, phase="eval")
    worker.drive()
    harness.decide("challenge", "reveal", "--open")
    assert harness.contradictions() == []
    with opened(str(harness.board)) as repository:
        said = {
            pk: list(receipt_verdicts(repository, harness.stdout(pk)["receipt"]))[-1] for pk in (first, later)
        }
    decisions = {
        verdict.phase: verdict.sentence for verdict in harness.verdicts() if verdict.check == "decisions"
    }
    assert "team “A” was disqualified with all its submissions" in decisions["dev"]
    assert (
        f"({REASON}) (on the next board, these ranks changed: “A” from 1 to none, “B” from 2 to 1)"
        in decisions["dev"]
    )
    assert "was disqualified with all its submissions" in decisions["eval"]
    for verdict in said.values():
        assert verdict.status is Status.CONSISTENT
        assert "the organizers disqualified its team with all its submissions on 20" in verdict.sentence
        assert f"({REASON})" in verdict.sentence


def test_only_a_team_that_sent_something_can_be_disqualified(harness: Harness, worker: StepWorker) -> None:
    """A wrong number, none, or two are refused, and say what to write."""
    pk = harness.submit("A", GOOD)
    worker.drive()
    for words, sentence in (
        (("--team", "999"), "no submission of a team with the number 999"),
        ((), "either the number of a submission, or --team"),
        ((str(pk), "--team", "1"), "either the number of a submission, or --team"),
    ):
        done = harness.command("challenge", "disqualify", *words, "--yes", "--reason", REASON)
        assert done.returncode == 2
        assert sentence in " ".join(done.stderr.replace("│", " ").split())
