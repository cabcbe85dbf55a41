"""The sandbox as a Flask application, served on ports of loopback: EvalAI's addresses, and the files, which have another host."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Any, cast

from flask import Flask, Response, g, request
from werkzeug.exceptions import MethodNotAllowed
from werkzeug.routing import RequestRedirect
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from scoring.errors import InfrastructureError
from worker.sandbox.call import Breakdown, Refusal, authenticate, detail, page, unauthorized
from worker.sandbox.faults import Fault
from worker.sandbox.state import World
from worker.sandbox.views import challenge, submission

OPEN = frozenset({"challenge.by_number", "challenge.one_phase", "challenge.phase_splits"})
ANONYMOUS = OPEN | {"challenge.leaderboard"}
"""Endpoints that need no token, but refuse an invalid one."""
UNTHROTTLED = OPEN | {"challenge.all_entries"}
"""Endpoints that do not count against the rate limit."""
SERVER_ERROR = "Error 500 - Internal Server Error"


class Application(Flask):
    """Flask with deliberate faults; it handles one request after another and records each in the journal."""

    def full_dispatch_request(self) -> Response:
        """Handle a request unless a fault comes before it; apply a fault that comes after it."""
        request.get_data(parse_form_data=True)  # read the body before taking the lock
        world: World = self.config["WORLD"]
        with world.lock:
            origin = "media" if request.path.startswith("/media/") else "api"
            fault = world.faults.draw(origin)
            if fault in (Fault.ERROR_BEFORE, Fault.RESET_BEFORE):
                answer = page(500, SERVER_ERROR)
            elif fault is Fault.STORM:
                answer = _throttled(max(1, round(world.faults.plan.storm_s))).answer
            else:
                answer = super().full_dispatch_request()
            _record(world, origin, answer.status_code, fault)
        return answer if fault is None else _spoilt(fault, answer, world.faults.plan.slow_s)


def create_application(world: World) -> Application:
    """Return the application of one sandbox."""
    app = Application("evalai-sandbox", static_folder=None)
    # Exceptions go on, because a dropped connection must reach the server.
    app.config.from_mapping(WORLD=world, PROPAGATE_EXCEPTIONS=True, PROVIDE_AUTOMATIC_OPTIONS=False)
    for blueprint in (challenge.views, submission.views):
        app.register_blueprint(blueprint)

    @app.url_value_preprocessor
    def take_challenge(_endpoint: str | None, values: dict[str, Any] | None) -> None:
        """Let the views have the challenge in the address; most do not look whether it is the submission's, as at EvalAI."""
        g.address = (values or {}).pop("challenge", world.challenge.pk)
        g.challenge = world.challenges.get(g.address)

    @app.before_request
    def admit() -> Response | None:
        """Check in EvalAI's order: address, authentication, permission, throttle, method."""
        g.user = None
        problem = request.routing_exception
        if isinstance(problem, RequestRedirect):
            return _moved()
        if problem is not None and not isinstance(problem, MethodNotAllowed):
            return page(404, "Error 404 - Page Not Found")
        if request.endpoint == "challenge.file":
            return None
        g.user = authenticate(world, request.headers.get("Authorization"))
        if g.user is None and request.endpoint not in ANONYMOUS:
            raise unauthorized({"detail": "Authentication credentials were not provided."})
        if g.user is not None and not g.user.verified:
            raise detail(403, "Please verify your email!")
        if request.endpoint not in UNTHROTTLED:
            wait_s = world.throttle.admit(g.user.name if g.user else "", world.clock.monotonic())
            if wait_s is not None:
                raise _throttled(wait_s)
        if problem is not None:
            raise detail(405, f'Method "{request.method}" not allowed.')
        if g.challenge is None:
            raise detail(404, f"Challenge {g.address} does not exist")
        return None

    app.register_error_handler(Breakdown, lambda _: page(500, SERVER_ERROR))
    return app


def _moved() -> Response:
    query = f"?{request.query_string.decode()}" if request.query_string else ""
    answer = Response(b"", 301, {"Location": f"{request.path}/{query}"}, content_type="text/html")
    answer.autocorrect_location_header = False  # a path without host, as Django sends it
    return answer


def _throttled(wait_s: int) -> Refusal:
    seconds = "second" if wait_s == 1 else "seconds"
    words = f"Request was throttled. Expected available in {wait_s} {seconds}."
    return Refusal(429, {"detail": words}, {"Retry-After": str(wait_s)})


def _spoilt(fault: Fault, answer: Response, slow_s: float) -> Response:
    if fault in (Fault.RESET_BEFORE, Fault.RESET_AFTER):
        raise ConnectionResetError("the sandbox drops this connection on purpose")
    if fault is Fault.ERROR_AFTER:
        return page(500, SERVER_ERROR)
    if fault is Fault.HTML:
        return page(200, "Please stand by")
    if fault is Fault.SLOW:
        time.sleep(slow_s)
    if fault is Fault.TRUNCATED:
        content = answer.get_data()
        answer.set_data(content[: len(content) // 2])
        answer.headers["Content-Length"] = str(len(content))
    return answer


def _record(world: World, origin: str, status: int, fault: Fault | None) -> None:
    at, path = world.clock.now(), request.full_path.rstrip("?")
    address = {"origin": origin, "method": request.method, "path": path}
    if fault is not None:
        world.journal.write("fault", at=at, name=fault.value, **address)
    user = g.get("user")
    details = {
        "authorization": "Authorization" in request.headers,
        "user_agent": request.headers.get("User-Agent", ""),
    }
    name = None if user is None else user.name
    world.journal.write("request", at=at, user=name, status=status, detail=details, **address)


class _Handler(WSGIRequestHandler):
    """Logs no requests, because the journal does."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Do nothing."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Return the date of an answer, by the sandbox's clock."""
        world: World | None = cast("Flask", self.server.app).config.get("WORLD")
        return super().date_time_string(timestamp if world is None else world.clock.now().timestamp())

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        """Close the connection; without this, a dropped connection would be kept open for its next request."""
        self.close_connection = True


class Listener:
    """A web application on a port of its own, served by threads until it is closed.

    Raises:
        InfrastructureError: If the port is taken.
    """

    def __init__(self, app: Flask, port: int = 0, host: str = "127.0.0.1") -> None:
        try:
            listening = socket.create_server((host, port), backlog=128)
        except OSError as problem:
            raise InfrastructureError(
                f"The sandbox cannot listen on port {port} of {host}: {os.strerror(problem.errno or 0)}.",
                hint="Choose another port with --port, or 0 for any free port.",
                code="sandbox.port_taken",
            ) from problem
        # The server duplicates this socket. If it had to open one itself, a failure would end the process.
        with listening:
            self._server: BaseWSGIServer = make_server(
                host, port, app, threaded=True, request_handler=_Handler, fd=listening.fileno()
            )
        self.url = f"http://{host}:{self._server.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name=app.name, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening and wait for the accepting thread."""
        self._server.shutdown()
        self._thread.join(timeout=5)
        self._server.server_close()
