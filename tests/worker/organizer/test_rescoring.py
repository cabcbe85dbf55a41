"""Rescoring while a worker runs: board and answers always use the same tasks, and no submission is missed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scoring.errors import InfrastructureError, OrganizerError
from tests.worker.harness.gate import Gate
from tests.worker.harness.harness import NEW, Harness, StepWorker, embeddings
from worker.organizer.rescoring import carry_out, expected_s, make_plan
from worker.organizer.session import open_session
from worker.sandbox import ManualClock
from worker.state import State


def huge() -> bytes:
    """Return embeddings that can be trained on only after standardization."""
    head, *rows = embeddings(NEW).decode().splitlines()
    cells = [row.split(",") for row in rows]
    scaled = [
        ",".join([name, *(f"{float(value) * 1e37:.6g}" for value in values)]) for name, *values in cells
    ]
    return ("\n".join([head, *scaled]) + "\n").encode()


def rescoring_at(harness: Harness, moment: str, *, name: str = "late") -> Callable[[str], None]:
    """Return a checkpoint function that rescores with another task when the worker first reaches a checkpoint."""
    left = [moment]

    def checkpoint(reached: str) -> None:
        if reached in left:
            left.remove(reached)
            harness.add_task(f"{name}__regr", seed=len(name))
            assert harness.rescore() == 0

    return checkpoint


def test_the_board_follows_a_rescore_however_quickly_its_answers_are_posted(
    harness: Harness, worker: StepWorker
) -> None:
    """A publish cycle from before the change does not mark the new answers as published."""
    pk = harness.submit("A", embeddings(1), phase="eval")
    worker.drive()
    for round_number in range(2):
        [before] = harness.boards("eval")
        harness.add_task(f"late{round_number}__regr", seed=round_number, phase="eval")
        assert harness.rescore("eval") == 1
        worker.drive()
        [after] = harness.boards("eval")
        assert after["q_mean"] == harness.stdout(pk)["q_mean"] != before["q_mean"]
        worker.clock.advance(0.7)  # the next rescore falls into another moment of the worker's looking around
    assert worker.alerts() == set()


def test_an_edited_phase_keeps_its_record(harness: Harness, worker: StepWorker) -> None:
    """Neither a start nor an organizer's decision applies changed files and settings; `status` reports them, and a rescore applies them."""

    def differing() -> list[dict[str, str]]:
        document = json.loads(harness.command("status", "--json").stdout)
        assert document["waiting"] == 0  # who has an answer already does not wait for the new one
        return [difference for difference in document["differences"] if difference["phase"] == "dev"]

    pk, gone = harness.submit("A", embeddings(1)), harness.submit("B", embeddings(2))
    worker.drive()
    board = {row["team"]: row["q_mean"] for row in harness.boards()}
    harness.add_task("early__regr", seed=1)
    harness.configure({"scoring": {"epsilon": 0.5}})
    worker.restart()
    harness.decide("challenge", "disqualify", str(gone), "--reason", "a test")
    worker.drive()
    assert [(row["team"], row["q_mean"]) for row in harness.boards()] == [("A", board["A"])]
    assert worker.alerts() == set()
    [difference] = differing()
    assert "its tasks or their labels, scoring.epsilon changed" in difference["sentence"]
    assert "challenge apply" in difference["cure"]
    assert "early" not in json.dumps(difference)
    harness.rescore()
    assert differing() == []
    worker.drive()
    [row] = harness.boards()
    assert (row["team"], row["q_mean"]) == ("A", harness.stdout(pk)["q_mean"])
    assert row["q_mean"] != board["A"]


def test_a_submission_under_way_is_answered_on_the_new_tasks(harness: Harness) -> None:
    """Its missing cells are scored in another attempt; no answer uses dropped tasks, and a failure is tried on the new ones."""
    harness.configure({"scoring": {"standardize_embeddings": False}})
    with harness.worker(checkpoint=rescoring_at(harness, "after child evaluate")) as worker:
        bad = harness.submit("B", huge())
        worker.drive()
        assert worker.outcomes(bad) == ["cancelled", "participant"]
    with harness.worker(checkpoint=rescoring_at(harness, "after child evaluate", name="later")) as worker:
        pk = harness.submit("A", embeddings(NEW))
        worker.drive()
        assert worker.outcomes(pk) == ["cancelled", "done"]
        assert [row["q_mean"] for row in harness.boards()] == [harness.stdout(pk)["q_mean"]]
        assert len(harness.posts(pk)) == len(harness.posts(bad)) == 1
        assert worker.alerts() == set()


def test_what_is_answered_while_a_rescore_goes_on_is_rescored_too(
    harness: Harness, worker: StepWorker
) -> None:
    """A running daemon answers from cells of the old tasks; the new tasks apply once that row is complete as well."""
    first = harness.submit("A", embeddings(0))
    worker.drive()
    late: list[int] = []

    def meanwhile(done: int, rows: int) -> None:
        if not late:
            assert (done, rows) == (0, 1)
            late.append(harness.submit("B", embeddings(1)))
            worker.drive()
            assert worker.state(late[0]) is State.PUBLISHED

    harness.add_task("late__regr", seed=2)
    with open_session(harness.path) as session:
        plan = make_plan(session, session.phase("dev"))
        assert (expected_s(session, plan) or 0) > 0
        assert carry_out(session, plan, progress=meanwhile) == 2
    worker.drive()
    shown = {row["team"]: row["q_mean"] for row in harness.boards()}
    assert shown == {team: harness.stdout(pk)["q_mean"] for team, pk in (("A", first), ("B", late[0]))}
    assert all(len(harness.posts(pk)) == 2 for pk in (first, late[0]))


def test_a_missing_file_stops_a_rescore_until_its_submission_is_disqualified(
    harness: Harness, worker: StepWorker
) -> None:
    """The submission is named; nothing is applied in part, and a row off the board needs no new cells."""
    gone, kept = harness.submit("A", embeddings(0)), harness.submit("B", embeddings(1))
    worker.drive()
    worker.daemon.files.remove(str(worker.row(gone).file_hash))
    before = harness.boards()
    harness.add_task("late__regr", seed=3)
    with pytest.raises(OrganizerError, match=rf"of 1 submission are missing \({gone}\)") as error:
        harness.rescore()
    assert error.value.code == "rescore.files_gone"
    worker.drive()
    assert harness.boards() == before
    assert worker.state(gone) is State.PUBLISHED
    assert len(harness.posts(gone)) == 1
    harness.decide("challenge", "disqualify", str(gone), "--reason", "its file is lost")
    assert harness.rescore() == 1
    worker.drive()
    assert harness.teams() == ["B"]
    assert harness.boards()[0]["q_mean"] == harness.stdout(kept)["q_mean"]


def test_an_answer_on_its_way_does_not_swallow_the_new_one(harness: Harness) -> None:
    """If the old answer arrives after the rescore, the new one is posted over it, once."""
    gate = Gate("before call post")
    with harness.worker(checkpoint=gate) as worker:
        gate.close()
        pk = harness.submit("A", embeddings(0))
        worker.drive(gate.reached)
        harness.add_task("late__regr", seed=4)
        assert harness.rescore() == 1
        gate.open()
        worker.drive()
        old, new = harness.posts(pk)
        assert old != new
        assert harness.boards()[0]["q_mean"] == harness.stdout(pk)["q_mean"]
        row = worker.row(pk)
        assert row.posted == row.answer
        assert row.state is State.PUBLISHED


def test_a_rerun_that_waits_keeps_its_original_on_the_board(harness: Harness, worker: StepWorker) -> None:
    """EvalAI shows the original as cancelled and accepts no answer for it; its row counts until the re-run is answered."""
    old = harness.submit("A", embeddings(0))
    worker.drive()
    harness.decide("challenge", "pause")
    new = harness.evalai.rerun(old)
    worker.drive(
        lambda: worker.states().get(new) == "fetched" and worker.row(old).remote_status == "cancelled"
    )
    [before] = harness.boards()
    harness.add_task("late__regr", seed=5)
    harness.rescore()
    worker.drive(lambda: harness.boards() != [before])
    assert [row["team"] for row in harness.boards()] == ["A"]
    assert worker.state(old) is State.PUBLISHED
    assert len(harness.posts(old)) == 1
    harness.decide("challenge", "pause", "--undo")
    worker.drive()
    assert harness.stdout(new)["q_mean"] == harness.boards()[0]["q_mean"]
    assert worker.state(old) is State.SUPERSEDED


def test_what_cannot_be_scored_on_the_new_protocol_is_named(harness: Harness, worker: StepWorker) -> None:
    """Nothing is applied until the organizer has decided about it; off the board it stops nothing."""
    pk = harness.submit("A", huge())
    worker.drive()
    before = harness.boards()
    assert before
    harness.configure({"scoring": {"standardize_embeddings": False}})
    with pytest.raises(OrganizerError, match=f"Submission {pk} cannot") as error:
        harness.rescore()
    assert error.value.code == "rescore.unscorable"
    worker.drive()
    assert harness.boards() == before
    harness.decide("challenge", "disqualify", str(pk), "--reason", "diverges")
    assert harness.rescore() == 0
    harness.rescore("eval")
    worker.reload()
    worker.drive()
    assert harness.boards() == []
    assert worker.alerts() == set()


def test_a_rescore_keeps_the_limits_of_a_submission_and_goes_on_once_they_are_raised(
    harness: Harness, worker: StepWorker
) -> None:
    """Labels that make the probes use much time must not slow down the running worker."""
    pk = harness.submit("A", embeddings(0))
    worker.drive()
    before = harness.boards()
    harness.add_task("late__regr", seed=6)
    harness.configure({"submission": {"deadline": 1e-6}})
    with pytest.raises(InfrastructureError, match=f"submission {pk} .*submission.deadline") as error:
        harness.rescore()
    assert error.value.code == "rescore.deadline"
    assert "continues where it stopped" in error.value.cure
    assert harness.boards() == before
    harness.configure({"submission": {"deadline": 60}})
    assert harness.rescore() == 1


def test_a_rescore_commits_to_its_phase_alone(harness: Harness, worker: StepWorker) -> None:
    """Another phase's files may be half edited, so its commitment is unchanged."""
    harness.submit("A", embeddings(0))
    harness.submit("A", embeddings(0), phase="eval")
    worker.drive()
    with worker.store.read() as tx:
        before = tx.commitments()[-1][1]["manifests"]
    harness.add_task("edited__regr", seed=1, phase="eval")
    harness.add_task("late__regr", seed=2)
    harness.rescore("dev")
    harness.decide("challenge", "apply", "--new-key", "--reason", "a test")
    with worker.store.read() as tx:
        after = [private["manifests"] for _, private in tx.commitments()[-2:]]
    assert all(manifests["eval"] == before["eval"] for manifests in after)
    assert "late" in {task["identifier"] for task in after[0]["dev"]["tasks"]}
    assert after[1] == after[0]


def test_a_running_worker_takes_up_what_nothing_was_scored_on(tmp_path: Path) -> None:
    """Tasks corrected before the first score can be committed to by command, and are used at once."""
    with Harness(tmp_path, clock=ManualClock()) as harness, harness.worker() as worker:
        worker.drive()
        harness.add_task("late__regr", seed=1)
        harness.decide("challenge", "apply", "--reason", "a task more")
        pk = harness.submit("A", embeddings(0))
        worker.drive()
        with worker.store.read() as tx:
            assert {cell.task for cell in tx.all_cells()} == {"alpha", "beta", "gamma", "late"}
            assert [public["reason"] for public, _ in tx.commitments()][1:] == ["a task more"]
        assert harness.status(pk) == "finished"
        assert worker.alerts() == set()
