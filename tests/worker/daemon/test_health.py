"""The server for monitoring: it must not harm the worker, and it tells the truth about the token."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest
import requests
from prometheus_client import CollectorRegistry

from tests.worker.harness.harness import LIMIT_S, StepWorker
from worker.daemon import health
from worker.daemon.health import Health, HealthServer
from worker.daemon.start import utc_now
from worker.daemon.watchdog import Watchdog


@contextmanager
def served(worker: StepWorker) -> Iterator[int]:
    """Serve a worker's health inside the block, on the port that is yielded."""
    report = Health(worker.daemon, Watchdog(utc_now()), utc_now)
    with closing(HealthServer("127.0.0.1:0", CollectorRegistry(), report)) as server:
        yield server.port


def connection(port: int) -> socket.socket:
    """Return a connection on which nothing is sent."""
    return socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)


def test_idle_connections_cannot_use_up_file_descriptors(
    worker: StepWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections beyond the limit are closed at once."""
    monkeypatch.setattr(health._Quiet, "timeout", LIMIT_S)
    with served(worker) as port, ExitStack() as idle:
        for _ in range(health.MOST_CONNECTIONS):
            idle.enter_context(connection(port))
        for _ in range(50):
            with connection(port) as refused:
                assert refused.recv(1) == b""


def test_an_idle_connection_is_given_up(worker: StepWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it does not keep its place for ever."""
    monkeypatch.setattr(health._Quiet, "timeout", 0.05)
    with served(worker) as port, connection(port) as idle:
        assert idle.recv(1) == b""
        assert requests.get(f"http://127.0.0.1:{port}/healthz", timeout=LIMIT_S).status_code == 200
