"""Downloads: tried again for ever, never anybody's fault but for size, and never with our token; and large uploads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import pytest

from tests.worker.harness.harness import Play, Stage, embeddings
from worker.evalai import Message
from worker.fetching import uploads
from worker.fetching.stage import Fetching
from worker.intake.facts import take_message
from worker.runtime.runner import LOOK_S
from worker.sandbox import Fault, FaultPlan
from worker.state import Errand, State


def test_a_failed_download_is_tried_again(stage: Stage, play: Play) -> None:
    """Faults of the file store cost time, never a submission."""
    stage.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.TRUNCATED,)))
    stage.evalai.faults.plan = FaultPlan(probability=0.0)
    pk = stage.submit("A", embeddings(1))
    play.drive(lambda: pk in play.states())
    stage.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.ERROR_BEFORE, Fault.TRUNCATED)))
    play.drive(lambda: len(play.outcomes(pk, "fetch")) >= 4)
    assert set(play.outcomes(pk, "fetch")) - {None} == {"infrastructure"}
    assert play.state(pk) is State.ACKNOWLEDGED
    stage.evalai.set_faults(FaultPlan())
    play.drive()
    assert stage.status(pk) == "finished"
    assert play.alerts() == set()


def test_an_expired_link_is_read_again(stage: Stage, play: Play) -> None:
    """The submission's next reading brings a fresh address of the same file."""
    stage.configure({"submission": {"disk_reserve_gigabytes": 10**9}})
    play.reload()
    pk = stage.submit("A", embeddings(1))
    play.drive(lambda: pk in play.states() and play.state(pk) is State.ACKNOWLEDGED)
    stage.evalai.expire_link(pk)
    stage.configure({"submission": {"disk_reserve_gigabytes": 0}, "evalai": {"reconcile_every": 100_000}})
    play.reload()
    play.drive(lambda: play.state(pk) is State.PUBLISHED)
    assert play.outcomes(pk, "fetch") == ["infrastructure", "done"]
    assert play.known(pk).hold is None


def test_too_large_a_file_fails_with_its_limit(stage: Stage, play: Play) -> None:
    """The one fault of a download that is its author's."""
    stage.configure({"submission": {"max_megabytes": 0.001}})
    play.reload()
    pk = stage.submit("A", embeddings(1))
    play.drive()
    assert play.state(pk) is State.FAILED
    assert "0.001 MB" in stage.stderr(pk)
    assert stage.evalai.text(pk, "stdout_file") == ""
    assert stage.evalai.queue_length() == 0


def test_the_token_never_reaches_the_file_store(stage: Stage, play: Play) -> None:
    """No request to the other origin carries an Authorization header."""
    for seed, team in enumerate("ABC"):
        stage.submit(team, embeddings(seed))
    play.drive()
    media = [entry for entry in stage.evalai.journal.requests() if entry.origin == "media"]
    assert len(media) == 3
    assert not any(entry.detail["authorization"] for entry in media)
    api = [entry for entry in stage.evalai.journal.requests() if entry.origin == "api"]
    assert all(entry.detail["authorization"] for entry in api)


@contextmanager
def dripping(start: bytes) -> Iterator[tuple[str, threading.Event]]:
    """Serve a store that begins to answer and then sends a byte now and then, without end; return its host and whether it was asked."""
    asked, ended = threading.Event(), threading.Event()

    def serve() -> None:
        with suppress(OSError):  # whoever asked is gone
            connection, _ = listener.accept()
            with connection:
                connection.sendall(start)
                asked.set()
                while not ended.wait(0.05):
                    connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}", asked
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\nX-Endless: ", b"HTTP/1.1 200 OK\r\n\r\n"],
    ids=["headers", "body"],
)
def test_a_store_that_drips_is_left_at_the_deadline(stage: Stage, start: bytes) -> None:
    """Whatever part of its answer never ends, the file is given up in time, with its child, and tried again."""
    with dripping(start) as (host, asked):
        stage.configure(
            {
                "submission": {"disk_reserve_gigabytes": 10**9},
                "evalai": {"media_hosts": [host], "reconcile_every": 100_000},
            }
        )
        with stage.play() as play:
            pk = stage.submit("A", embeddings(1))
            play.drive(lambda: pk in play.states() and play.state(pk) is State.ACKNOWLEDGED)
            with play.store.write() as tx:
                tx.note(pk, input_file=f"http://{host}/file")
            stage.configure({"submission": {"disk_reserve_gigabytes": 0}})
            play.reload()
            worker = play.worker
            worker.fetching = Fetching(worker.context, worker.files, deadline_s=2.5 * LOOK_S)
            play.drive(asked.is_set)
            for _ in range(3):
                assert play.outcomes(pk, "fetch") == [None]
                play.clock.advance(LOOK_S)
                play.step()
            play.step()  # records what ended in the last one
            assert play.outcomes(pk, "fetch") == ["infrastructure"]
            assert play.child("worker.fetching.fetch_child") is None
            assert play.state(pk) is State.ACKNOWLEDGED
            assert list((stage.state / "tmp").iterdir()) == []


@pytest.mark.parametrize("hosts", [[], ["example.org"]])
def test_a_file_elsewhere_is_not_fetched(stage: Stage, hosts: list[str]) -> None:
    """Only the server and the configured hosts are asked; the organizer is told which host is missing."""
    stage.configure({"evalai": {"media_hosts": hosts}})
    with stage.play() as play:
        pk = stage.submit("A", embeddings(1))
        play.drive(lambda: "download.host" in play.alerts())
        assert not [entry for entry in stage.evalai.journal.requests() if entry.origin == "media"]
        assert play.state(pk) is State.ACKNOWLEDGED
        stage.configure({"evalai": {"media_hosts": [stage.evalai.media_host]}})
        play.reload()
        play.drive()
        assert stage.status(pk) == "finished"
        assert play.alerts() == set()


def test_below_the_disk_reserve_nothing_is_fetched(stage: Stage, play: Play) -> None:
    """The worker stops fetching, tells the organizer, and goes on when there is room."""
    stage.configure({"submission": {"disk_reserve_gigabytes": 10**9}})
    play.reload()
    pk = stage.submit("A", embeddings(1))
    play.drive(lambda: "disk.reserve" in play.alerts())
    play.wait(30)
    assert play.state(pk) is State.ACKNOWLEDGED
    stage.configure({"submission": {"disk_reserve_gigabytes": 0}})
    play.reload()
    play.drive()
    assert stage.status(pk) == "finished"
    assert play.alerts() == set()


def test_equal_files_are_stored_once(stage: Stage, play: Play) -> None:
    """Files are named by what is in them."""
    for team in "ABC":
        stage.submit(team, embeddings(1))
    play.drive()
    assert len(list(play.worker.files.stored())) == 1
    assert list((stage.state / "tmp").iterdir()) == []


def test_a_team_that_waits_for_its_answer_keeps_nobody_from_being_fetched(stage: Stage, play: Play) -> None:
    """A team's next files lie here until its answer's moment on the grid; another team's file is fetched and begun meanwhile."""
    stage.configure({"submission": {"answer_grid": 20}})
    play.restart()
    mine = [stage.submit("A", embeddings(seed)) for seed in range(4)]
    play.drive(lambda: mine[0] in play.states() and play.state(mine[0]) is State.SCORED)
    other = stage.submit("B", embeddings(4))
    play.drive(lambda: stage.status(other) == "running")
    assert play.state(mine[0]) is State.SCORED
    play.drive()
    begun = [stage.evalai.submission(pk)["started_at"] for pk in (mine[0], other, *mine[1:])]
    assert begun == sorted(begun)
    assert {stage.status(pk) for pk in (*mine, other)} == {"finished"}


# Large uploads

PLACEHOLDER = b"file_content"


def begun(stage: Stage, play: Play, team: str = "A") -> int:
    """Begin a large upload that a listing finds and a download sees as EvalAI's placeholder."""
    pk = stage.evalai.begin_upload(team, "dev")
    play.drive(lambda: pk in play.states() and play.state(pk) is State.UPLOADING)
    return pk


def days(play: Play, number: int) -> None:
    """Let days pass in steps of two hours; everything that is due is done in between."""
    for _ in range(12 * number):
        play.clock.advance(7190)
        play.drive()


def looks(stage: Stage) -> int:
    """Count the downloads."""
    return sum(entry.origin == "media" for entry in stage.evalai.journal.requests("GET"))


def test_an_upload_that_a_listing_finds_first_waits_for_its_message(stage: Stage, play: Play) -> None:
    """It is neither failed nor scored until its file is there; then it is scored like any other."""
    pk = begun(stage, play)
    play.drive()
    assert stage.status(pk) == "submitted"
    assert stage.posts(pk) == []
    assert not stage.evalai.journal.effects("running", pk)
    assert play.outcomes(pk, "fetch") == ["unfinished"]
    stage.evalai.finish_upload(pk, embeddings(1))
    play.drive()
    assert play.state(pk) is State.PUBLISHED
    (post,) = stage.posts(pk)
    assert post["status"] == "finished"
    assert play.outcomes(pk, "fetch") == ["unfinished", "done"]
    assert stage.teams() == ["A"]
    assert stage.evalai.queue_length() == 0


def test_an_upload_without_a_message_is_found_by_looking_again(stage: Stage, play: Play) -> None:
    """A command line that was stopped after its last part sends no message; the file is there all the same."""
    pk = begun(stage, play)
    stage.evalai.finish_upload(pk, embeddings(1), message=False)
    play.wait(70)
    play.drive()
    assert stage.status(pk) == "finished"


def test_an_upload_keeps_nothing_waiting(stage: Stage, play: Play) -> None:
    """Its own team's next file and everybody else's are scored; nothing counts as left to do, and nothing is polled faster for it."""
    pk = begun(stage, play)
    others = [stage.submit(team, embeddings(seed)) for seed, team in enumerate("AB")]
    play.drive()
    assert [stage.status(other) for other in others] == ["finished", "finished"]
    assert play.state(pk) is State.UPLOADING
    assert play.worker.waiting(play.clock.now()).nothing
    stage.configure({"evalai": {"poll_every": 60, "reconcile_every": 600}})
    play.reload()
    play.drive()
    calls = len(stage.evalai.journal.requests())
    play.wait(240)
    assert len(stage.evalai.journal.requests()) - calls < 12


def test_once_is_done_although_an_upload_is_under_way(live: Stage) -> None:
    """A drain does not wait for it, and a later one scores it."""
    pk = live.evalai.begin_upload("A", "dev")
    result = live.once()
    assert result.returncode == 0, result.stderr
    assert live.states() == {pk: "uploading"}
    live.evalai.finish_upload(pk, embeddings(1))
    assert live.once().returncode == 0
    assert live.status(pk) == "finished"


def test_an_abandoned_upload_is_looked_at_ever_more_rarely_and_told_of_after_a_day(
    stage: Stage, play: Play
) -> None:
    """Twelve bytes every few hours are all that it costs; one alert names all of them, and goes when they are cancelled."""
    pks = [begun(stage, play, team) for team in "AB"]
    days(play, 1)
    assert play.alerts() == set()
    assert 5 < len(play.outcomes(pks[0], "fetch")) < 10
    stage.evalai.end_challenge()
    days(play, 1)
    assert len(play.outcomes(pks[0], "fetch")) < 10 + 4
    assert play.alerts() == {"upload.unfinished"}
    with play.store.read() as tx:
        (alert,) = tx.alerts()
    assert all(str(pk) in alert.text for pk in pks)
    for pk in pks:
        stage.evalai.cancel(pk)
    play.drive()
    assert {play.state(pk) for pk in pks} == {State.CANCELLED}
    assert play.alerts() == set()
    assert [stage.posts(pk) for pk in pks] == [[], []]


def test_an_upload_lives_through_a_restart(stage: Stage, play: Play) -> None:
    """It is not looked at sooner for that, and its message finds it."""
    pk = begun(stage, play)
    seen = looks(stage)
    play.restart()
    play.drive()
    assert (play.state(pk), looks(stage)) == (State.UPLOADING, seen)
    stage.evalai.finish_upload(pk, embeddings(1))
    play.restart()
    play.drive()
    assert stage.status(pk) == "finished"


@pytest.mark.parametrize("ending", ["cancel", "delete"])
def test_what_ends_during_its_upload_stays_ended(stage: Stage, play: Play, ending: str) -> None:
    """The listing tells of the end; a message that comes all the same changes nothing."""
    pk = begun(stage, play)
    getattr(stage.evalai, ending)(pk)
    play.drive()
    assert play.state(pk) is State.CANCELLED
    stage.evalai.finish_upload(pk, embeddings(1))
    play.drive()
    assert play.state(pk) is State.CANCELLED
    assert stage.posts(pk) == []
    assert stage.evalai.queue_length() == 0


def test_a_message_that_is_quicker_than_storage_fails_nothing(stage: Stage, play: Play) -> None:
    """The placeholder is looked at once more, shortly after the message."""
    play.drive()
    pk = stage.evalai.begin_upload("A", "dev")
    stage.evalai.send_again(pk)
    play.drive(lambda: pk in play.states() and play.outcomes(pk, "fetch") == ["unfinished"])
    assert play.state(pk) is State.ACKNOWLEDGED
    stage.evalai.finish_upload(pk, embeddings(1), message=False)
    play.drive()
    (post,) = stage.posts(pk)
    assert post["status"] == "finished"


def test_a_placeholder_that_took_long_to_come_may_be_from_before_its_message(
    stage: Stage, play: Play
) -> None:
    """What counts is when fetching it began: a message came since, so it is fetched again."""
    pk = begun(stage, play)
    begun_at, settles = play.clock.now(), timedelta(seconds=2)
    play.clock.advance(1)
    message = Message(submission_pk=pk, phase_pk=None, challenge_pk=None, receipt_handle="a")
    with play.store.write() as tx:
        take_message(tx, message, now=play.clock.now())
    play.clock.advance(60)
    for begun_later, at_fault in ((0, False), (30, True)):
        with play.store.write() as tx:
            assert at_fault is uploads.follow_placeholder(
                tx,
                play.known(pk),
                begun_at=begun_at + timedelta(seconds=begun_later),
                settles=settles,
                now=play.clock.now(),
            )
    assert play.state(pk) is State.ACKNOWLEDGED
    assert not play.known(pk).waits(play.clock.now())


def test_a_placeholder_that_stays_after_its_message_is_its_authors_fault(stage: Stage, play: Play) -> None:
    """EvalAI's command line sends the message also when the upload broke off: its author reads that, and the place is free again."""
    pk = begun(stage, play)
    stage.evalai.send_again(pk)
    play.drive()
    assert play.state(pk) is State.FAILED
    assert "file_content" in stage.stderr(pk)
    assert "large upload" in stage.stderr(pk)


def test_what_failed_on_the_placeholder_is_fetched_again_when_a_message_comes(
    stage: Stage, play: Play
) -> None:
    """A message for the same placeholder changes nothing at EvalAI; one for another file brings its score."""
    pk = begun(stage, play)
    stage.evalai.send_again(pk)
    play.drive()
    fetched, effects = len(play.outcomes(pk, "fetch")), len(stage.evalai.journal.effects(submission=pk))
    stage.evalai.send_again(pk)
    play.drive()
    assert play.state(pk) is State.FAILED
    assert len(play.outcomes(pk, "fetch")) > fetched
    later = [effect.name for effect in stage.evalai.journal.effects(submission=pk)[effects:]]
    assert set(later) <= {"message_sent", "message_received", "message_deleted"}
    stage.evalai.finish_upload(pk, embeddings(1))
    play.drive()
    assert play.state(pk) is State.PUBLISHED
    assert [post["status"] for post in stage.posts(pk)] == ["failed", "finished"]
    assert stage.teams() == ["A"]


def test_what_an_older_version_failed_on_the_placeholder_is_fetched_again(stage: Stage, play: Play) -> None:
    """It scored the placeholder that a listing had found, and nobody had sent a message yet."""
    pk = begun(stage, play)
    with play.store.write() as tx:
        tx.move(pk, State.UPLOADING, State.ACKNOWLEDGED)
        tx.move(pk, State.ACKNOWLEDGED, State.FETCHED, file_hash=uploads.PLACEHOLDER, file_bytes=12)
        tx.move(pk, State.FETCHED, State.SCORING, running_at=play.clock.now())
        tx.move(pk, State.SCORING, State.REJECTED, answer='{"status": "failed", "stderr": "no table"}')
        tx.owe(Errand.POST, pk, now=play.clock.now())
    play.drive()
    assert (play.state(pk), stage.status(pk)) == (State.FAILED, "failed")
    stage.evalai.finish_upload(pk, embeddings(1))
    play.drive()
    assert (play.state(pk), stage.status(pk)) == (State.PUBLISHED, "finished")


def test_what_failed_on_the_placeholder_is_not_scored_under_another_phase(stage: Stage, play: Play) -> None:
    """EvalAI still shows our failure; what its team edited meanwhile holds the submission before it is run again."""
    pk = begun(stage, play)
    stage.evalai.send_again(pk)
    play.drive()
    stage.evalai.finish_upload(pk, embeddings(1))
    stage.evalai.edit(pk, phase="eval")
    play.drive(lambda: play.known(pk).hold is not None)
    assert play.known(pk).hold == "facts.phase_differs"
    assert not stage.evalai.journal.effects("running", pk)


def test_a_message_waits_while_the_answer_to_the_placeholder_is_on_its_way(stage: Stage, play: Play) -> None:
    """Deleted now, it would be lost: there is a file, and the submission is about to fail without it."""
    pk = begun(stage, play)
    message = Message(submission_pk=pk, phase_pk=None, challenge_pk=None, receipt_handle="a")
    with play.store.write() as tx:
        tx.move(pk, State.UPLOADING, State.ACKNOWLEDGED)
        tx.move(pk, State.ACKNOWLEDGED, State.REJECTED, file_hash=uploads.PLACEHOLDER)
        take_message(tx, message, now=play.clock.now())
        assert tx.owed(Errand.DELETE, pk) == []
        tx.move(pk, State.REJECTED, State.FAILED)
        take_message(tx, message, now=play.clock.now())
        assert len(tx.owed(Errand.DELETE, pk)) == 1
    assert play.state(pk) is State.ACKNOWLEDGED


def test_the_placeholder_as_an_ordinary_file_fails_like_any_other(stage: Stage, play: Play) -> None:
    """Its message came with it: nothing else will follow."""
    pk = stage.submit("A", PLACEHOLDER)
    play.drive()
    assert (play.state(pk), stage.status(pk)) == (State.FAILED, "failed")
    assert stage.evalai.text(pk, "stdout_file") == ""
    assert stage.evalai.queue_length() == 0
    assert play.alerts() == set()


def test_a_rerun_of_an_upload_takes_its_place(stage: Stage, play: Play) -> None:
    """The old one is superseded; the new one fails on the placeholder, and its message then brings the file."""
    old = begun(stage, play)
    new = stage.evalai.rerun(old)
    play.drive()
    assert (play.state(old), play.state(new)) == (State.SUPERSEDED, State.FAILED)
    stage.evalai.finish_upload(old, embeddings(1), message=False)
    stage.evalai.send_again(new)
    play.drive()
    assert play.state(new) is State.PUBLISHED
