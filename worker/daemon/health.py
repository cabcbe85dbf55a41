"""The little HTTP server on loopback for monitoring: ``/metrics`` and ``/healthz``."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from scoring.errors import InfrastructureError
from worker.daemon.signals import Watchdog
from worker.daemon.worker import Worker
from worker.runtime import storage

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

SILENT_FOR = timedelta(seconds=60)  # without a step, after which the daemon counts as hanging
CLOSES_WITHIN_S = 1  # its thread has nothing left to do by then
READ_WITHIN_S = 2.0


class _Quiet(WSGIRequestHandler):
    """Does not log the requests of monitoring, and gives up a connection on which nothing comes."""

    timeout = READ_WITHIN_S

    def log_message(self, *_: Any) -> None:
        """Do nothing."""


class _Server(WSGIServer):
    """Answers one connection at a time: monitoring must not use up the file descriptors that scoring needs."""

    def __init__(self, address: tuple[str, int], handler: type[_Quiet]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def handle_error(self, *_: Any) -> None:
        """Ignore a client that sends nothing, or goes away."""


class Health:
    """The health of a worker that steps in another thread.

    Args:
        worker: The worker.
        watchdog: Notes each completed step.
        clock: Returns the time.
    """

    def __init__(self, worker: Worker, watchdog: Watchdog, clock: Callable[[], datetime]) -> None:
        self._worker = worker
        self._watchdog = watchdog
        self._clock = clock

    def report(self) -> dict[str, object]:
        """Return ``healthy``, the time since the last step, what keeps the worker from its work, and the free disk space."""
        configuration = self._worker.context.configuration
        error = (
            self._worker.problem
            or storage.fault(configuration.state_dir)
            or self._worker.intake.calls.refused
        )
        silent = self._clock() - self._watchdog.fed_at
        try:
            free = self._worker.files.free_bytes()
        except OSError:  # the folder is gone, which is a problem of its own
            free = None
        reserve = configuration.submission.disk_reserve_gigabytes
        return {
            "healthy": silent <= SILENT_FOR and error is None,
            "last_step_s": round(silent.total_seconds(), 1),
            "problem": None if error is None else {"code": error.code, "text": error.message},
            "free_bytes": free,
            "below_disk_reserve": None if free is None else storage.below_reserve(free, reserve) is not None,
        }


class HealthServer:
    """Serves metrics and health in a thread.

    Args:
        listen: host:port on loopback.
        registry: What ``/metrics`` shows.
        health: What ``/healthz`` shows.

    Raises:
        InfrastructureError: If the port is taken.
    """

    def __init__(self, listen: str, registry: CollectorRegistry, health: Health) -> None:
        self._metrics = make_wsgi_app(registry)
        self._health = health
        place = urlsplit(f"//{listen}")
        try:
            self._server = _Server((place.hostname or "127.0.0.1", place.port or 0), _Quiet)
        except OSError:
            raise InfrastructureError(
                f"The worker cannot listen on {listen}. The port is in use or not allowed.",
                cure="Set metrics.listen to another port.",
                code="metrics.listen",
            ) from None
        self._server.set_app(self._answer)
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="health")
        self._thread.start()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/metrics":
            page: Iterable[bytes] = self._metrics(environ, start_response)
            return page
        if environ["PATH_INFO"] == "/healthz":
            report = self._health.report()
            status = "200 OK" if report["healthy"] else "503 Service Unavailable"
            start_response(status, [("Content-Type", "application/json")])
            return [json.dumps(report).encode()]
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"/metrics and /healthz are here\n"]

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=CLOSES_WITHIN_S)
