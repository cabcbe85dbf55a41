"""From a message or a listing to an answer: the ordinary ways, and what EvalAI and participants do besides."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.worker.harness.gate import Gate
from tests.worker.harness.harness import Play, Stage, embeddings
from worker.evalai import Message
from worker.intake.facts import take_message
from worker.sandbox import FaultPlan, QueueFaults
from worker.state import Errand, State

BAD = b"id,0,1\nimg_000,1,2\n"


def test_a_good_file_is_answered_with_one_entry_and_stands_on_the_board(stage: Stage, play: Play) -> None:
    """A success has JSON in stdout, nothing in stderr, one result equal to it, and a row on the board."""
    pk = stage.submit("A", embeddings(1))
    play.drive()
    assert play.state(pk) is State.PUBLISHED
    said = stage.stdout(pk)
    assert set(said) - {"receipt"} == {
        *("status", "q_mean", "more_than_allowed_probes_failed", "zarr_suffix_removed", "notes")
    }
    assert said["status"] == "completed"
    assert said["more_than_allowed_probes_failed"] is False
    assert said["notes"] == []
    assert stage.stderr(pk) == ""
    (post,) = stage.posts(pk)
    assert json.loads(post["result"]) == [
        {"split": "dev_split", "show_to_participant": True, "accuracies": {"q_mean": said["q_mean"]}}
    ]
    assert stage.teams() == ["A"]
    assert stage.evalai.queue_length() == 0


def test_a_malformed_file_fails_with_words_about_the_file_alone(stage: Stage, play: Play) -> None:
    """A failure has an empty stdout, its faults in stderr, no path, no traceback, and no place on the board."""
    pk = stage.submit("A", BAD)
    play.drive()
    assert play.state(pk) is State.FAILED
    assert stage.status(pk) == "failed"
    assert stage.evalai.text(pk, "stdout_file") == ""
    text = stage.stderr(pk)
    assert "column" in text
    assert 0 < len(text) <= 2000
    for hidden in ("alpha", "beta", "gamma", "Traceback", "/", "task", "label"):
        assert hidden not in text
    assert stage.boards() == []


def test_a_private_submission_is_scored_but_not_shown(stage: Stage, play: Play) -> None:
    """A private submission gets its result and causes no commit."""
    public = stage.submit("A", embeddings(1))
    play.drive()
    commits = stage.commits()
    private = stage.submit("B", embeddings(2), is_public=False)
    play.drive()
    assert play.state(private) is State.PUBLISHED
    assert stage.stdout(private)["status"] == "completed"
    assert stage.teams() == ["A"]
    assert stage.commits() == commits
    assert stage.status(public) == "finished"


def test_every_submission_is_running_before_it_is_scored(stage: Stage, play: Play) -> None:
    """EvalAI is told ``running`` once, before the answer, for good and bad files alike."""
    pks = [stage.submit("A", embeddings(1)), stage.submit("B", BAD)]
    play.drive()
    for pk in pks:
        names = [effect.name for effect in stage.evalai.journal.effects(submission=pk)]
        assert [name for name in names if name in ("running", "posted")] == ["running", "posted"]


def test_equal_content_has_an_equal_score_from_the_stored_cells(stage: Stage, play: Play) -> None:
    """Shuffled rows and gzip change nothing: no cell is made anew, the value is the same."""
    first = stage.submit("A", embeddings(1))
    play.drive()
    with play.store.read() as tx:
        before = tx.matrix(play.worker.context.phases["dev"].protocol.hash)
    again = [
        stage.submit("A", embeddings(1, shuffled=True)),
        stage.submit("B", embeddings(1, packed=True), file_name="x.csv.gz"),
    ]
    play.drive()
    with play.store.read() as tx:
        assert tx.matrix(play.worker.context.phases["dev"].protocol.hash) == before
    assert {stage.stdout(pk)["q_mean"] for pk in again} == {stage.stdout(first)["q_mean"]}
    assert len({play.known(pk).content_hash for pk in [first, *again]}) == 1
    assert len({play.known(pk).file_hash for pk in [first, *again]}) == 3


def test_two_phases_have_boards_of_their_own(stage: Stage, play: Play) -> None:
    """The same file has another score in another phase, and stands on that phase's board."""
    dev, ev = stage.submit("A", embeddings(1)), stage.submit("B", embeddings(1), phase="eval")
    play.drive()
    assert stage.teams("dev") == ["A"]
    assert stage.teams("eval") == ["B"]
    assert stage.stdout(dev)["q_mean"] != stage.stdout(ev)["q_mean"]
    assert '"eval_split"' in stage.posts(ev)[0]["result"]


def test_an_edited_phase_holds_the_submission(stage: Stage, play: Play) -> None:
    """A phase that differs between message and submission holds it; set right, it goes on by itself."""
    play.drive()  # compared with the listing: the next submission is brought by its message
    pk = stage.submit("A", embeddings(1))
    stage.evalai.edit(pk, phase="eval")
    play.drive(lambda: pk in play.states() and play.known(pk).hold is not None)
    assert "facts.phase_differs" in play.alerts()
    assert play.known(pk).hold == "facts.phase_differs"
    assert stage.posts(pk) == []
    assert not stage.evalai.journal.effects("running", pk)
    stage.evalai.edit(pk, phase="dev")
    play.drive()
    assert stage.status(pk) == "finished"
    assert "facts.phase_differs" not in play.alerts()


def test_a_phase_that_disagrees_with_the_files_path_is_held(stage: Stage, play: Play) -> None:
    """Found by the listing, without a message, the edited phase still disagrees with the path of the file."""
    pk = stage.submit("A", embeddings(1))
    stage.evalai.lose_messages()
    stage.evalai.edit(pk, phase="eval")
    play.drive()
    assert play.known(pk).hold == "facts.file_elsewhere"
    assert "facts.file_elsewhere" in play.alerts()
    assert stage.posts(pk) == []
    stage.evalai.edit(pk, phase="dev")
    play.drive()
    assert stage.status(pk) == "finished"


def test_a_phase_edited_after_scoring_lets_no_answer_leave(stage: Stage, play: Play) -> None:
    """Facts are read again before the answer; while they disagree it stays here, and then it leaves."""
    stage.configure({"submission": {"answer_grid": 60}})
    play.restart()
    pk = stage.submit("A", embeddings(1))
    play.drive(
        lambda: (
            play.worker.intake.session.connected and pk in play.states() and play.state(pk) is State.SCORED
        )
    )
    stage.evalai.edit(pk, phase="eval")
    play.wait(130)
    assert play.state(pk) is State.SCORED
    assert "facts.phase_differs" in play.alerts()
    assert stage.posts(pk) == []
    stage.evalai.edit(pk, phase="dev")
    play.drive()
    (post,) = stage.posts(pk)
    assert post["status"] == "finished"


def test_a_replaced_file_holds_the_submission(stage: Stage, play: Play) -> None:
    """An input file that was exchanged after first sight is not scored."""
    stage.configure({"submission": {"disk_reserve_gigabytes": 10**9}})  # nothing is fetched yet
    play.restart()
    pk = stage.submit("A", embeddings(1))
    play.drive(lambda: pk in play.states() and play.state(pk) is State.ACKNOWLEDGED)
    stage.evalai.replace_file(pk, embeddings(2))
    play.wait(25)
    assert play.known(pk).hold == "facts.file_replaced"
    assert "facts.file_replaced" in play.alerts()
    stage.configure({"submission": {"disk_reserve_gigabytes": 0}})
    play.reload()
    play.drive()
    assert play.state(pk) is State.ACKNOWLEDGED
    assert stage.posts(pk) == []


def test_a_phase_nobody_configured_is_held_until_a_reload_names_it(stage: Stage, play: Play) -> None:
    """A submission to a phase of EvalAI's that the configuration does not name waits; named, it goes on."""
    stage.configure({"phases": {"eval": None}})
    document = stage.path.read_text().replace("  eval: null\n", "")
    stage.path.write_text(document)
    play.restart()
    pk = stage.submit("A", embeddings(1), phase="eval")
    play.drive()
    assert play.known(pk).hold == "facts.phase_unconfigured"
    stage.configure(
        {"phases": {"eval": {"split": "eval_split", "tasks": "./tasks/eval", "ids": "./ids.txt", "folds": 4}}}
    )
    play.reload()
    play.drive()
    assert stage.status(pk) == "finished"
    assert "facts.phase_unconfigured" not in play.alerts()


def test_a_phase_that_is_taken_out_when_its_scoring_is_to_begin_is_held(stage: Stage, play: Play) -> None:
    """EvalAI shows the submission as running already; it is read again, and waits for a person."""
    assert stage.command("challenge", "pause").returncode == 0
    pk = stage.submit("A", embeddings(1), phase="eval")
    play.drive(lambda: play.states().get(pk) == "fetched")
    stage.configure({"phases": {"eval": None}})
    stage.path.write_text(stage.path.read_text().replace("  eval: null\n", ""))
    play.reload()
    with play.store.write() as tx:
        tx.move(pk, State.FETCHED, State.SCORING, running_at=play.clock.now())
        tx.note(pk, remote_status="running", read_at=play.clock.now())
    assert stage.command("challenge", "resume").returncode == 0
    play.drive(lambda: play.known(pk).hold is not None)
    assert play.known(pk).hold == "facts.phase_unconfigured"
    assert play.outcomes(pk) == []


@pytest.mark.parametrize("ending", ["cancel", "delete"])
def test_what_was_ended_before_scoring_is_not_scored(stage: Stage, play: Play, ending: str) -> None:
    """A cancelled or deleted submission is neither run nor answered, and its message goes."""
    pk = stage.submit("A", embeddings(1))
    getattr(stage.evalai, ending)(pk)
    play.drive()
    assert play.state(pk) is State.CANCELLED
    assert not stage.evalai.journal.effects("running", pk)
    assert stage.posts(pk) == []
    assert stage.evalai.queue_length() == 0


@pytest.mark.parametrize("ending", ["cancel", "delete"])
def test_what_was_ended_after_scoring_is_not_answered(stage: Stage, play: Play, ending: str) -> None:
    """The submission is read again shortly before the answer would leave."""
    stage.configure({"submission": {"answer_grid": 60}})
    play.restart()
    pk = stage.submit("A", embeddings(1))
    play.drive(lambda: pk in play.states() and play.state(pk) is State.SCORED)
    getattr(stage.evalai, ending)(pk)
    play.drive()
    assert play.state(pk) is State.CANCELLED
    assert stage.posts(pk) == []


def test_an_answer_of_somebody_else_is_left_alone(stage: Stage, play: Play) -> None:
    """Finished elsewhere while we worked: nothing is posted over it, and the organizer hears of it."""
    stage.configure({"submission": {"answer_grid": 60}})
    play.restart()
    pk = stage.submit("A", embeddings(1))
    play.drive(lambda: pk in play.states() and play.state(pk) is State.SCORED)
    stage.evalai.edit(pk, status="finished")
    play.drive()
    assert stage.posts(pk) == []
    assert play.state(pk) is State.CANCELLED
    assert "submission.answered_elsewhere" in play.alerts()


def test_a_message_for_one_answered_before_our_time_changes_nothing(stage: Stage, play: Play) -> None:
    """A re-send of what an earlier worker finished is not scored again."""
    pk = stage.submit("A", embeddings(1))
    stage.evalai.edit(pk, status="finished")
    play.drive()
    assert play.state(pk) is State.CANCELLED
    assert not stage.evalai.journal.effects("running", pk)
    assert stage.evalai.queue_length() == 0
    assert play.alerts() == set()


def test_a_rerun_is_answered_from_the_cells_and_replaces_the_old(stage: Stage, play: Play) -> None:
    """A re-run has a new pk: the same score, no new cell, one row on the board, the old one superseded."""
    old = stage.submit("A", embeddings(1))
    stage.submit("B", embeddings(2))
    play.drive()
    before = stage.teams()
    new = stage.evalai.rerun(old)
    play.drive()
    assert play.state(old) is State.SUPERSEDED
    assert play.state(new) is State.PUBLISHED
    assert stage.stdout(new)["q_mean"] == stage.stdout(old)["q_mean"]
    assert stage.teams() == before
    assert {row["submission"] for row in stage.boards()} >= {new}
    assert len(stage.posts(old)) == 1
    assert stage.status(old) == "cancelled"


def test_a_resumed_one_is_evaluated_again_under_its_pk(stage: Stage, play: Play) -> None:
    """Resume keeps the pk; the file is read again and answered again."""
    pk = stage.submit("A", BAD)
    play.drive()
    stage.evalai.resume(pk)
    play.drive()
    assert play.state(pk) is State.FAILED
    posts = stage.posts(pk)
    assert len(posts) == 2
    assert posts[0] == posts[1]
    assert len(play.outcomes(pk)) == 2
    assert stage.evalai.queue_length() == 0


@pytest.mark.parametrize("content", [embeddings(1), BAD], ids=["finished", "failed"])
def test_a_resend_of_an_answered_one_changes_nothing(stage: Stage, play: Play, content: bytes) -> None:
    """No further running, post or commit; the message goes."""
    pk = stage.submit("A", content)
    play.drive()
    commits, effects = stage.commits(), len(stage.evalai.journal.effects(submission=pk))
    stage.evalai.send_again(pk)
    stage.evalai.send_again(pk)
    play.drive()
    later = [effect.name for effect in stage.evalai.journal.effects(submission=pk)[effects:]]
    assert set(later) <= {"message_sent", "message_received", "message_deleted"}
    assert stage.commits() == commits
    assert stage.evalai.queue_length() == 0


@pytest.mark.parametrize("content", [embeddings(1), BAD], ids=["finished", "failed"])
def test_one_set_back_is_posted_once_more_and_then_reported(stage: Stage, play: Play, content: bytes) -> None:
    """The first setting back brings the same answer again, the second an alert and nothing else."""
    pk = stage.submit("A", content)
    play.drive()
    stage.evalai.edit(pk, status="submitted")
    play.drive()
    posts = stage.posts(pk)
    assert len(posts) == 2
    assert posts[0] == posts[1]
    assert "submission.set_back" not in play.alerts()
    assert len(play.outcomes(pk)) == 1
    stage.evalai.edit(pk, status="running")
    play.drive()
    play.drive()
    assert len(stage.posts(pk)) == 2
    assert "submission.set_back" in play.alerts()


def test_visibility_at_submission_counts_unless_told_otherwise(stage: Stage, play: Play) -> None:
    """What was private at first sight stays off the board; with ``visibility: current`` it comes."""
    pk = stage.submit("A", embeddings(1), is_public=False)
    play.drive()
    stage.evalai.edit(pk, is_public=True)
    play.drive()
    assert stage.teams() == []
    stage.configure({"phases": {"dev": {"visibility": "current"}}})
    assert stage.command("challenge", "rules", "--reason", "a test").returncode == 0
    play.drive()
    assert stage.teams() == ["A"]
    stage.evalai.edit(pk, is_public=False)
    play.drive()
    assert stage.teams() == []


def test_a_flag_a_deletion_and_a_cancellation_take_a_row_off_the_board(stage: Stage, play: Play) -> None:
    """The listing brings what changed after scoring; undone, the row comes back."""
    pks = {team: stage.submit(team, embeddings(seed)) for seed, team in enumerate("ABCD")}
    play.drive()
    assert set(stage.teams()) == set("ABCD")
    stage.evalai.edit(pks["A"], is_flagged=True)
    stage.evalai.delete(pks["B"])
    stage.evalai.cancel(pks["C"])
    play.drive()
    assert stage.teams() == ["D"]
    stage.evalai.edit(pks["A"], is_flagged=False)
    play.drive()
    assert set(stage.teams()) == {"A", "D"}


def test_a_new_team_name_and_a_baseline_mark_reach_the_board(stage: Stage, play: Play) -> None:
    """A renamed team keeps its row under the new name; a baseline loses its number."""
    stage.submit("A", embeddings(1))
    pk = stage.submit("B", embeddings(2))
    play.drive()
    stage.evalai.rename_team("A", "Alpha & Co")
    stage.evalai.edit(pk, is_baseline=True)
    play.drive()
    assert set(stage.teams()) == {"Alpha & Co", "B"}
    assert [row["team"] for row in stage.boards() if row["baseline"]] == ["B"]


def test_a_lost_message_is_made_up_for_by_the_listing(stage: Stage, play: Play) -> None:
    """A submission whose message never came is found and answered."""
    pk = stage.submit("A", embeddings(1))
    stage.evalai.lose_messages()
    play.drive()
    assert stage.status(pk) == "finished"
    assert not stage.evalai.journal.effects("message_received", pk)


def test_what_an_earlier_worker_left_running_is_taken_up(stage: Stage, play: Play) -> None:
    """A crash of any earlier worker leaves ``running`` ones that nobody works on."""
    pk = stage.submit("A", embeddings(1))
    stage.evalai.lose_messages()
    stage.evalai.edit(pk, status="running")
    play.drive()
    assert stage.status(pk) == "finished"


def test_duplicated_and_reordered_messages_are_answered_once(stage: Stage, play: Play) -> None:
    """Each submission has one result, whatever the queue does; in the end no message is left."""
    stage.evalai.set_faults(FaultPlan(queue=QueueFaults(duplicate=0.5, reorder=0.7, empty=0.3)))
    pks = [stage.submit(team, embeddings(seed)) for seed, team in enumerate("ABCD")]
    play.drive()
    stage.evalai.set_faults(FaultPlan())
    play.wait(40)
    play.drive()
    posts = stage.evalai.journal.posts()
    assert {pk: len(posts[pk]) for pk in pks} == dict.fromkeys(pks, 1)
    assert stage.evalai.queue_length() == 0


def test_the_newest_receipt_is_the_one_that_deletes(stage: Stage, play: Play) -> None:
    """A message that came twice is owed one deletion, under its newest handle."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with play.store.write() as tx:
        for handle in ("old", "new"):
            take_message(
                tx,
                Message(submission_pk=5, phase_pk=1, challenge_pk=7, receipt_handle=handle),
                now=now,
            )
        (owed,) = tx.owed(Errand.DELETE, 5)
    assert owed.receipt == "new"


def test_a_stale_handle_deletes_nothing_and_the_message_goes_when_it_comes_again(stage: Stage) -> None:
    """A message that became visible again before its deletion is received and deleted under the newer handle."""
    gate = Gate("before call delete")
    gate.close()
    with stage.play(checkpoint=gate) as play:
        pk = stage.submit("A", embeddings(1))
        play.drive(gate.reached)
        stage.evalai.show_messages()
        other = stage.evalai.world.queue.receive(
            play.clock.monotonic()
        )  # somebody else gets it under a newer handle
        assert other is not None
        gate.open()
        play.drive()
        assert stage.evalai.journal.effects("delete_ignored")
        play.wait(40)
        play.drive()
        assert stage.evalai.queue_length() == 0
        assert len(stage.posts(pk)) == 1


def test_a_message_for_another_challenge_is_left_where_it_is(stage: Stage, play: Play) -> None:
    """It is not ours to delete; the organizer hears that the queue is wrong."""
    body = {"challenge_pk": "8", "phase_pk": "3", "submission_pk": 4}
    stage.evalai.world.queue.send(body, group="x", now_s=play.clock.monotonic())
    pk = stage.submit("A", embeddings(1))
    play.drive()
    assert stage.status(pk) == "finished"
    assert stage.evalai.queue_length() == 1
    assert "queue.foreign" in play.alerts()
    assert 4 not in play.states()


def test_a_submission_that_is_gone_is_let_go(stage: Stage, play: Play) -> None:
    """A message for a submission that EvalAI does not know ends with its deletion."""
    body = {"challenge_pk": "7", "phase_pk": str(stage.evalai.phase_pk("dev")), "submission_pk": 4}
    stage.evalai.world.queue.send(body, group="x", now_s=play.clock.monotonic())
    play.drive()
    assert play.state(4) is State.CANCELLED
    assert stage.evalai.queue_length() == 0


def test_round_robin_between_teams_oldest_first_within_one(stage: Stage, play: Play) -> None:
    """Many files of one team do not hold up another's first."""
    many = [stage.submit("A", embeddings(seed)) for seed in range(5)]
    play.drive(lambda: len(stage.evalai.journal.effects("running")) == 1)
    late = stage.submit("B", embeddings(5))
    play.clock.advance(3)  # the queue is due to be looked at again
    play.drive(lambda: play.states().get(late) not in (None, "received", "acknowledged"))  # its file is here
    begun = len(stage.evalai.journal.effects("running"))
    play.drive()
    order = [effect.submission for effect in stage.evalai.journal.effects("running")]
    assert [pk for pk in order if pk in many] == many
    assert order.index(late) <= begun + 1  # one more of the others may have been on its way


def test_trials_of_hosts_are_answered_like_others(stage: Stage, play: Play) -> None:
    """A host's own submission is scored and answered, and not shown."""
    pk = stage.submit(stage.evalai.settings.host_team, embeddings(1))
    play.drive()
    assert stage.status(pk) == "finished"
    assert stage.teams() == []
