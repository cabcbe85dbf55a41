"""Downloads: tried again indefinitely, never with our token, and the author's fault only if too large or never finished; large uploads."""

from __future__ import annotations

import re
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from scoring.errors import OrganizerError
from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.evalai import Message
from worker.fetching import uploads
from worker.fetching.act import FetchFile
from worker.intake.facts import take_message
from worker.intake.holds import hold
from worker.intake.reading import RECONCILE
from worker.runtime.acts import LOOK_S
from worker.sandbox import Fault, FaultPlan
from worker.state import State

pytestmark = pytest.mark.processes


def test_a_failed_download_is_tried_again(harness: Harness, worker: StepWorker) -> None:
    """Faults of the file store cost time, never a submission."""
    kinds = (Fault.ERROR_BEFORE, Fault.TRUNCATED)
    harness.evalai.set_faults(FaultPlan(probability=1.0, kinds=kinds, origins=("media",)))
    pk = harness.submit("A", embeddings(1))
    worker.drive(lambda: worker.failed(pk) >= 4)
    assert worker.state(pk) is State.ACKNOWLEDGED
    assert len(harness.leftovers) <= 1  # that of a download under way
    harness.evalai.set_faults(FaultPlan())
    worker.finish(pk)
    assert worker.alerts() == set()


def test_a_worker_goes_on_after_its_folders_were_removed(harness: Harness, worker: StepWorker) -> None:
    """Somebody needed room; what was stored there is gone, and what comes is scored."""
    for name in ("files", "tmp"):
        shutil.rmtree(harness.state / name)
    worker.finish(harness.submit("A", embeddings(1)))


def test_below_the_disk_reserve_nothing_is_fetched_and_links_may_expire_meanwhile(
    harness: Harness, worker: StepWorker
) -> None:
    """The organizer is told; when there is room, a reading brings a fresh address of the same file, before a download fails or after it."""
    settings = {"disk_reserve_gigabytes": 10**9}
    harness.configure({"submission": settings, "evalai": {"reconcile_every": 86_400}})
    worker.restart()
    timetable = worker.daemon.context.timetable
    # The only listing: none brings a fresh address.
    worker.drive(lambda: timetable.done_at(RECONCILE) is not None)
    pk = harness.submit("A", embeddings(1))
    worker.drive(lambda: "disk.reserve" in worker.alerts())
    told: list[str] = []
    with alerts_written(told):
        worker.wait(30)
    assert told == []  # nothing is written to a nearly full disk only to repeat it
    assert worker.state(pk) is State.ACKNOWLEDGED
    harness.evalai.expire_link(pk)
    harness.configure({"submission": {"disk_reserve_gigabytes": 0}})
    worker.reload()
    worker.drive(lambda: worker.state(pk) is State.PUBLISHED)
    assert looks(harness) <= 2
    assert worker.alerts() == set()


@contextmanager
def alerts_written(statements: list[str]) -> Iterator[None]:
    """Append the statements that raise or change alerts inside the block."""

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        if re.match(r"(INSERT INTO|UPDATE) alerts\b", statement):
            statements.append(statement)

    event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield
    finally:
        event.remove(sa.Engine, "before_cursor_execute", note)


def test_a_dispute_that_is_noticed_during_a_download_goes_on(harness: Harness) -> None:
    """The file is stored, but not scored before a person has acted."""
    harness.configure({"submission": {"disk_reserve_gigabytes": 10**9}})  # it waits where the test takes over
    with harness.worker() as worker:
        pk = harness.submit("A", embeddings(1))
        worker.drive(lambda: worker.states().get(pk) == "acknowledged")
        fetching = FetchFile(context=worker.daemon.context, row=worker.row(pk))
        now = worker.clock.now()
        with worker.store.write() as tx:
            fetching.intent(tx, now)
            dispute = OrganizerError(
                "Its author is not in its team.", hint="Ask.", code="facts.author_not_in_team"
            )
            hold(tx, worker.row(pk), dispute, now=now)
            fetching.outcome(tx, "a" * 64, now)
        row = worker.row(pk)
        assert (row.state, row.disputed) == (State.FETCHED, True)


def test_the_token_never_reaches_the_file_store(harness: Harness, worker: StepWorker) -> None:
    """No request to the other origin carries it; all name the software and its version; equal files are stored once."""
    for team in "ABC":
        harness.submit(team, embeddings(1))
    worker.drive()
    requests = [(entry.origin, entry.detail) for entry in harness.evalai.journal.requests()]
    assert sum(origin == "media" for origin, _ in requests) == 3
    assert all(detail["authorization"] is (origin == "api") for origin, detail in requests)
    assert {detail["user_agent"] for _, detail in requests} == {f"neuco-worker/{version('neuco-worker')}"}
    assert (len(list(worker.daemon.files.stored())), harness.leftovers) == (1, [])


@contextmanager
def dripping(start: bytes) -> Iterator[tuple[str, threading.Event]]:
    """Serve a store that sends a byte from time to time without end; return its host and whether it was asked."""
    asked, ended = threading.Event(), threading.Event()

    def serve() -> None:
        with suppress(OSError):  # the client is gone
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
def test_a_very_slow_store_is_given_up_at_the_deadline(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    """Whichever part of its answer never ends, the file is given up in time, and tried again."""
    monkeypatch.setattr(FetchFile, "time_out_s", 2.5 * LOOK_S)
    with dripping(start) as (host, asked):
        harness.configure(
            {
                "submission": {"disk_reserve_gigabytes": 10**9},
                "evalai": {"media_hosts": [host], "reconcile_every": 86_400},
            }
        )
        with harness.worker() as worker:
            pk = harness.submit("A", embeddings(1))
            worker.drive(lambda: pk in worker.states() and worker.state(pk) is State.ACKNOWLEDGED)
            with worker.store.write() as tx:
                tx.note(pk, input_file=f"http://{host}/file")
            harness.configure({"submission": {"disk_reserve_gigabytes": 0}})
            worker.reload()
            worker.drive(asked.is_set)
            for _ in range(3):
                assert worker.daemon.fetching.busy
                worker.clock.advance(LOOK_S)
                worker.step()
            worker.step()  # records what ended in the last one
            assert worker.failed(pk) == 1
            assert worker.state(pk) is State.ACKNOWLEDGED
            assert list((harness.state / "tmp").iterdir()) == []


def test_a_file_elsewhere_is_not_fetched(harness: Harness) -> None:
    """Only the server and the configured hosts are asked; the organizer is told which host is missing, and for which submission."""
    harness.configure({"evalai": {"media_hosts": ["example.org"]}})
    with harness.worker() as worker:
        pk = harness.submit("A", embeddings(1))
        worker.drive(lambda: "download.host" in worker.alerts())
        assert worker.alert("download.host").startswith(
            f"Submission {pk} of team 'A': A submission's file is at"
        )
        assert looks(harness) == 0
        harness.configure({"evalai": {"media_hosts": [harness.evalai.media_host]}})
        worker.reload()
        worker.finish(pk)
        assert worker.alerts() == set()


# Large uploads


def begun(harness: Harness, worker: StepWorker, team: str = "A") -> int:
    """Begin a large upload that a listing finds and a download sees as EvalAI's placeholder."""
    pk = harness.evalai.begin_upload(team, "dev")
    worker.drive(lambda: pk in worker.states() and worker.state(pk) is State.UPLOADING)
    return pk


def days(worker: StepWorker, number: int) -> None:
    """Let days pass in steps of two hours; everything that is due is done."""
    for _ in range(12 * number):
        worker.clock.advance(7190)
        worker.drive()


def looks(harness: Harness) -> int:
    """Count the downloads."""
    return sum(entry.origin == "media" for entry in harness.evalai.journal.requests("GET"))


def test_an_upload_that_a_listing_finds_first_delays_nothing(harness: Harness, worker: StepWorker) -> None:
    """It is scored once its file exists: when its message comes or, if its team's command line was stopped, after another look."""
    uploads = [begun(harness, worker, team) for team in "AB"]
    worker.finish(*(harness.submit(team, embeddings(seed)) for seed, team in enumerate("AB")))
    assert [(harness.status(pk), harness.posts(pk)) for pk in uploads] == [("submitted", [])] * 2
    assert worker.daemon.waiting(worker.clock.now()).nothing
    harness.configure({"evalai": {"poll_every": 60, "reconcile_every": 600}})
    worker.reload()
    worker.drive()
    calls = len(harness.evalai.journal.requests())
    worker.wait(120)
    assert len(harness.evalai.journal.requests()) - calls < 16  # the regular ones
    for pk, message in zip(uploads, (True, False), strict=True):
        harness.evalai.finish_upload(pk, embeddings(1), message=message)
    worker.clock.advance(3600)
    worker.finish(*uploads)


def test_a_file_that_evalai_is_still_storing_is_no_fault(harness: Harness, worker: StepWorker) -> None:
    """EvalAI lists a submission before it has stored the file, and sends the message afterwards."""
    worker.drive()
    pk = harness.submit("A", embeddings(1))
    address = harness.evalai.world.submissions[pk]["input_file"]
    harness.evalai.purge_queue()
    harness.evalai.edit(pk, input_file=None)
    worker.drive(lambda: worker.states().get(pk) == "uploading")
    harness.evalai.edit(pk, input_file=address)
    harness.evalai.send_again(pk)
    worker.drive(lambda: worker.states()[pk] == "fetched" or bool(worker.alerts()))
    worker.finish(pk)
    assert worker.alerts() == set()


def test_an_abandoned_upload_is_checked_less_and_less_and_reported_after_a_day(
    harness: Harness, worker: StepWorker
) -> None:
    """It costs only twelve bytes every few hours; one alert names all such uploads, until they are cancelled."""
    pks = [begun(harness, worker, team) for team in "AB"]
    days(worker, 1)
    assert worker.alerts() == set()
    assert 5 < looks(harness) / len(pks) < 10
    harness.evalai.end_challenge()
    days(worker, 1)
    assert looks(harness) / len(pks) < 10 + 4
    assert worker.alerts() == {"upload.unfinished", "phase.end_moved"}
    assert all(str(pk) in worker.alert("upload.unfinished") for pk in pks)
    for pk in pks:
        harness.evalai.edit(pk, status="cancelled")
    worker.drive()
    assert {worker.state(pk) for pk in pks} == {State.CANCELLED}
    assert worker.alerts() == {"facts.changed", "phase.end_moved"}
    assert [harness.posts(pk) for pk in pks] == [[], []]


def test_a_look_that_fails_is_repeated_and_leaves_an_upload_one(harness: Harness, worker: StepWorker) -> None:
    """Nobody is to be answered because a download failed; and an alert about old uploads goes on."""
    pk = begun(harness, worker)
    harness.evalai.set_faults(FaultPlan(probability=1.0, kinds=(Fault.ERROR_BEFORE,), origins=("media",)))
    worker.wait(120)
    assert (worker.state(pk), worker.failed(pk) > 2) == (State.UPLOADING, True)
    assert worker.daemon.waiting(worker.clock.now()).nothing
    harness.evalai.set_faults(FaultPlan())
    harness.evalai.finish_upload(pk, embeddings(1), message=False)
    worker.wait(60)
    worker.finish(pk)
    assert worker.alerts() == set()


def test_a_message_that_precedes_the_file_causes_no_failure(harness: Harness) -> None:
    """The placeholder is fetched once more shortly after the message."""
    harness.configure({"evalai": {"reconcile_every": 60}})  # the message comes first
    with harness.worker() as worker:
        worker.drive()
        pk = harness.evalai.begin_upload("A", "dev")
        harness.evalai.send_again(pk)
        worker.drive(lambda: pk in worker.states() and worker.row(pk).not_before is not None)
        assert worker.state(pk) is State.ACKNOWLEDGED
        harness.evalai.finish_upload(pk, embeddings(1), message=False)
        worker.drive()
    (post,) = harness.posts(pk)
    assert post["status"] == "finished"


def test_a_placeholder_that_stays_after_its_message_is_its_authors_fault(
    harness: Harness, worker: StepWorker
) -> None:
    """Another message leads to another download: of the placeholder, which changes nothing at EvalAI, or of the file, which is scored."""
    pk = begun(harness, worker)
    harness.evalai.send_again(pk)
    worker.drive()
    assert worker.state(pk) is State.FAILED
    assert "upload was not finished" in harness.stderr(pk)
    downloads, effects = looks(harness), len(harness.evalai.journal.effects(submission=pk))
    harness.evalai.send_again(pk)
    worker.drive()
    assert (worker.state(pk), looks(harness) > downloads) == (State.FAILED, True)
    later = [effect.name for effect in harness.evalai.journal.effects(submission=pk)[effects:]]
    assert set(later) <= {"message_sent", "message_received", "message_deleted"}
    harness.evalai.finish_upload(pk, embeddings(1))
    worker.finish(pk)
    assert [post["status"] for post in harness.posts(pk)] == ["failed", "finished"]
    assert harness.teams() == ["A"]


def test_an_upload_that_is_run_again_before_its_end_is_scored(harness: Harness, worker: StepWorker) -> None:
    """The re-run fails on the placeholder, until the message about the upload comes."""
    pk = begun(harness, worker)
    again = harness.evalai.rerun(pk)
    worker.drive()
    assert worker.state(again) is State.FAILED
    harness.evalai.finish_upload(pk, embeddings(1))
    worker.finish(again)
    assert harness.teams() == ["A"]


def test_a_message_waits_while_the_answer_to_the_placeholder_is_on_its_way(
    harness: Harness, worker: StepWorker
) -> None:
    """If it were deleted now it would be lost: the file exists, but the submission is about to fail."""
    pk = begun(harness, worker)
    message = Message(submission_pk=pk, phase_pk=None, challenge_pk=None, receipt_handle="a")
    with worker.store.write() as tx:
        tx.move(pk, State.UPLOADING, State.ACKNOWLEDGED)
        tx.move(pk, State.ACKNOWLEDGED, State.REJECTED, file_hash=uploads.PLACEHOLDER)
        assert not take_message(tx, message, now=worker.clock.now())
        tx.move(pk, State.REJECTED, State.FAILED)
        assert take_message(tx, message, now=worker.clock.now())
    assert worker.state(pk) is State.ACKNOWLEDGED
