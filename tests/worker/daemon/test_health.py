"""The server for monitoring must not harm the worker, and says whether it works."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import requests

from tests.worker.harness.harness import LIMIT_S, Harness, StepWorker
from worker.daemon import health
from worker.daemon.health import Health, HealthServer
from worker.daemon.signals import Watchdog
from worker.daemon.start import utc_now


@contextmanager
def served(worker: StepWorker) -> Iterator[int]:
    """Serve a worker's health inside the block, on the port that is yielded."""
    report = Health(worker.daemon, Watchdog(utc_now()), utc_now)
    with closing(HealthServer("127.0.0.1:0", report)) as server:
        yield server.server_port


def test_an_idle_connection_is_given_up(worker: StepWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are served one at a time, so it must not keep its place for ever."""
    monkeypatch.setattr(health._Handler, "timeout", 0.05)
    with served(worker) as port, socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as idle:
        assert idle.recv(1) == b""
        assert requests.get(f"http://127.0.0.1:{port}/healthz", timeout=LIMIT_S).status_code == 200
        assert requests.get(f"http://127.0.0.1:{port}/", timeout=LIMIT_S).status_code == 404


def test_a_worker_with_a_refused_token_is_not_healthy(harness: Harness, worker: StepWorker) -> None:
    """With a token that EvalAI accepts, it recovers without a restart."""

    def health() -> tuple[int, str | None]:
        with served(worker) as port:
            answer = requests.get(f"http://127.0.0.1:{port}/healthz", timeout=LIMIT_S)
        return answer.status_code, (answer.json()["problem"] or {}).get("code")

    worker.drive()
    assert health() == (200, None)
    fresh = harness.evalai.refresh_token("host")
    worker.wait(90)
    assert health() == (503, "evalai.token_refused")
    (harness.folder / "token").write_text(fresh)
    worker.drive(lambda: not worker.alerts())
    assert health() == (200, None)
