"""The server for monitoring: it must not harm the worker, and it tells the truth about the token."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import requests
from prometheus_client import CollectorRegistry

from tests.worker.harness.harness import LIMIT_S, Harness, StepWorker
from worker.daemon import health
from worker.daemon.health import Health, HealthServer
from worker.daemon.metrics import StateCollector, registry
from worker.daemon.signals import Watchdog
from worker.daemon.start import utc_now


@contextmanager
def served(worker: StepWorker) -> Iterator[int]:
    """Serve a worker's health inside the block, on the port that is yielded."""
    report = Health(worker.daemon, Watchdog(utc_now()), utc_now)
    with closing(HealthServer("127.0.0.1:0", CollectorRegistry(), report)) as server:
        yield server.port


def connection(port: int) -> socket.socket:
    """Return a connection on which nothing is sent."""
    return socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)


def test_an_idle_connection_is_given_up(worker: StepWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are served one at a time, so it must not keep its place for ever."""
    monkeypatch.setattr(health._Quiet, "timeout", 0.05)
    with served(worker) as port, connection(port) as idle:
        assert idle.recv(1) == b""
        assert requests.get(f"http://127.0.0.1:{port}/healthz", timeout=LIMIT_S).status_code == 200


def test_a_refused_token_is_neither_healthy_nor_valid_for_a_year(
    harness: Harness, worker: StepWorker
) -> None:
    """Whatever date the token has; with a token that EvalAI accepts, both recover without a restart."""
    collector = StateCollector(
        worker.store,
        worker.daemon.files,
        token_expires=worker.daemon.intake.calls.token_expires,
        clock=worker.clock.now,
    )
    metrics = registry(collector)

    def seen() -> tuple[int, str | None, float | None]:
        with served(worker) as port:
            answer = requests.get(f"http://127.0.0.1:{port}/healthz", timeout=LIMIT_S)
        code = (answer.json()["problem"] or {}).get("code")
        return answer.status_code, code, metrics.get_sample_value("neuco_worker_token_expiry_seconds")

    worker.drive()
    status, code, left = seen()
    assert (status, code) == (200, None)
    assert left is not None
    assert left > 0
    fresh = harness.evalai.refresh_token("host")
    worker.wait(90)
    assert seen() == (503, "evalai.token_refused", 0)
    (harness.folder / "token").write_text(fresh)
    worker.drive(lambda: not worker.alerts())
    status, code, left = seen()
    assert (status, code) == (200, None)
    assert left is not None
    assert left > 0
