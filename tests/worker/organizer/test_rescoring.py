"""Rescoring beside a worker that runs: board and answers stand on the same tasks in every moment, and nothing falls between old and new."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from scoring.errors import InfrastructureError, OrganizerError
from tests.worker.harness.gate import Gate
from tests.worker.harness.harness import NEW, Play, Stage, embeddings
from worker.fetching.housekeeping import worth_compressing
from worker.organizer.rescoring import carry_out, make_plan
from worker.organizer.session import open_session
from worker.sandbox import ManualClock
from worker.state import State, leader_lock


def huge() -> bytes:
    """Return embeddings that cannot be trained on as they are, only standardised."""
    head, *rows = embeddings(NEW).decode().splitlines()
    cells = [row.split(",") for row in rows]
    scaled = [
        ",".join([name, *(f"{float(value) * 1e37:.6g}" for value in values)]) for name, *values in cells
    ]
    return ("\n".join([head, *scaled]) + "\n").encode()


def rescoring_at(stage: Stage, moment: str) -> Callable[[str], None]:
    """Return a checkpoint that lets a rescore with another task happen when the worker first comes there."""
    left = [moment]

    def checkpoint(name: str) -> None:
        if name in left:
            left.remove(name)
            stage.add_task("late__regr", seed=1)
            assert stage.rescore() == 0

    return checkpoint


def test_the_board_follows_a_rescore_however_quickly_its_answers_are_posted(stage: Stage, play: Play) -> None:
    """A round of publishing that begins before the worker has read the new tasks takes nothing for published."""
    pk = stage.submit("A", embeddings(1), phase="eval")
    play.drive()
    for round_number in range(3):
        [before] = stage.boards("eval")
        stage.add_task(f"late{round_number}__regr", seed=round_number, phase="eval")
        assert stage.rescore("eval") == 1
        play.drive()
        [after] = stage.boards("eval")
        assert after["q_mean"] == stage.stdout(pk)["q_mean"] != before["q_mean"]
        play.clock.advance(0.7)  # the next rescore falls into another moment of the worker's looking around
    assert play.alerts() == set()


def test_an_edited_phase_goes_on_as_it_was_recorded(stage: Stage, play: Play) -> None:
    """Neither a start nor a decision of a person takes files up; `status` says that they differ, and a rescore takes them up."""
    stage.submit("A", embeddings(1))
    gone = stage.submit("B", embeddings(2))
    play.drive()
    board = {row["team"]: row["q_mean"] for row in stage.boards()}
    stage.add_task("early__regr", seed=1)
    play.restart()
    assert stage.command("challenge", "disqualify", str(gone), "--reason", "a test").returncode == 0
    play.drive()
    assert [(row["team"], row["q_mean"]) for row in stage.boards()] == [("A", board["A"])]
    assert play.alerts() == set()
    [told] = json.loads(stage.command("status", "--json").stdout)["differences"]
    assert told["phase"] == "dev"
    assert "its tasks or their labels changed" in told["sentence"]
    assert "challenge rescore" in told["cure"]
    assert "early" not in json.dumps(told)
    stage.rescore()
    assert json.loads(stage.command("status", "--json").stdout)["differences"] == []
    play.drive()
    assert [row["team"] for row in stage.boards()] == ["A"]
    assert stage.boards()[0]["q_mean"] != board["A"]


def test_a_board_shows_what_evalai_shows_while_epsilon_is_another(stage: Stage, play: Play) -> None:
    """Mean Q is that of the protocol that the scores stand on, whatever the configuration says meanwhile."""
    pk, gone = stage.submit("A", embeddings(1)), stage.submit("B", embeddings(2))
    play.drive()
    stage.configure({"scoring": {"epsilon": 0.5}})
    play.reload()
    assert stage.command("challenge", "disqualify", str(gone), "--reason", "a test").returncode == 0
    play.drive()
    assert stage.teams() == ["A"]
    assert stage.boards()[0]["q_mean"] == stage.stdout(pk)["q_mean"]
    assert "scoring.epsilon changed" in stage.command("status").stdout


def test_a_submission_under_way_is_answered_on_the_new_tasks(stage: Stage) -> None:
    """What it lacks of them is scored in another attempt; no answer stands on tasks that were given up meanwhile."""
    with stage.play(checkpoint=rescoring_at(stage, "after child evaluate")) as play:
        pk = stage.submit("A", embeddings(NEW))
        play.drive()
        assert play.outcomes(pk) == ["cancelled", "done"]
        [shown] = stage.boards()
        assert shown["q_mean"] == stage.stdout(pk)["q_mean"]
        assert len(stage.posts(pk)) == 1
        assert play.alerts() == set()


def test_what_is_answered_while_a_rescore_goes_on_is_rescored_too(stage: Stage, play: Play) -> None:
    """A daemon beside it answers from known cells of the old tasks; the new tasks are taken up when that row is complete as well."""
    first = stage.submit("A", embeddings(0))
    play.drive()
    late: list[int] = []

    def meanwhile(done: int, rows: int) -> None:
        if not late:
            assert (done, rows) == (0, 1)
            late.append(stage.submit("B", embeddings(1)))
            play.drive()
            assert play.state(late[0]) is State.PUBLISHED

    stage.add_task("late__regr", seed=2)
    with open_session(stage.path) as session:
        assert carry_out(session, make_plan(session, session.phase("dev")), progress=meanwhile) == 2
    play.drive()
    shown = {row["team"]: row["q_mean"] for row in stage.boards()}
    assert shown == {team: stage.stdout(pk)["q_mean"] for team, pk in (("A", first), ("B", late[0]))}
    assert all(len(stage.posts(pk)) == 2 for pk in (first, late[0]))


def rescored(stage: Stage, play: Play) -> int:
    """Rescore beside a worker that leads; it plays while the rescore waits for it."""
    configuration = play.worker.context.configuration
    with (
        closing(leader_lock(configuration.database_url, configuration.state_dir)) as lock,
        open_session(stage.path) as session,
    ):
        assert lock.take()
        plan = make_plan(session, session.phase("dev"))
        return carry_out(session, plan, tell=lambda _: play.drive(lambda: not wanted(play, open_only=True)))


def wanted(play: Play, *, open_only: bool = False) -> list[int]:
    """Return the submissions whose files are wanted again."""
    with play.store.read() as tx:
        return [request.submission for request in tx.wanted_files(open_only=open_only)]


def lose_file(play: Play, pk: int) -> str:
    """Remove the stored file of an answered submission; return its hash."""
    play.drive(
        lambda: not any(map(worth_compressing, play.worker.files.stored()))
    )  # none comes back from that
    file_hash = str(play.known(pk).file_hash)
    play.worker.files.remove(file_hash)
    return file_hash


def test_a_file_that_is_gone_is_fetched_again_for_a_rescore(stage: Stage, play: Play) -> None:
    """EvalAI is asked for a fresh address, on request alone; its answer and its attempts stay as they were until it is rescored."""
    gone, kept = stage.submit("A", embeddings(0)), stage.submit("B", embeddings(1))
    play.drive()
    file_hash = lose_file(play, gone)
    stage.evalai.expire_link(gone)
    play.drive()
    assert play.worker.files.find(file_hash) is None
    stage.add_task("late__regr", seed=3)
    assert rescored(stage, play) == 2
    assert play.worker.files.find(file_hash) is not None
    assert play.outcomes(gone, "fetch") == ["done"]
    assert wanted(play) == []
    play.drive()
    shown = {row["team"]: row["q_mean"] for row in stage.boards()}
    assert shown == {team: stage.stdout(pk)["q_mean"] for team, pk in (("A", gone), ("B", kept))}
    assert all(len(stage.posts(pk)) == 2 for pk in (gone, kept))
    assert play.alerts() == set()


@pytest.mark.parametrize(
    ("content", "reason"), [(embeddings(5), "another file"), (None, "answers no more .HTTP 404.")]
)
def test_a_file_that_cannot_be_had_stops_a_rescore_until_its_submission_is_disqualified(
    stage: Stage, play: Play, content: bytes | None, reason: str
) -> None:
    """The submission is named, with why; nothing is taken up by halves, and what is off the board needs no new cells."""
    gone, kept = stage.submit("A", embeddings(0)), stage.submit("B", embeddings(1))
    play.drive()
    lose_file(play, gone)
    media, path = stage.evalai.world.media, stage.evalai.world.submissions[gone].input_file
    if content is None:
        del media[path]
    else:
        media[path] = content
    before, stored = stage.boards(), sorted(play.worker.files.stored())
    stage.add_task("late__regr", seed=3)
    with pytest.raises(OrganizerError, match=f"{gone}: .*{reason}") as error:
        rescored(stage, play)
    assert error.value.code == "rescore.files_gone"
    assert sorted(play.worker.files.stored()) == stored
    play.drive()
    assert stage.boards() == before
    assert play.state(gone) is State.PUBLISHED
    assert len(stage.posts(gone)) == 1
    done = stage.command("challenge", "disqualify", str(gone), "--reason", "its file is lost")
    assert done.returncode == 0, done.stderr
    assert stage.rescore() == 1
    play.drive()
    assert stage.teams() == ["B"]
    assert stage.boards()[0]["q_mean"] == stage.stdout(kept)["q_mean"]


def test_what_a_rescore_asked_for_without_a_worker_is_fetched_by_the_next_one(
    stage: Stage, play: Play
) -> None:
    """The request stays, and housekeeping leaves the file alone, however old it is, until the rescore has been done."""
    pk = stage.submit("A", embeddings(0))
    play.drive()
    file_hash = lose_file(play, pk)
    stage.add_task("late__regr", seed=3)
    with pytest.raises(InfrastructureError, match="1 stored files") as error:
        stage.rescore()
    assert error.value.code == "rescore.no_leader"
    stage.configure({"submission": {"keep_days": 1e-6}})
    play.restart()
    play.drive(lambda: not wanted(play, open_only=True))
    stray = stage.state / "files" / "ab" / ("ab" * 32)
    stray.parent.mkdir(exist_ok=True)
    stray.touch()
    play.drive(lambda: not stray.exists())
    assert play.worker.files.find(file_hash) is not None
    assert stage.rescore() == 1
    play.drive(lambda: play.worker.files.find(file_hash) is None)


def test_an_answer_on_its_way_does_not_swallow_the_new_one(stage: Stage) -> None:
    """The old answer arrives after the rescore: the new one is posted over it, once."""
    gate = Gate("before call post")
    with stage.play(checkpoint=gate) as play:
        gate.close()
        pk = stage.submit("A", embeddings(0))
        play.drive(gate.reached)
        stage.add_task("late__regr", seed=4)
        assert stage.rescore() == 1
        gate.open()
        play.drive()
        old, new = stage.posts(pk)
        assert old != new
        assert stage.boards()[0]["q_mean"] == stage.stdout(pk)["q_mean"]
        known = play.known(pk)
        assert known.posted == known.answer
        assert known.state is State.PUBLISHED


def test_a_failure_on_tasks_that_were_given_up_is_tried_on_the_new_ones(stage: Stage) -> None:
    """What tells the team that training failed must be true of the tasks that count."""
    stage.configure({"scoring": {"standardize_embeddings": False}})
    with stage.play(checkpoint=rescoring_at(stage, "after child evaluate")) as play:
        pk = stage.submit("A", huge())
        play.drive()
        assert play.outcomes(pk) == ["cancelled", "participant"]
        assert len(stage.posts(pk)) == 1


def test_a_rerun_that_waits_keeps_its_original_on_the_board(stage: Stage, play: Play) -> None:
    """EvalAI shows the original as cancelled and takes no answer for it; its row counts until the re-run is answered."""
    old = stage.submit("A", embeddings(0))
    play.drive()
    assert stage.command("challenge", "pause").returncode == 0
    new = stage.evalai.rerun(old)
    play.drive(lambda: play.states().get(new) == "fetched" and play.known(old).remote_status == "cancelled")
    [before] = stage.boards()
    stage.add_task("late__regr", seed=5)
    stage.rescore()
    play.drive(lambda: stage.boards() != [before])
    assert [row["team"] for row in stage.boards()] == ["A"]
    assert play.state(old) is State.PUBLISHED
    assert len(stage.posts(old)) == 1
    assert stage.command("challenge", "resume").returncode == 0
    play.drive()
    assert stage.stdout(new)["q_mean"] == stage.boards()[0]["q_mean"]
    assert play.state(old) is State.SUPERSEDED


def test_what_cannot_be_scored_on_the_new_protocol_is_named(stage: Stage, play: Play) -> None:
    """Nothing is taken up until the organizer has decided about it; off the board it holds nothing up."""
    pk = stage.submit("A", huge())
    play.drive()
    before = stage.boards()
    assert before
    stage.configure({"scoring": {"standardize_embeddings": False}})
    with pytest.raises(OrganizerError, match=f"Submission {pk} cannot") as error:
        stage.rescore()
    assert error.value.code == "rescore.unscorable"
    play.drive()
    assert stage.boards() == before
    assert stage.command("challenge", "disqualify", str(pk), "--reason", "diverges").returncode == 0
    assert stage.rescore() == 0
    stage.rescore("eval")
    play.reload()
    play.drive()
    assert stage.boards() == []
    assert play.alerts() == set()


@pytest.mark.parametrize(
    ("limit", "code"), [("deadline", "rescore.deadline"), ("memory_gigabytes", "rescore.memory")]
)
def test_a_rescore_keeps_the_limits_of_a_submission_and_goes_on_once_they_are_raised(
    stage: Stage, play: Play, limit: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels that make the probes eat time or memory must not take the machine away from the worker beside it."""
    pk = stage.submit("A", embeddings(0))
    play.drive()
    before = stage.boards()
    stage.add_task("late__regr", seed=6)
    for need in ("BARE_BYTES", "READING_BYTES", "VALUE_BYTES"):
        monkeypatch.setattr(f"worker.runtime.limits.{need}", 0)  # else so low a limit is refused
    stage.configure({"submission": {limit: 1e-6}})
    with pytest.raises(InfrastructureError, match=f"submission {pk} .*submission.{limit}") as error:
        stage.rescore()
    assert error.value.code == code
    assert "goes on from there" in error.value.cure
    assert stage.boards() == before
    if limit == "deadline":
        stage.configure({"submission": {limit: 60}})
        assert stage.rescore() == 1
    else:
        done = stage.command("challenge", "disqualify", str(pk), "--reason", "eats memory")
        assert done.returncode == 0
        stage.rescore()


def test_a_rescore_commits_to_its_phase_alone(stage: Stage, play: Play) -> None:
    """Another phase's files may be in an editor: what was committed to of it stays."""
    stage.submit("A", embeddings(0))
    stage.submit("A", embeddings(0), phase="eval")
    play.drive()
    with play.store.read() as tx:
        before = tx.commitments()[-1][1]["manifests"]
    stage.add_task("edited__regr", seed=1, phase="eval")
    stage.add_task("late__regr", seed=2)
    stage.rescore("dev")
    assert stage.command("challenge", "commit").returncode == 0
    with play.store.read() as tx:
        after = [private["manifests"] for _, private in tx.commitments()[-2:]]
    assert all(manifests["eval"] == before["eval"] for manifests in after)
    assert "late" in {task["identifier"] for task in after[0]["dev"]["tasks"]}
    assert after[1] == after[0]


def test_a_running_worker_takes_up_what_nothing_was_scored_on(tmp_path: Path) -> None:
    """Tasks that are mended before the first score are committed to by hand, and scored on at once."""
    with Stage(tmp_path, clock=ManualClock()) as stage, stage.play() as play:
        play.drive()
        stage.add_task("late__regr", seed=1)
        assert stage.command("challenge", "commit", "--reason", "a task more").returncode == 0
        pk = stage.submit("A", embeddings(0))
        play.drive()
        with play.store.read() as tx:
            assert {cell["task"] for cell in tx.all_cells()} == {"alpha", "beta", "gamma", "late"}
            assert [public["reason"] for public, _ in tx.commitments()][1:] == ["a task more"]
        assert stage.status(pk) == "finished"
        assert play.alerts() == set()


def test_a_running_worker_takes_up_a_beacon(tmp_path: Path) -> None:
    """No restart is needed, and nothing is scored on splits that the beacon has no part in."""
    with Stage(tmp_path, clock=ManualClock()) as stage, stage.play() as play:
        play.drive()
        before = play.worker.context.phases["dev"].protocol.hash
        done = stage.command("challenge", "commit", "--beacon", "2026-12-01 drand 4821937")
        assert done.returncode == 0, done.stderr
        stage.submit("A", embeddings(0))
        play.drive()
        assert play.worker.context.phases["dev"].protocol.hash != before
        with play.store.read() as tx:
            assert tx.commitments()[-1][0]["reason"] == "a beacon was mixed in"
            assert {cell["protocol_hash"] for cell in tx.all_cells()} == {
                play.worker.context.phases["dev"].protocol.hash
            }
        assert play.alerts() == set()
