"""Rescoring while a worker runs: board and answers always use the same tasks, and no submission is missed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scoring.errors import NeucoError, OrganizerError
from tests.waiting import LIMIT_S
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.gate import Gate
from tests.worker.harness.harness import NEW, Harness, StepWorker, embeddings
from worker.evaluation.evaluate_child import EvaluationOrder
from worker.evaluation.stored import FillRow
from worker.organizer.applying import commit_to_changes, read_change
from worker.organizer.rescoring import carry_out, expected_s, fill, make_plan
from worker.organizer.session import open_session
from worker.state import State

pytestmark = pytest.mark.processes


def huge() -> bytes:
    """Return embeddings that can be trained on only after standardization."""
    head, *rows = embeddings(NEW).decode().splitlines()
    cells = [row.split(",") for row in rows]
    scaled = [
        ",".join([name, *(f"{float(value) * 1e37:.6g}" for value in values)]) for name, *values in cells
    ]
    return ("\n".join([head, *scaled]) + "\n").encode()


def test_an_edited_phase_keeps_its_record(harness: Harness, worker: StepWorker) -> None:
    """Neither a start nor an organizer's decision applies changed files and settings; `status` reports them, and a rescore applies them.

    It commits to its phase alone, because another phase's files may be half edited.
    """

    def differing() -> list[dict[str, str]]:
        document = json.loads(harness.command("status", "--json").stdout)
        assert document["waiting"] == 0  # who has an answer already does not wait for the new one
        return [difference for difference in document["differences"] if difference["phase"] == "dev"]

    pk, gone = harness.submit("A", embeddings(1)), harness.submit("B", embeddings(2))
    worker.drive()
    board = {row["team"]: row["q_mean"] for row in harness.boards()}
    harness.add_task("early__regr", seed=1)
    harness.add_task("edited__regr", seed=1, phase="eval")
    harness.configure({"scoring": {"epsilon": 0.5}})
    worker.restart()
    harness.decide("challenge", "disqualify", str(gone), "--reason", "a test")
    worker.drive()
    assert [(row["team"], row["q_mean"]) for row in harness.boards()] == [("A", board["A"])]
    assert worker.alerts() == set()
    [difference] = differing()
    assert "its tasks or their labels, scoring.epsilon changed" in difference["sentence"]
    assert "challenge apply" in difference["hint"]
    assert "early" not in json.dumps(difference)
    harness.rescore()
    with worker.store.read() as tx:
        (_, first), *_, (_, last) = tx.commitments()
    assert last["manifests"]["eval"] == first["manifests"]["eval"]
    assert "early" in {task["identifier"] for task in last["manifests"]["dev"]["tasks"]}
    assert differing() == []
    worker.drive()
    [row] = harness.boards()
    assert (row["team"], row["q_mean"]) == ("A", harness.stdout(pk)["q_mean"])
    assert row["q_mean"] != board["A"]


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


def test_two_commands_can_fill_the_same_row(
    harness: Harness, worker: StepWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither removes the files that the other one's child is to read."""
    harness.submit("A", embeddings(0))
    worker.drive()
    harness.add_task("late__regr", seed=2)
    write_order, begun = FillRow.order, list[FillRow]()

    def meanwhile(act: FillRow) -> EvaluationOrder:
        order = write_order(act)
        begun.append(act)
        if len(begun) == 1:
            with open_session(harness.path) as other:
                fill(other, plan.setup, plan.missing[0])
        return order

    with open_session(harness.path) as session:
        plan = make_plan(session, session.phase("dev"))
        monkeypatch.setattr(FillRow, "order", meanwhile)
        assert carry_out(session, plan) == 1
    assert len(begun) == 2


def test_of_two_changes_at_once_the_later_one_stands(harness: Harness, worker: StepWorker) -> None:
    """A rescore that has read older files does not take back what another command has applied meanwhile."""
    harness.submit("A", embeddings(0))
    worker.drive()
    tasks = harness.folder / "tasks" / "dev"
    (tasks / "gamma__regr.csv").unlink()
    with open_session(harness.path) as session:
        plan = make_plan(session, session.phase("dev"))
        (tasks / "beta__cls.csv").unlink()
        assert harness.rescore() == 1
        with pytest.raises(OrganizerError, match="Another command has changed the tasks"):
            carry_out(session, plan, reason="of another change")
        again = make_plan(session, session.phase("dev"))
        assert not again.due
        assert carry_out(session, again) == 0  # two equal changes are one


def test_what_is_scored_before_the_yes_is_not_committed_to_anew(
    tmp_path: Path, fork_server: ForkServer
) -> None:
    """No commitment gives the reason of a change that needs a rescore by now, and is not made."""
    with (
        Harness(tmp_path, fork_server=fork_server) as harness,
        harness.worker() as worker,
        open_session(harness.path) as session,
    ):
        worker.drive()
        harness.add_task("late__regr", seed=2)
        change = read_change(session, "dev")
        assert change.differing
        harness.submit("A", embeddings(0))
        worker.drive()
        with pytest.raises(OrganizerError, match="was scored meanwhile"):
            commit_to_changes(session, [change], reason="a label was wrong")
        with session.store.read() as tx:
            assert len(tx.commitments()) == 1


def test_an_answer_on_its_way_does_not_swallow_the_new_one(harness: Harness) -> None:
    """If the old answer arrives after the rescore, the new one is posted over it, once."""
    gate = Gate("before call post")
    with harness.worker(checkpoint=gate) as worker:
        gate.close()
        pk = harness.submit("A", embeddings(0))
        worker.drive(gate.reached)
        (harness.folder / "tasks" / "dev" / "gamma__regr.csv").unlink()
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
    (harness.folder / "tasks" / "dev" / "gamma__regr.csv").unlink()
    harness.rescore()
    worker.drive(lambda: harness.boards() != [before] and worker.state(old) is State.PUBLISHED)
    assert [row["team"] for row in harness.boards()] == ["A"]
    assert len(harness.posts(old)) == 1
    harness.decide("challenge", "pause", "--undo")
    worker.drive()
    assert harness.stdout(new)["q_mean"] == harness.boards()[0]["q_mean"]
    assert worker.state(old) is State.SUPERSEDED


def test_a_submission_under_way_is_answered_on_the_new_tasks(harness: Harness) -> None:
    """Its missing cells are scored in another attempt; no answer uses dropped tasks, and a failure is tried on the new ones."""
    harness.configure({"scoring": {"standardize_embeddings": False}})
    due: list[str] = []

    def rescore(reached: str) -> None:
        if due and reached == "after child evaluate":
            harness.add_task(f"{due[0]}__regr", seed=len(due.pop()))
            assert harness.rescore() == 0

    for content, ended in ((huge(), "participant"), (embeddings(NEW), "done")):
        due.append(ended)
        with harness.worker(checkpoint=rescore) as worker:
            pk = harness.submit("A", content)
            worker.drive()
            assert worker.outcomes(pk) == ["cancelled", ended]
            assert len(harness.posts(pk)) == 1
            assert worker.alerts() == set()
    assert [row["q_mean"] for row in harness.boards()] == [harness.stdout(pk)["q_mean"]]


def test_what_stops_a_rescore_is_named_and_nothing_is_applied_in_part(
    harness: Harness, worker: StepWorker
) -> None:
    """A missing file, or embeddings that have no score by the new protocol, until they are disqualified; a limit, until it is raised."""
    gone, kept, bad = (
        harness.submit(team, file)
        for team, file in zip("ABC", (embeddings(0), embeddings(1), huge()), strict=True)
    )
    worker.drive()

    def values() -> dict[str, float]:
        return {row["team"]: row["q_mean"] for row in harness.boards()}

    def refused(words: str) -> str:
        with pytest.raises(NeucoError, match=words) as error:
            harness.rescore()
        worker.drive()
        assert values().items() <= before.items()
        assert [len(harness.posts(pk)) for pk in (gone, kept, bad)] == [1, 1, 1]
        return error.value.code

    before = values()
    assert set(before) == {"A", "B", "C"}
    worker.daemon.files.remove(str(worker.row(gone).file_hash))
    harness.add_task("late__regr", seed=3)
    harness.configure({"scoring": {"standardize_embeddings": False}, "submission": {"deadline": 1e-6}})
    assert refused(rf"of 1 submission are missing \({gone}\)") == "rescore.files_gone"
    harness.decide("challenge", "disqualify", str(gone), "--reason", "its file is lost")
    assert refused(r"Submission \d+ .*submission.deadline") == "rescore.unscorable"
    harness.configure({"submission": {"deadline": LIMIT_S}})
    assert refused(f"Submission {bad} cannot") == "rescore.unscorable"
    harness.decide("challenge", "disqualify", "--team", str(worker.row(bad).team_key), "--reason", "diverges")
    assert harness.rescore() == 1
    harness.rescore("eval")
    worker.reload()
    worker.drive()
    assert values() == {"B": harness.stdout(kept)["q_mean"]}
    assert worker.alerts() == set()


def test_what_differs_and_who_would_move_is_said_before_the_yes(harness: Harness, worker: StepWorker) -> None:
    """The tasks, how many labels differ, and the ranks that the next board then has; until the yes, nothing has changed."""
    for seed, team in enumerate("ABCD"):
        harness.submit(team, embeddings(seed))
    worker.drive()
    ranks = {row["team"]: row["rank"] for row in harness.boards()}
    edited, dropped, *_ = sorted((harness.folder / "tasks" / "dev").iterdir())
    head, *lines = edited.read_text().splitlines()
    edited.write_text(
        "\n".join([head, *(f"{line.partition(',')[0]},{row % 7}" for row, line in enumerate(lines[:-1]))])
        + "\n"
    )
    dropped.unlink()
    harness.add_task("late__regr", seed=5)
    before = harness.commits()
    asked = harness.command("challenge", "apply", "--phase", "dev")
    assert asked.returncode == 1
    assert (
        f"dev: {edited.stem.partition('__')[0]}: {len(lines) - 1} of {len(lines) - 1} labels differ, 0 added, 1 removed;"
        f" {dropped.stem.partition('__')[0]} is dropped; late is new, with {len(lines)} labels."
        in asked.stdout
    )
    assert "Nothing has been done yet" in asked.stdout
    refused = harness.command("challenge", "apply", "--phase", "dev", "--yes")
    assert (refused.returncode, refused.stdout) == (2, "")
    said = harness.decide("challenge", "apply", "--phase", "dev")
    assert harness.commits() == before
    worker.drive()
    after = {row["team"]: row["rank"] for row in harness.boards()}
    moved = [f"{team} from {ranks[team]} to {rank}" for team, rank in after.items() if ranks[team] != rank]
    assert moved
    assert f"dev: {', '.join(moved)}." in said
    harness.decide("board", "close", "--phase", "dev", "--now")
    harness.add_task("later__regr", seed=6)
    asked = harness.command("challenge", "apply", "--phase", "dev")
    assert "dev: all answers, but not the closed board, change; a new commitment is made" in asked.stdout
