"""From a message or a listing to an answer: the usual cases, and what else EvalAI and participants may do."""

from __future__ import annotations

import json

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.sandbox import FaultPlan
from worker.state import State

pytestmark = pytest.mark.processes

BAD = b"id,0,1\nimg_000,1,2\n"


def effects(harness: Harness, *pks: int) -> list[list[str]]:
    """Return what happened to submissions at EvalAI, in order."""
    return [[effect.name for effect in harness.evalai.journal.effects(submission=pk)] for pk in pks]


def test_a_good_file_is_answered_with_one_entry_and_is_on_the_board(
    harness: Harness, worker: StepWorker
) -> None:
    """A success is set to running, then has JSON in stdout, nothing in stderr, one result equal to it, and a row on the board."""
    pk = harness.submit("A", embeddings(1))
    worker.drive()
    assert [name for name in effects(harness, pk)[0] if "message" not in name] == [
        *("submitted", "running", "posted")
    ]
    assert worker.state(pk) is State.PUBLISHED
    stdout = harness.stdout(pk)
    assert (stdout.keys(), stdout["status"], stdout["more_than_allowed_probes_failed"], stdout["notes"]) == (
        {
            *("status", "q_mean", "explanation", "more_than_allowed_probes_failed", "zarr_suffix_removed"),
            *("notes", "receipt"),
        },
        "completed",
        False,
        [],
    )
    assert harness.stderr(pk) == ""
    (post,) = harness.posts(pk)
    assert json.loads(post["result"]) == [
        {"split": "dev_split", "show_to_participant": True, "accuracies": {"q_mean": stdout["q_mean"]}}
    ]
    assert harness.teams() == ["A"]
    assert harness.evalai.queue_length() == 0


def test_an_answer_says_where_the_board_is_and_why_its_file_is_not_on_it(harness: Harness) -> None:
    """The line depends only on rules and visibility, so it tells nothing about a score, and stays true when the phase is closed."""
    page = "https://example.org/board/"
    harness.configure({"leaderboard": {"page": page}, "phases": {"eval": {"selection": "best"}}})
    with harness.worker() as worker:
        private = harness.submit("A", embeddings(1), is_public=False)
        last, best = harness.submit("A", embeddings(2)), harness.submit("A", embeddings(1), phase="eval")
        worker.drive()
    for pk, words in (
        (private, "is private, so it is on no board"),
        (last, "The board shows your team's last scored public submission."),
        (best, "with the highest mean Q"),
    ):
        assert words in harness.stdout(pk)["explanation"]
        assert harness.stdout(pk)["board"] == page


def test_a_malformed_file_fails_with_words_about_the_file_alone(harness: Harness, worker: StepWorker) -> None:
    """A failure is set to running, then has an empty stdout, its faults in stderr, no path, no traceback, and no place on the board."""
    pk = harness.submit("A", BAD)
    worker.drive()
    assert [name for name in effects(harness, pk)[0] if "message" not in name] == [
        *("submitted", "running", "posted")
    ]
    assert (worker.state(pk), harness.status(pk)) == (State.FAILED, "failed")
    text = harness.stderr(pk)
    assert (harness.evalai.text(pk, "stdout_file"), "column" in text, harness.boards()) == ("", True, [])
    assert not [
        word for word in ("alpha", "beta", "gamma", "Traceback", "/", "task", "label") if word in text
    ]


def test_answered_submissions_are_answered_once(harness: Harness, worker: StepWorker) -> None:
    """Another message changes nothing. After a reset, the same answer is posted once more; a second reset is told until it is undone."""
    pks = harness.submit("A", embeddings(1)), harness.submit("B", BAD)
    worker.drive()
    commits, before = harness.commits(), [len(names) for names in effects(harness, *pks)]
    for pk in pks:
        harness.evalai.send_again(pk)
    worker.drive()
    for names, number in zip(effects(harness, *pks), before, strict=True):
        assert set(names[number:]) <= {"message_sent", "message_received", "message_deleted"}
    assert (harness.commits(), harness.evalai.queue_length()) == (commits, 0)
    for status in ("submitted", "running"):
        assert worker.alerts() == set()
        for pk in pks:
            harness.evalai.edit(pk, status=status)
        worker.drive()
        worker.drive()
        for pk in pks:
            first, second = harness.posts(pk)
            assert (first, len(worker.outcomes(pk))) == (second, 1)
    assert worker.alerts() == {"submission.set_back"}
    for pk, status in zip(pks, ("finished", "failed"), strict=True):
        harness.evalai.edit(pk, status=status)
    worker.drive()
    assert worker.alerts() == set()


def test_equal_content_has_an_equal_score(harness: Harness, worker: StepWorker) -> None:
    """Shuffled rows and gzip change neither the content nor the value."""
    pks = [
        harness.submit("A", embeddings(1)),
        harness.submit("A", embeddings(1, shuffled=True)),
        harness.submit("B", embeddings(1, packed=True), file_name="x.csv.gz"),
    ]
    worker.finish(*pks)
    assert len({(worker.row(pk).content_hash, harness.stdout(pk)["q_mean"]) for pk in pks}) == 1
    assert len({worker.row(pk).file_hash for pk in pks}) == 3


def test_a_phase_that_was_edited_before_first_sight_changes_nothing(
    harness: Harness, worker: StepWorker
) -> None:
    """The message or, without one, the path of the file decides; a file that is exchanged after first sight changes nothing either."""
    harness.configure({"submission": {"disk_reserve_gigabytes": 10**9}})  # nothing is fetched yet
    worker.restart()
    worker.drive(lambda: worker.daemon.intake.drained)  # compared with the listing: messages bring the next
    lost = harness.submit("A", embeddings(1))
    harness.evalai.purge_queue()
    messaged, replaced = harness.submit("B", embeddings(1)), harness.submit("C", embeddings(1))
    for pk in (lost, messaged):
        harness.evalai.edit(pk, phase="eval")
    worker.drive(lambda: worker.states().get(replaced) == "acknowledged")
    harness.evalai.edit(
        replaced,
        input_file=harness.evalai.world.store(
            harness.evalai.world.submissions[replaced], "embeddings.csv", embeddings(2)
        ),
    )
    worker.wait(25)
    assert [(worker.row(pk).phase, worker.row(pk).hold) for pk in (lost, messaged)] == [("dev", None)] * 2
    assert worker.alerts() >= {"facts.changed"}
    harness.configure({"submission": {"disk_reserve_gigabytes": 0}})
    worker.reload()
    worker.finish(lost, messaged, replaced)
    assert worker.alerts() == {"facts.changed"}
    assert worker.row(replaced).content_hash == worker.row(lost).content_hash


def test_a_cancellation_after_scoring_keeps_the_answer_from_leaving(
    harness: Harness, worker: StepWorker
) -> None:
    """Facts are read again before the answer: a cancellation stops it; another phase or an answer of somebody else does not."""
    harness.configure({"submission": {"answer_grid": 60}})
    worker.restart()
    pks = edited, answered, cancelled, deleted = [harness.submit(team, embeddings(1)) for team in "ABCD"]
    worker.drive(lambda: set(worker.states().values()) == {"scored"})
    harness.evalai.edit(edited, phase="eval")
    harness.evalai.edit(answered, status="finished")
    harness.evalai.edit(cancelled, status="cancelled")
    harness.evalai.edit(deleted, ignore_submission=True)
    worker.wait(130)
    assert [worker.state(pk) for pk in pks] == [State.PUBLISHED] * 2 + [State.CANCELLED] * 2
    assert worker.alerts() == {"facts.changed"}
    assert [len(harness.posts(pk)) for pk in pks] == [1, 1, 0, 0]


def test_a_phase_nobody_configured_is_held_until_a_reload_names_it(
    harness: Harness, worker: StepWorker
) -> None:
    """It may be taken out when EvalAI shows the submission as running already; it is then read again, and waits for a person."""
    assert harness.command("challenge", "pause").returncode == 0
    pk = harness.submit("A", embeddings(1), phase="eval")
    worker.drive(lambda: worker.states().get(pk) == "fetched")
    document = harness.path.read_text()
    harness.configure({"phases": {"eval": None}})
    harness.path.write_text(harness.path.read_text().replace("  eval: null\n", ""))
    worker.reload()
    with worker.store.write() as tx:
        tx.move(pk, State.FETCHED, State.SCORING, running_at=worker.clock.now())
        tx.note(pk, evalai_shows=worker.row(pk).showing(status="running"), read_at=worker.clock.now())
    assert harness.command("challenge", "pause", "--undo").returncode == 0
    worker.drive(lambda: worker.row(pk).hold is not None)
    assert (worker.row(pk).hold, worker.outcomes(pk)) == ("facts.phase_unconfigured", [])
    harness.path.write_text(document)
    worker.reload()
    worker.finish(pk)
    assert worker.alerts() == set()


def test_a_phase_nobody_configured_is_left_to_others(harness: Harness) -> None:
    """A submission that its team cancels and takes up again is held before EvalAI would show it as running."""
    harness.configure({"phases": {"eval": None}})
    harness.path.write_text(harness.path.read_text().replace("  eval: null\n", ""))
    with harness.worker() as worker:
        worker.drive()
        pk = harness.submit("A", embeddings(1), phase="eval")
        harness.evalai.edit(pk, status="cancelled")
        worker.drive(lambda: worker.states().get(pk) == State.CANCELLED)
        harness.evalai.edit(pk, status="submitted")
        worker.drive(lambda: worker.row(pk).disputed)
    assert harness.status(pk) == "submitted"


def test_an_answer_that_is_sent_again_waits_for_its_phase_without_a_call(
    harness: Harness, worker: StepWorker
) -> None:
    """EvalAI shows it as finished all the time; the organizer is told, and it leaves once the configuration has the phase again."""
    pk = harness.submit("A", embeddings(1), phase="eval")
    worker.finish(pk)
    document = harness.path.read_text()
    harness.configure({"phases": {"eval": None}})
    harness.path.write_text(harness.path.read_text().replace("  eval: null\n", ""))
    worker.reload()
    with worker.store.write() as tx:  # as a rescore
        tx.move(pk, State.PUBLISHED, State.SCORED, decided_at=worker.clock.now())
    calls = len(harness.evalai.journal.requests())
    worker.drive(
        lambda: worker.row(pk).hold is not None or len(harness.evalai.journal.requests()) > calls + 9
    )
    assert worker.row(pk).hold == "facts.phase_unconfigured"
    harness.path.write_text(document)
    worker.reload()
    worker.drive(lambda: worker.state(pk) is State.PUBLISHED)
    assert (len(harness.posts(pk)), worker.alerts()) == (2, set())


def test_a_participants_message_decides_no_phase(harness: Harness, worker: StepWorker) -> None:
    """A participant can send one about any submission, and names the phase in it; only what EvalAI itself writes counts."""
    worker.drive()
    upload = harness.evalai.begin_upload("A", "dev")
    harness.evalai.send_again(upload, phase="eval")
    worker.drive(lambda: upload in worker.states())
    harness.evalai.finish_upload(upload, embeddings(1))
    worker.finish(upload)
    assert worker.row(upload).phase == "dev"


def test_a_message_about_another_challenges_submission_asks_for_nothing(
    harness: Harness, worker: StepWorker
) -> None:
    """It costs a reading; only if the submission is moved into this challenge, it is told."""
    worker.drive()
    harness.evalai.add_team("Else", elsewhere=True)
    pk = harness.submit("Else", embeddings(1), phase="elsewhere")
    harness.evalai.send_again(pk, phase="dev")
    worker.drive(lambda: worker.states().get(pk) == "cancelled")
    assert worker.alerts() == set()
    harness.evalai.edit(pk, phase="dev")
    worker.drive()
    assert (worker.state(pk), worker.alerts()) == (State.CANCELLED, {"facts.other_challenge"})


def test_a_number_that_evalai_gives_again_ends_a_resumed_submission(
    harness: Harness, worker: StepWorker
) -> None:
    """One that had an answer, and was to get another, needs none any more; readings go on."""
    first = harness.submit("A", BAD)
    worker.drive()
    assert harness.command("challenge", "pause").returncode == 0
    harness.evalai.resume(first)
    worker.drive(lambda: worker.state(first) is State.FETCHED)
    harness.evalai.world.submissions.clear()
    worker.clock.advance(60)
    assert harness.submit("B", embeddings(2)) == first
    worker.wait(60)
    assert (worker.state(first), worker.alerts()) == (State.CANCELLED, {"evalai.challenge_differs"})


def test_what_evalai_does_not_have_any_more_needs_no_answer(harness: Harness, worker: StepWorker) -> None:
    """Neither one that was resumed after its answer, nor an upload under way."""
    resumed, upload = harness.submit("A", BAD), harness.evalai.begin_upload("B", "dev")
    worker.drive()
    harness.evalai.resume(resumed)
    worker.drive(lambda: worker.state(resumed) is State.ACKNOWLEDGED)
    harness.evalai.world.submissions.clear()
    with worker.store.write() as tx:
        tx.note(upload, read_at=None)  # as when no page of the listing has its author
    worker.wait(120)
    assert {worker.state(pk) for pk in (resumed, upload)} == {State.CANCELLED}


def test_a_number_that_evalai_gives_again_gets_nothing_of_the_earlier_submission(
    harness: Harness, worker: StepWorker
) -> None:
    """After EvalAI was restored from a backup, another team's file may have it: it gets neither the answer nor the place of the first."""
    first = harness.submit("A", embeddings(1))
    worker.finish(first)
    for rows in (harness.evalai.world.submissions, harness.evalai.world.rows):
        rows.clear()
    worker.clock.advance(3600)
    assert harness.submit("B", embeddings(2)) == first
    worker.wait(60)
    assert (harness.status(first), len(harness.posts(first)), harness.teams()) == ("submitted", 1, ["A"])
    assert worker.alerts() == {"evalai.challenge_differs"}
    assert harness.command("challenge", "retry", str(first)).returncode == 0
    worker.wait(60)
    assert (len(harness.posts(first)), worker.state(first)) == (1, State.PUBLISHED)
    harness.evalai.edit(first, status="cancelled")
    worker.wait(60)
    worker.clock.advance(90000)
    worker.wait(60)
    assert worker.alerts() == set()


def test_messages_that_ask_for_nothing(harness: Harness, worker: StepWorker) -> None:
    """What an earlier worker finished is not scored, what EvalAI does not have is given up, and another challenge's message stays."""
    body = {"challenge_pk": "7", "phase_pk": str(harness.evalai.phase_pk("dev"))}
    for message in (body | {"submission_pk": 4}, body | {"submission_pk": 5, "challenge_pk": "8"}):
        harness.evalai.send_message(message)
    earlier, other = harness.submit("A", embeddings(1)), harness.submit("B", embeddings(1))
    harness.evalai.edit(earlier, status="finished")
    worker.finish(other)
    assert worker.states() == {4: "cancelled", earlier: "cancelled", other: "published"}
    assert not harness.evalai.journal.effects("running", earlier)
    assert worker.alerts() == {"queue.foreign", "restore.answered_since"}
    assert harness.evalai.queue_length() == 1
    assert harness.command("challenge", "retry", str(earlier)).returncode == 0
    worker.finish(earlier)
    assert (len(harness.posts(earlier)), harness.teams()) == (1, ["A", "B"])
    worker.advance(3600)
    assert worker.alerts() == {"queue.foreign"}


def test_the_listing_finds_submissions_with_a_lost_message(harness: Harness, worker: StepWorker) -> None:
    """Also one that an earlier worker left running."""
    pks = [harness.submit(team, embeddings(1)) for team in "AB"]
    harness.evalai.purge_queue()
    harness.evalai.edit(pks[1], status="running")
    worker.finish(*pks)
    assert not harness.evalai.journal.effects("message_received")


def test_duplicated_and_reordered_messages_are_answered_once(harness: Harness, worker: StepWorker) -> None:
    """Each submission has one result, whatever the queue does, and in the end no message is left."""
    harness.evalai.set_faults(FaultPlan(duplicate=0.5, reorder=0.7, empty=0.3))
    pks = [harness.submit(team, embeddings(seed)) for seed, team in enumerate("ABCD")]
    worker.drive()
    harness.evalai.set_faults(FaultPlan())
    worker.wait(40)
    worker.drive()
    assert [len(harness.posts(pk)) for pk in pks] == [1, 1, 1, 1]
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
