"""From a message or a listing to an answer: the usual cases, and what else EvalAI and participants may do."""

from __future__ import annotations

import json

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.sandbox import FaultPlan
from worker.state import State

BAD = b"id,0,1\nimg_000,1,2\n"


def order(harness: Harness, pk: int) -> list[str]:
    """Return when a submission was set to running and answered."""
    names = [effect.name for effect in harness.evalai.journal.effects(submission=pk)]
    return [name for name in names if name in ("running", "posted")]


def until_scored(harness: Harness, worker: StepWorker) -> int:
    """Submit a file whose answer then waits for the grid."""
    harness.configure({"submission": {"answer_grid": 60}})
    worker.restart()
    pk = harness.submit("A", embeddings(1))
    worker.drive(lambda: pk in worker.states() and worker.state(pk) is State.SCORED)
    return pk


def test_a_good_file_is_answered_with_one_entry_and_is_on_the_board(
    harness: Harness, worker: StepWorker
) -> None:
    """A success is set to running, then has JSON in stdout, nothing in stderr, one result equal to it, and a row on the board."""
    pk = harness.submit("A", embeddings(1))
    worker.drive()
    assert order(harness, pk) == ["running", "posted"]
    assert worker.state(pk) is State.PUBLISHED
    said = harness.stdout(pk)
    assert set(said) - {"receipt"} == {
        *("status", "q_mean", "more_than_allowed_probes_failed", "zarr_suffix_removed", "notes")
    }
    assert (said["status"], said["more_than_allowed_probes_failed"], said["notes"]) == (
        "completed",
        False,
        [],
    )
    assert harness.stderr(pk) == ""
    (post,) = harness.posts(pk)
    assert json.loads(post["result"]) == [
        {"split": "dev_split", "show_to_participant": True, "accuracies": {"q_mean": said["q_mean"]}}
    ]
    assert harness.teams() == ["A"]
    assert harness.evalai.queue_length() == 0


def test_a_malformed_file_fails_with_words_about_the_file_alone(harness: Harness, worker: StepWorker) -> None:
    """A failure is set to running, then has an empty stdout, its faults in stderr, no path, no traceback, and no place on the board."""
    pk = harness.submit("A", BAD)
    worker.drive()
    assert order(harness, pk) == ["running", "posted"]
    assert worker.state(pk) is State.FAILED
    assert (harness.status(pk), harness.evalai.text(pk, "stdout_file")) == ("failed", "")
    text = harness.stderr(pk)
    assert "column" in text
    assert not [
        word for word in ("alpha", "beta", "gamma", "Traceback", "/", "task", "label") if word in text
    ]
    assert harness.boards() == []


def test_equal_content_has_an_equal_score_from_the_stored_cells(harness: Harness, worker: StepWorker) -> None:
    """Shuffled rows and gzip change nothing: no cell is computed again, and the value is the same."""
    first = harness.submit("A", embeddings(1))
    worker.drive()
    with worker.store.read() as tx:
        before = tx.all_cells()
    again = [
        harness.submit("A", embeddings(1, shuffled=True)),
        harness.submit("B", embeddings(1, packed=True), file_name="x.csv.gz"),
    ]
    worker.drive()
    with worker.store.read() as tx:
        assert tx.all_cells() == before
    assert {harness.stdout(pk)["q_mean"] for pk in again} == {harness.stdout(first)["q_mean"]}
    assert len({worker.row(pk).content_hash for pk in [first, *again]}) == 1
    assert len({worker.row(pk).file_hash for pk in [first, *again]}) == 3


@pytest.mark.parametrize(("lost", "code"), [(False, "facts.phase_differs"), (True, "facts.file_elsewhere")])
def test_an_edited_phase_holds_the_submission(
    harness: Harness, worker: StepWorker, lost: bool, code: str
) -> None:
    """A phase that contradicts the message or, without one, the path of the file causes a hold, which ends once it is corrected."""
    worker.drive()  # compared with the listing: the next submission is brought by its message
    pk = harness.submit("A", embeddings(1))
    if lost:
        harness.evalai.lose_messages()
    harness.evalai.edit(pk, phase="eval")
    worker.drive(lambda: pk in worker.states() and worker.row(pk).hold is not None)
    assert (worker.alerts(), worker.row(pk).hold) == ({code}, code)
    assert order(harness, pk) == []
    harness.evalai.edit(pk, phase="dev")
    worker.finish(pk)
    assert worker.alerts() == set()


def test_a_phase_edited_after_scoring_lets_no_answer_leave(harness: Harness, worker: StepWorker) -> None:
    """Facts are read again before the answer, which waits until they no longer contradict each other."""
    pk = until_scored(harness, worker)
    harness.evalai.edit(pk, phase="eval")
    worker.wait(130)
    assert worker.state(pk) is State.SCORED
    assert "facts.phase_differs" in worker.alerts()
    assert harness.posts(pk) == []
    harness.evalai.edit(pk, phase="dev")
    worker.drive()
    (post,) = harness.posts(pk)
    assert post["status"] == "finished"


def test_a_replaced_file_holds_the_submission(harness: Harness, worker: StepWorker) -> None:
    """An input file that was exchanged after first sight is not scored."""
    harness.configure({"submission": {"disk_reserve_gigabytes": 10**9}})  # nothing is fetched yet
    worker.restart()
    pk = harness.submit("A", embeddings(1))
    worker.drive(lambda: pk in worker.states() and worker.state(pk) is State.ACKNOWLEDGED)
    harness.evalai.replace_file(pk, embeddings(2))
    worker.wait(25)
    assert worker.row(pk).hold == "facts.file_replaced"
    assert "facts.file_replaced" in worker.alerts()
    harness.configure({"submission": {"disk_reserve_gigabytes": 0}})
    worker.reload()
    worker.drive()
    assert worker.state(pk) is State.ACKNOWLEDGED
    assert harness.posts(pk) == []


def test_a_phase_nobody_configured_is_held_until_a_reload_names_it(
    harness: Harness, worker: StepWorker
) -> None:
    """A submission to a phase that the configuration does not name waits until it does."""
    harness.configure({"phases": {"eval": None}})
    document = harness.path.read_text().replace("  eval: null\n", "")
    harness.path.write_text(document)
    worker.restart()
    pk = harness.submit("A", embeddings(1), phase="eval")
    worker.drive()
    assert worker.row(pk).hold == "facts.phase_unconfigured"
    harness.configure(
        {"phases": {"eval": {"split": "eval_split", "tasks": "./tasks/eval", "ids": "./ids.txt", "folds": 4}}}
    )
    worker.reload()
    worker.finish(pk)
    assert "facts.phase_unconfigured" not in worker.alerts()


def test_a_phase_that_is_taken_out_when_its_scoring_is_to_begin_is_held(
    harness: Harness, worker: StepWorker
) -> None:
    """EvalAI shows the submission as running already; it is read again, and waits for a person."""
    assert harness.command("challenge", "pause").returncode == 0
    pk = harness.submit("A", embeddings(1), phase="eval")
    worker.drive(lambda: worker.states().get(pk) == "fetched")
    harness.configure({"phases": {"eval": None}})
    harness.path.write_text(harness.path.read_text().replace("  eval: null\n", ""))
    worker.reload()
    with worker.store.write() as tx:
        tx.move(pk, State.FETCHED, State.SCORING, running_at=worker.clock.now())
        tx.note(pk, remote_status="running", read_at=worker.clock.now())
    assert harness.command("challenge", "pause", "--undo").returncode == 0
    worker.drive(lambda: worker.row(pk).hold is not None)
    assert worker.row(pk).hold == "facts.phase_unconfigured"
    assert worker.outcomes(pk) == []


def test_an_answer_by_another_program_is_left_alone(harness: Harness, worker: StepWorker) -> None:
    """If another program answers during scoring, nothing is posted over it, and the organizer is told."""
    pk = until_scored(harness, worker)
    harness.evalai.edit(pk, status="finished")
    worker.drive()
    assert harness.posts(pk) == []
    assert worker.state(pk) is State.CANCELLED
    assert "submission.answered_elsewhere" in worker.alerts()


@pytest.mark.parametrize("ending", ["cancel", "delete"])
def test_what_was_ended_after_scoring_is_not_answered(
    harness: Harness, worker: StepWorker, ending: str
) -> None:
    """The submission is read again shortly before the answer would leave."""
    pk = until_scored(harness, worker)
    getattr(harness.evalai, ending)(pk)
    worker.drive()
    assert worker.state(pk) is State.CANCELLED
    assert harness.posts(pk) == []


def test_a_message_for_an_earlier_workers_answer_changes_nothing(
    harness: Harness, worker: StepWorker
) -> None:
    """A repeated message for what an earlier worker finished causes no new scoring."""
    pk = harness.submit("A", embeddings(1))
    harness.evalai.edit(pk, status="finished")
    worker.drive()
    assert worker.state(pk) is State.CANCELLED
    assert not harness.evalai.journal.effects("running", pk)
    assert harness.evalai.queue_length() == 0
    assert worker.alerts() == set()


@pytest.mark.parametrize("content", [embeddings(1), BAD], ids=["finished", "failed"])
def test_a_repeated_message_for_an_answered_submission_changes_nothing(
    harness: Harness, worker: StepWorker, content: bytes
) -> None:
    """There is no new running, post or commit; the message is deleted."""
    pk = harness.submit("A", content)
    worker.drive()
    commits, effects = harness.commits(), len(harness.evalai.journal.effects(submission=pk))
    harness.evalai.send_again(pk)
    worker.drive()
    later = [effect.name for effect in harness.evalai.journal.effects(submission=pk)[effects:]]
    assert set(later) <= {"message_sent", "message_received", "message_deleted"}
    assert harness.commits() == commits
    assert harness.evalai.queue_length() == 0


@pytest.mark.parametrize("content", [embeddings(1), BAD], ids=["finished", "failed"])
def test_a_reset_submission_is_posted_once_more_and_then_reported(
    harness: Harness, worker: StepWorker, content: bytes
) -> None:
    """After the first reset the same answer is posted again; the second reset only raises an alert."""
    pk = harness.submit("A", content)
    worker.drive()
    harness.evalai.edit(pk, status="submitted")
    worker.drive()
    first, second = harness.posts(pk)
    assert first == second
    assert worker.alerts() == set()
    assert len(worker.outcomes(pk)) == 1
    harness.evalai.edit(pk, status="running")
    worker.drive()
    worker.drive()
    assert len(harness.posts(pk)) == 2
    assert "submission.set_back" in worker.alerts()


def test_visibility_at_submission_counts_unless_told_otherwise(harness: Harness, worker: StepWorker) -> None:
    """A submission that was private at first stays off the board; with ``visibility: current`` it appears."""
    pk = harness.submit("A", embeddings(1), is_public=False)
    worker.drive()
    harness.evalai.edit(pk, is_public=True)
    worker.drive()
    assert harness.teams() == []
    harness.configure({"phases": {"dev": {"visibility": "current"}}})
    assert harness.command("challenge", "apply", "--yes", "--reason", "a test").returncode == 0
    worker.drive()
    assert harness.teams() == ["A"]
    harness.evalai.edit(pk, is_public=False)
    worker.drive()
    assert harness.teams() == []


def test_a_flag_a_deletion_and_a_cancellation_take_a_row_off_the_board(
    harness: Harness, worker: StepWorker
) -> None:
    """The listing brings the change; after it is undone, the row comes back."""
    pks = {team: harness.submit(team, embeddings(seed)) for seed, team in enumerate("ABCD")}
    worker.drive()
    assert set(harness.teams()) == set("ABCD")
    harness.evalai.edit(pks["A"], is_flagged=True)
    harness.evalai.delete(pks["B"])
    harness.evalai.cancel(pks["C"])
    worker.drive()
    assert harness.teams() == ["D"]
    harness.evalai.edit(pks["A"], is_flagged=False)
    worker.drive()
    assert set(harness.teams()) == {"A", "D"}


@pytest.mark.parametrize("status", ["submitted", "running"])
def test_the_listing_finds_a_submission_with_a_lost_message(
    harness: Harness, worker: StepWorker, status: str
) -> None:
    """A submission whose message never came, or that an earlier worker left running, is found and answered."""
    pk = harness.submit("A", embeddings(1))
    harness.evalai.lose_messages()
    harness.evalai.edit(pk, status=status)
    worker.finish(pk)
    assert not harness.evalai.journal.effects("message_received", pk)


def test_duplicated_and_reordered_messages_are_answered_once(harness: Harness, worker: StepWorker) -> None:
    """Each submission has one result, whatever the queue does, and in the end no message is left."""
    harness.evalai.set_faults(FaultPlan(duplicate=0.5, reorder=0.7, empty=0.3))
    pks = [harness.submit(team, embeddings(seed)) for seed, team in enumerate("ABCD")]
    worker.drive()
    harness.evalai.set_faults(FaultPlan())
    worker.wait(40)
    worker.drive()
    posts = harness.evalai.journal.posts()
    assert {pk: len(posts[pk]) for pk in pks} == dict.fromkeys(pks, 1)
    assert harness.evalai.queue_length() == 0


def test_a_message_for_another_challenge_is_left_where_it_is(harness: Harness, worker: StepWorker) -> None:
    """The worker must not delete it, and tells the organizer that the queue is wrong."""
    body = {"challenge_pk": "8", "phase_pk": "3", "submission_pk": 4}
    harness.evalai.world.queue.send(body)
    pk = harness.submit("A", embeddings(1))
    worker.finish(pk)
    assert harness.evalai.queue_length() == 1
    assert "queue.foreign" in worker.alerts()
    assert 4 not in worker.states()


def test_a_submission_that_is_missing_at_evalai_is_given_up(harness: Harness, worker: StepWorker) -> None:
    """A message for a submission that EvalAI does not know ends with its deletion."""
    body = {"challenge_pk": "7", "phase_pk": str(harness.evalai.phase_pk("dev")), "submission_pk": 4}
    harness.evalai.world.queue.send(body)
    worker.drive()
    assert worker.state(4) is State.CANCELLED
    assert harness.evalai.queue_length() == 0


def test_round_robin_between_teams_oldest_first_within_one(harness: Harness, worker: StepWorker) -> None:
    """Many files of one team do not delay another team's first."""
    many = [harness.submit("A", embeddings(seed)) for seed in range(5)]
    worker.drive(lambda: len(harness.evalai.journal.effects("running")) == 1)
    late = harness.submit("B", embeddings(5))
    worker.clock.advance(3)  # the queue is due to be looked at again
    # Go on once its file has been downloaded.
    worker.drive(lambda: worker.states().get(late) not in (None, "received", "acknowledged"))
    begun = len(harness.evalai.journal.effects("running"))
    worker.drive()
    order = [effect.submission for effect in harness.evalai.journal.effects("running")]
    assert [pk for pk in order if pk in many] == many
    assert order.index(late) <= begun + 1  # one more of the others may have been on its way
