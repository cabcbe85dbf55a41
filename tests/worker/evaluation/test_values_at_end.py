"""Values at the end: answers only say that a file was scored, the board lists the teams, and closing the phase shows everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scoring.errors import InfrastructureError, OrganizerError
from tests.worker.harness.harness import Harness, StepWorker, embeddings, git
from worker.fairness.verify import Worth, receipt_verdicts, verdicts
from worker.fairness.verify.public import opened
from worker.organizer.board_by_hand import check_ended, wait_for_answers
from worker.organizer.session import open_session
from worker.sandbox import ManualClock


@pytest.fixture
def harness(tmp_path: Path, cells: Path) -> Iterator[Harness]:
    """A challenge whose development phase withholds its values."""
    changes = {"phases": {"dev": {"shown": "at_end"}}}
    with Harness(tmp_path, clock=ManualClock(), cells=cells, changes=changes) as harness:
        yield harness


def test_values_are_withheld_until_the_phase_is_closed(harness: Harness, worker: StepWorker) -> None:
    """Then answers are posted again with values, boards and ranks appear, and a verification finds no contradiction."""
    one, two = harness.submit("B", embeddings(1)), harness.submit("A", embeddings(2))
    refused = harness.submit("C", b"no embeddings")
    worker.drive()
    for pk in (one, two):
        [post] = harness.posts(pk)
        document = harness.stdout(pk)
        assert (post["status"], json.loads(post["result"])) == ("finished", [])
        assert "q_mean" not in document
        assert "when the organizers close this phase" in document["explanation"]
        assert document["receipt"]["q_mean"] is None
    assert harness.status(refused) == "failed"
    shown = json.loads(git(harness.board, "show", "main:leaderboard/dev.json"))
    assert [(row["team"], row["submissions"]) for row in shown["waiting"]] == [("A", 1), ("B", 1)]
    assert shown["entries"] == []
    first = harness.stdout(one)["receipt"]
    with opened(str(harness.board)) as public:
        assert [one.sentence for one in verdicts(public) if one.worth is Worth.CONTRADICTED] == []

    too_early = harness.command(
        "challenge", "reveal", "--phase", "dev", "--open", "--yes", "--reason", "a test"
    )
    assert (too_early.returncode, "Close a phase before you reveal it" in too_early.stderr) == (2, True)
    closed = harness.command("board", "freeze", "--phase", "dev", "--now", "--yes", "--reason", "a test")
    assert (closed.returncode, "posts the withheld values to EvalAI" in closed.stdout) == (0, True)
    worker.drive()
    rows = {row["submission"]: row["q_mean"] for row in harness.boards()}
    assert {pk: harness.stdout(pk)["q_mean"] for pk in (one, two)} == rows
    [accuracies] = [entry["accuracies"] for entry in json.loads(harness.posts(one)[-1]["result"])]
    assert accuracies == {"q_mean": rows[one]}
    late = harness.submit("D", embeddings(3))
    worker.drive()
    assert_closed(harness, late)
    assert set(rows) == {row["submission"] for row in harness.boards()}
    worker.stop()
    done = harness.command("challenge", "reveal", "--yes", "--reason", "a test")
    assert done.returncode == 0, done.stderr
    worker.start()
    last = harness.submit("E", embeddings(4))
    worker.drive()
    assert_closed(harness, last)
    worker.stop()
    assert harness.command("board", "publish").returncode == 0
    with opened(str(harness.board)) as public:
        found = [*verdicts(public), *receipt_verdicts(public, first)]
        for pk in (late, last):
            found += receipt_verdicts(public, harness.stdout(pk)["receipt"])
    assert [one.sentence for one in found if one.worth is Worth.CONTRADICTED] == []
    assert any(
        f"ubmission {one} of team B counts on the final board" in verdict.sentence for verdict in found
    )


def assert_closed(harness: Harness, pk: int) -> None:
    """Check the answer to a submission that came after the close: it has no value, does not count, and says why."""
    document = harness.stdout(pk)
    assert (harness.status(pk), json.loads(harness.posts(pk)[-1]["result"])) == ("finished", [])
    assert ("q_mean" in document, document["counts"]) == (False, False)
    assert "was closed before" in document["explanation"]
    assert (document["receipt"]["q_mean"], document["receipt"]["counts"]) == (None, False)


def test_a_phase_that_takes_submissions_is_not_closed_by_accident(
    harness: Harness, worker: StepWorker
) -> None:
    """While EvalAI takes submissions to it, the close wants --now; once the phase has ended there, it does not."""
    harness.submit("A", embeddings(1))
    worker.drive()
    refused = harness.command("board", "freeze", "--phase", "dev", "--yes", "--reason", "a test")
    assert (refused.returncode, "still takes submissions" in refused.stderr) == (2, True)
    harness.evalai.world.phase("dev").end_date = harness.evalai.world.clock.now()
    with open_session(harness.path) as session:
        check_ended(session, "dev")


def test_closing_waits_for_earlier_submissions(harness: Harness, worker: StepWorker) -> None:
    """It says so if no worker is running; a submission that a person must settle is named."""
    harness.submit("A", embeddings(1))
    worker.drive()
    worker.stop()
    harness.submit("B", embeddings(2))
    harness.evalai.world.phase("dev").end_date = harness.evalai.world.clock.now()
    with (
        open_session(harness.path) as session,
        pytest.raises(InfrastructureError, match="No worker is running"),
    ):
        wait_for_answers(session, "dev", tell=print)
    refused = harness.command("board", "freeze", "--phase", "dev", "--yes", "--reason", "a test")
    assert refused.returncode == 1
    assert "--now" in refused.stderr


def test_a_phase_that_shows_its_values_after_all_posts_them(harness: Harness, worker: StepWorker) -> None:
    """The rule applies to earlier answers. A phase without scores is not closed, because later values would be shown at once."""
    refused = harness.command("board", "freeze", "--phase", "dev", "--now", "--yes", "--reason", "a test")
    assert (refused.returncode, "has been scored yet" in refused.stderr) == (2, True)
    pk = harness.submit("A", embeddings(1))
    worker.drive()
    assert "q_mean" not in harness.stdout(pk)
    preview = harness.command("board", "publish", "--preview", str(harness.path.parent / "page"))
    assert preview.returncode == 0, preview.stderr
    harness.configure({"phases": {"dev": {"shown": "at_once"}}})
    assert harness.command("challenge", "apply", "--yes", "--reason", "a test").returncode == 0
    worker.drive()
    assert [row["q_mean"] for row in harness.boards()] == [harness.stdout(pk)["q_mean"]]


def test_values_that_were_shown_are_never_withheld_again(harness: Harness, worker: StepWorker) -> None:
    """Neither opening a closed phase nor a later change of the rule withholds them."""
    harness.submit("A", embeddings(1), phase="eval")
    pk = harness.submit("A", embeddings(1))
    worker.drive()
    for undo in ([], ["--undo"]):
        assert (
            harness.command(
                "board", "freeze", "--phase", "dev", "--now", "--yes", "--reason", "a test", *undo
            ).returncode
            == 0
        )
    worker.drive()
    second = harness.submit("A", embeddings(2))
    worker.drive()
    assert "q_mean" in harness.stdout(pk)
    assert [row["q_mean"] for row in harness.boards()] == [harness.stdout(second)["q_mean"]]
    harness.configure({"phases": {"eval": {"shown": "at_end"}}})
    late = harness.command("challenge", "apply", "--yes", "--reason", "a test")
    assert late.returncode == 2
    assert "were already shown" in late.stderr
    with pytest.raises(OrganizerError), open_session(harness.path) as session:
        wait_for_answers(session, "nowhere", tell=print)
