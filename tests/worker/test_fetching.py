"""Downloads: tried again for ever, never anybody's fault but for size, and never with our token."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.worker.stage import Play, Stage, embeddings
from worker.children import LOOK_S
from worker.fetching import Fetching
from worker.sandbox import Fault, FaultPlan
from worker.states import State


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
            assert play.outcomes(pk, "fetch") == ["infrastructure"]
            assert play.child("worker.fetch_child") is None
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
