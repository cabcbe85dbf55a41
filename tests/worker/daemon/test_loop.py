"""The main loop: events wake it, a step that hangs or fails is noticed, and monitoring sees whether it works."""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import requests

from tests.waiting import LIMIT_S
from tests.worker.harness.gate import Gate
from tests.worker.harness.harness import NEW, ROOT, Harness, StepWorker, embeddings
from worker.daemon.health import SILENT_FOR, HealthServer, _HealthHandler, health
from worker.daemon.run import LONGEST_WAIT_S, Patience, repeat, step
from worker.daemon.schedule import Schedule
from worker.daemon.signals import Signals
from worker.daemon.start import utc_now
from worker.state import leader_lock

pytestmark = pytest.mark.processes

ACKNOWLEDGED = "before received>acknowledged"
"""A point within a step."""


@contextmanager
def looping(harness: Harness, worker: StepWorker) -> Iterator[None]:
    """Let the loop drive a worker in a thread inside the block."""
    signals = Signals()
    signals.wake = worker.wake
    configuration = worker.daemon.context.configuration
    lock = leader_lock(configuration.database_url, configuration.state_dir)
    assert lock.take()
    schedule = Schedule(worker.daemon.context.timetable, worker.wake.set)
    loop = threading.Thread(
        target=repeat,
        args=(harness.path, worker.daemon, lock, signals),
        kwargs={"schedule": schedule},
    )
    loop.start()
    try:
        yield
    finally:
        signals.stop.set()
        signals.wake.set()
        loop.join(LIMIT_S)
        schedule.close()
        lock.close()


def test_every_event_wakes_the_loop(live: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A submission is read, fetched, scored, answered and published without waiting for the clock."""
    module = importlib.import_module("worker.daemon.run")
    monkeypatch.setattr(module, "LONGEST_WAIT_S", 3600.0)
    monkeypatch.setattr(module, "BUSY_WAIT_S", 3600.0)
    live.configure({"evalai": {"poll_every": 3600, "reconcile_every": 3600}})
    pk = live.submit("A", embeddings(NEW))
    with live.worker() as worker, looping(live, worker):
        live.until(lambda: live.states().get(pk) == "published")


def test_a_step_that_hangs_is_noticed(live: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Systemd is notified only of completed steps, and monitoring shows that there are none, until the steps go on."""
    gate = Gate(ACKNOWLEDGED)
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel,
        live.worker(checkpoint=gate) as worker,
    ):
        channel.bind(str(tmp_path / "notify"))
        channel.settimeout(LIMIT_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with looping(live, worker):
            assert channel.recv(100) == b"WATCHDOG=1"
            gate.close()
            live.submit("A", embeddings(1))
            live.until(gate.reached)
            channel.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                while channel.recv(100):  # of the steps before
                    pass
            worker.wake.set()
            channel.settimeout(2 * LONGEST_WAIT_S)
            with pytest.raises(TimeoutError):
                channel.recv(100)
            assert not health(worker.daemon, lambda: worker.daemon.stepped_at + 2 * SILENT_FOR)["healthy"]
            gate.open()
            channel.settimeout(LIMIT_S)
            assert channel.recv(100) == b"WATCHDOG=1"


def test_a_defect_in_a_step_is_logged_and_the_next_step_tries_again(
    live: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    """The watchdog is not notified of such a step; the submission is processed all the same."""
    defects = [RuntimeError("a defect")]

    def fail(name: str) -> None:
        if name == "during child evaluate" and defects:
            raise defects.pop()

    with live.worker(checkpoint=fail) as worker:
        pk = live.submit("A", embeddings(1))
        worker.drive(lambda: worker.daemon.intake.busy)
        completed = True
        while defects:
            worker.wake.wait(LONGEST_WAIT_S)
            _, completed = step(worker.daemon, utc_now())
        assert not completed
        assert "Unexpected RuntimeError in the main loop." in capsys.readouterr().out
        with looping(live, worker):
            live.until(lambda: live.states().get(pk) == "published")


@contextmanager
def served(worker: StepWorker, *, silent: timedelta = timedelta()) -> Iterator[int]:
    """Serve a worker's health inside the block, on the port that is yielded; the caller may be slow."""
    now = utc_now()
    worker.daemon.stepped_at = now - silent
    report = partial(health, worker.daemon, lambda: now)
    with pytest.MonkeyPatch.context() as patch, closing(HealthServer("127.0.0.1:0", report)) as server:
        patch.setattr(_HealthHandler, "timeout", LIMIT_S)
        yield server.server_port


def test_an_idle_connection_is_given_up(worker: StepWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are served one at a time, so it must not keep its place for ever."""
    with served(worker) as port:
        with monkeypatch.context() as patch:
            patch.setattr(_HealthHandler, "timeout", 0.05)
            with socket.create_connection(("127.0.0.1", port)) as idle:
                assert idle.recv(1) == b""
        assert requests.get(f"http://127.0.0.1:{port}/healthz", timeout=LIMIT_S).status_code == 200
        assert requests.get(f"http://127.0.0.1:{port}/", timeout=LIMIT_S).status_code == 404


def test_a_request_that_hangs_does_not_keep_the_worker_from_ending() -> None:
    """The server is closed while it is being answered."""
    asked, goes_on = threading.Event(), threading.Event()

    def hang() -> dict[str, object]:
        """Look at a disk that does not respond."""
        asked.set()
        goes_on.wait(LIMIT_S)
        return {"healthy": False}

    server = HealthServer("127.0.0.1:0", hang)
    with socket.create_connection(("127.0.0.1", server.server_port)) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert asked.wait(LIMIT_S)
        closing_thread = threading.Thread(target=server.close, daemon=True)
        closing_thread.start()
        closing_thread.join(LIMIT_S)
        ended = not closing_thread.is_alive()
        goes_on.set()
    assert ended


def test_a_worker_with_a_refused_token_is_not_healthy(harness: Harness, worker: StepWorker) -> None:
    """With a token that EvalAI accepts, it recovers without a restart."""

    def answered() -> tuple[int, str | None]:
        with served(worker) as port:
            answer = requests.get(f"http://127.0.0.1:{port}/healthz", timeout=LIMIT_S)
        return answer.status_code, (answer.json()["problem"] or {}).get("code")

    worker.drive()
    assert answered() == (200, None)
    fresh = harness.evalai.refresh_token("host")
    worker.wait(90)
    assert answered() == (503, "evalai.token_refused")
    (harness.folder / "token").write_text(fresh)
    worker.drive(lambda: not worker.alerts())
    assert answered() == (200, None)


def test_a_container_is_healthy_as_long_as_the_loop_runs(worker: StepWorker) -> None:
    """The image's health check asks the worker: one that hangs, or that has ended, is not healthy."""
    check = (ROOT / "Dockerfile").read_text().partition("\nHEALTHCHECK ")[2]
    command = json.loads(re.findall(r"^ +CMD (\[.*\])$", check, re.MULTILINE)[0])
    assert "9464" in command[-1]

    def healthy(port: int) -> bool:
        words = [sys.executable, *(word.replace("9464", str(port)) for word in command[1:])]
        return subprocess.run(words, check=False, capture_output=True).returncode == 0

    worker.drive()
    with served(worker) as port:
        assert healthy(port)
    assert not healthy(port)
    with served(worker, silent=2 * SILENT_FOR) as port:
        assert not healthy(port)


def test_once_does_not_give_up_while_the_queue_has_messages(harness: Harness, worker: StepWorker) -> None:
    """After days without a worker, the listing names hundreds of submissions, and their messages may be read long after the answers."""
    worker.drive()
    daemon = worker.daemon
    patience = Patience(daemon.context.configuration)
    left, receipts = daemon.waiting(worker.clock.now()), ("a", "b", None)
    for number, receipt in enumerate(receipts):
        daemon.intake.session.receipt = receipt
        assert not patience.ended(daemon, left, 60.0 * number)
    assert patience.ended(daemon, left, 60.0 * (len(receipts) + 1))
