"""Values at the end: answers only say that a file was scored, the board lists the teams, and closing the phase shows everything."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.state import State
from worker.verify import Status, receipt_verdicts
from worker.verify.public import opened

pytestmark = pytest.mark.processes

CLOSE = ("board", "close", "--phase", "dev", "--yes", "--reason", "a test")


@pytest.fixture
def changes() -> dict[str, Any]:
    """The phases withhold their values."""
    return {"phases": {phase: {"shown": "at_end"} for phase in ("dev", "eval")}}


def refusal(harness: Harness, *arguments: str, status: int = 2) -> str:
    """Run a command of the organizers, which must be refused, and return the message."""
    done = harness.command(*arguments)
    assert (done.returncode, "is closed" in done.stdout) == (status, False)
    return done.stderr


def test_values_are_withheld_until_the_phase_is_closed(harness: Harness, worker: StepWorker) -> None:
    """Then answers are posted again with values, boards and ranks appear, and a verification finds no contradiction."""
    first, second = harness.submit("B", embeddings(1)), harness.submit("A", embeddings(2))
    worker.drive()
    receipts = [
        withheld(harness, pk, "when the organizers close this phase")["receipt"] for pk in (first, second)
    ]
    board = json.loads(harness.published("leaderboard/dev.json"))
    assert [(row["team"], row["submissions"]) for row in board["waiting"]] == [("A", 1), ("B", 1)]
    assert board["entries"] == []
    said = harness.command("board", "show", "--phase", "dev").stdout
    assert "Phase dev: 2 teams have values, withheld until the phase is closed" in said
    early = refusal(harness, "challenge", "reveal", "--phase", "dev", "--open", "--yes")
    assert "Close a phase before you reveal it" in early
    assert "posts the withheld values to EvalAI" in harness.decide(*CLOSE, "--now")
    worker.drive()
    rows = {row["submission"]: row["q_mean"] for row in harness.boards()}
    assert {pk: harness.stdout(pk)["q_mean"] for pk in (first, second)} == rows
    assert json.loads(harness.posts(first)[-1]["result"])[0]["accuracies"] == {"q_mean": rows[first]}
    late = harness.submit("D", embeddings(3))
    worker.drive()
    assert set(rows) == {row["submission"] for row in harness.boards()}
    listed = json.loads(harness.command("submissions", "--json").stdout)["submissions"]
    places = {row["number"]: (row["place"], row["why"]) for row in listed}
    assert places == dict.fromkeys(rows, ("counts", "")) | {late: ("not counted", "after the close")}
    document = withheld(harness, late, "was closed before")
    receipts.append(document["receipt"])
    assert (document["counts"], receipts[-1]["counts"]) == (False, False)
    assert [receipt["q_mean"] for receipt in receipts] == [None, None, None]
    said = harness.decide("challenge", "reveal", "--yes")
    assert "Anyone can check it with: neuco-worker verify REPOSITORY --key SHA256:" in said
    assert harness.contradictions() == []
    with opened(str(harness.board)) as public:
        checked = [verdict for receipt in receipts for verdict in receipt_verdicts(public, receipt)]
    assert Status.CONTRADICTED not in {verdict.status for verdict in checked}
    words = f"ubmission {first} of team B counts on the final board"
    assert any(words in verdict.sentence for verdict in checked)


def withheld(harness: Harness, pk: int, reason: str) -> dict[str, Any]:
    """Return an answer, which must have no value and say why."""
    post, document = harness.posts(pk)[-1], harness.stdout(pk)
    assert (post["status"], json.loads(post["result"]), "q_mean" in document) == ("finished", [], False)
    assert reason in document["explanation"]
    return document


def test_closing_waits_for_earlier_submissions(harness: Harness, worker: StepWorker) -> None:
    """It says so if no worker is running that would answer them, and wants --now."""
    harness.submit("A", embeddings(1))
    worker.drive()
    worker.stop()
    harness.submit("B", embeddings(2))
    harness.evalai.set_phase("dev", end_date=harness.evalai.world.clock.now())
    message = refusal(harness, *CLOSE, status=1)
    assert "No worker is running" in message
    assert "--now" in message


def test_closing_does_not_wait_for_the_end_of_a_pause(harness: Harness, worker: StepWorker) -> None:
    """Of the scoring, or of receiving submissions, without which EvalAI's list is not compared."""
    pk = harness.submit("A", embeddings(1))
    worker.drive(lambda: worker.states().get(pk) is not None)
    harness.evalai.set_phase("dev", end_date=harness.evalai.world.clock.now())
    harness.decide("challenge", "pause", "--finish")
    assert "no more submissions are received" in refusal(harness, *CLOSE)
    harness.decide("challenge", "pause")
    worker.drive(lambda: worker.state(pk) is State.FETCHED)
    assert "nothing is scored. `neuco-worker challenge pause --undo`" in refusal(harness, *CLOSE)


def test_values_are_shown_only_by_intention_and_then_stay(harness: Harness, worker: StepWorker) -> None:
    """A phase without scores, or that still takes submissions, is not closed by accident; nothing withholds what was shown.

    Another rule applies to earlier answers, too.
    """

    def asked(phase: str) -> bool:
        """Whether a close warns that it shows withheld values."""
        return "Withheld values" in harness.command("board", "close", "--phase", phase, "--now").stdout

    assert "has been scored yet" in refusal(harness, *CLOSE, "--now")
    pk, other = (harness.submit("A", embeddings(1), phase=phase) for phase in ("dev", "eval"))
    worker.drive()
    assert not {"q_mean"} & {*harness.stdout(pk), *harness.stdout(other)}
    assert "still takes submissions" in refusal(harness, *CLOSE)
    harness.decide("board", "publish", "--preview", str(harness.path.parent / "page"))
    harness.decide(*CLOSE, "--now")
    harness.decide(*CLOSE, "--undo")
    harness.configure({"phases": {"eval": {"shown": "at_once"}}})
    assert asked("eval"), "the change is not applied yet"
    assert "eval: Withheld values" in harness.decide("challenge", "apply", "--yes", "--reason", "a test")
    worker.drive()
    second = harness.submit("A", embeddings(2))
    worker.drive()
    assert "q_mean" in harness.stdout(pk)
    for phase, shown in (("dev", second), ("eval", other)):
        assert [row["q_mean"] for row in harness.boards(phase)] == [harness.stdout(shown)["q_mean"]]
    harness.configure({"phases": {"eval": {"shown": "at_end"}}})
    assert "were already shown" in refusal(harness, "challenge", "apply", "--yes", "--reason", "a test")
    assert not asked("eval")
