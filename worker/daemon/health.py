"""The little HTTP server on loopback for monitoring: ``/metrics`` and ``/healthz``."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, make_wsgi_app
from werkzeug.serving import WSGIRequestHandler, make_server

from scoring.errors import InfrastructureError, NeucoError
from worker.storage import below_reserve

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

SILENT_FOR = timedelta(seconds=60)  # without a beat the daemon counts as hanging
CLOSES_WITHIN_S = 1  # its thread has nothing to do by then


class _Quiet(WSGIRequestHandler):
    """Requests for monitoring are no news."""

    def log(self, *_: Any) -> None:
        """Say nothing."""


def _room(free_bytes: Callable[[], int], reserve_gigabytes: float) -> dict[str, Any]:
    """Say how much room there is; a folder that is gone has none that could be told, and is a problem of its own."""
    try:
        free = free_bytes()
    except OSError:
        return {"free_bytes": None, "below_disk_reserve": None}
    return {"free_bytes": free, "below_disk_reserve": below_reserve(free, reserve_gigabytes) is not None}


class HealthServer:
    """Serves metrics and health in a thread.

    Args:
        listen: host:port on loopback.
        registry: What ``/metrics`` shows.
        last_beat: Returns when the main loop last beat.
        problem: Returns what keeps the state from being recorded, if anything does.
        free_bytes: Returns the free disk space for stored files.
        reserve_gigabytes: Returns what of it must stay free: `submission.disk_reserve_gigabytes`.
        clock: Returns the time.

    Raises:
        InfrastructureError: If the port is taken.
    """

    def __init__(
        self,
        listen: str,
        registry: CollectorRegistry,
        *,
        last_beat: Callable[[], datetime],
        problem: Callable[[], NeucoError | None],
        free_bytes: Callable[[], int],
        reserve_gigabytes: Callable[[], float],
        clock: Callable[[], datetime],
    ) -> None:
        place = urlsplit(f"//{listen}")
        metrics = make_wsgi_app(registry)

        def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            if environ["PATH_INFO"] == "/metrics":
                page: Iterable[bytes] = metrics(environ, start_response)
                return page
            if environ["PATH_INFO"] == "/healthz":
                silent, error = clock() - last_beat(), problem()
                well = silent <= SILENT_FOR and error is None
                start_response(
                    "200 OK" if well else "503 Service Unavailable", [("Content-Type", "application/json")]
                )
                told = None if error is None else {"code": error.code, "text": error.message}
                document = {
                    "healthy": well,
                    "last_beat_s": round(silent.total_seconds(), 1),
                    "problem": told,
                    **_room(free_bytes, reserve_gigabytes()),
                }
                return [json.dumps(document).encode()]
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"/metrics and /healthz are here\n"]

        try:
            self._server = make_server(
                place.hostname or "127.0.0.1",
                place.port or 0,
                application,
                threaded=True,
                request_handler=_Quiet,
            )
        except (OSError, SystemExit):
            raise InfrastructureError(
                f"Nothing can listen on {listen}: the port is taken or not allowed.",
                cure="Choose another metrics.listen.",
                code="metrics.listen",
            ) from None
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="health")
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=CLOSES_WITHIN_S)
