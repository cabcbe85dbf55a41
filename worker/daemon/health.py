"""The little HTTP server on loopback for monitoring: ``/healthz``."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import urlsplit

from scoring.errors import InfrastructureError
from worker.daemon.worker import Worker
from worker.runtime import storage

SILENT_FOR = timedelta(seconds=60)  # without a step, after which the daemon counts as hanging
CLOSES_WITHIN_S = 1  # unless its thread hangs, which must not keep the process from ending
READ_WITHIN_S = 2.0


def health(worker: Worker, clock: Callable[[], datetime]) -> dict[str, object]:
    """Return ``healthy``, the time since the last step, and what keeps the worker from its work.

    Args:
        worker: The worker, which steps in another thread.
        clock: Returns the time.
    """
    error = (
        worker.problem or storage.fault(worker.context.configuration.state_dir) or worker.intake.calls.refused
    )
    silent = clock() - worker.stepped_at
    return {
        "healthy": silent <= SILENT_FOR and error is None,
        "last_step_s": round(silent.total_seconds(), 1),
        "problem": None if error is None else {"code": error.code, "text": error.message},
    }


class _HealthHandler(BaseHTTPRequestHandler):
    """Answers one request, unless nothing comes on its connection."""

    server: HealthServer
    timeout = READ_WITHIN_S

    def do_GET(self) -> None:
        if self.path != "/healthz":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        report = self.server.report()
        self.send_response(HTTPStatus.OK if report["healthy"] else HTTPStatus.SERVICE_UNAVAILABLE)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(report).encode())

    def log_message(self, *_: Any) -> None:
        """Do not log the requests of monitoring."""


class HealthServer(HTTPServer):
    """Serves health in a thread, one connection at a time: monitoring must not use up the file descriptors that scoring needs.

    Args:
        address: host:port on loopback.
        report: Returns what ``/healthz`` shows, see :func:`health`.

    Raises:
        InfrastructureError: If the port is taken.
    """

    def __init__(self, address: str, report: Callable[[], dict[str, object]]) -> None:
        self.report = report
        parts = urlsplit(f"//{address}")
        host = parts.hostname or "127.0.0.1"
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, parts.port or 0), _HealthHandler)
        except OSError:
            raise InfrastructureError(
                f"The worker cannot listen on {address}. The port is in use or not allowed.",
                hint="Set healthz to another port.",
                code="healthz.address",
            ) from None
        self._thread = threading.Thread(target=self.serve_forever, daemon=True, name="health")
        self._thread.start()

    def handle_error(self, *_: Any) -> None:
        """Ignore a client that sends nothing, or goes away."""

    def close(self) -> None:
        """Stop serving."""
        threading.Thread(target=self.shutdown, daemon=True).start()  # it waits for the request under way
        self._thread.join(timeout=CLOSES_WITHIN_S)
        self.server_close()
