"""The sandbox's two origins over HTTP: the API, and the files, which EvalAI also serves from another host."""

from __future__ import annotations

import mimetypes
import socket
import threading
import time
from typing import Any

from flask import Flask, Request, Response, g, request
from flask.json.provider import DefaultJSONProvider
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import MethodNotAllowed
from werkzeug.routing import RequestRedirect
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from scoring.errors import InfrastructureError
from worker.sandbox import uploads
from worker.sandbox.authentication import Tokens
from worker.sandbox.call import Call
from worker.sandbox.faults import Fault, FaultSource
from worker.sandbox.replies import CHALLENGE_HEADER, Breakdown, Refusal, detail, not_found, page, server_error
from worker.sandbox.state import World
from worker.sandbox.views import ANONYMOUS, BLUEPRINTS, UNTHROTTLED

SUMMARY = 200  # characters of a body field to keep in the journal


class _Json(DefaultJSONProvider):
    ensure_ascii = False
    sort_keys = False


class Origin(Flask):
    """A web application with deliberate faults; it handles one request after another and records each in the journal."""

    json_provider_class = _Json

    def __init__(self, name: str, world: World, faults: FaultSource) -> None:
        super().__init__(f"evalai-sandbox-{name}", static_folder=None)
        self.config["PROPAGATE_EXCEPTIONS"] = True  # a dropped connection must reach the server
        self.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
        self.origin = name
        self.world = world
        self.faults = faults

    def full_dispatch_request(self) -> Response:
        """Handle a request unless a fault comes before it; apply a fault that comes after it."""
        request.get_data(parse_form_data=True)  # read the body before taking the lock
        problem = request.routing_exception
        known = problem is None or isinstance(problem, MethodNotAllowed)
        fault = self.faults.draw(self.origin) if known else None
        if fault in (Fault.ERROR_BEFORE, Fault.RESET_BEFORE, Fault.STORM):
            self._write_down({Fault.RESET_BEFORE: 0, Fault.STORM: 429}.get(fault, 500), fault)
            return _spoilt(fault, self.faults, server_error())
        with self.world.lock:
            answer = super().full_dispatch_request()
            self._write_down(answer.status_code, fault)
        return answer if fault is None else _spoilt(fault, self.faults, answer)

    def _write_down(self, status: int, fault: Fault | None) -> None:
        at, path = self.world.clock.now(), request.full_path.rstrip("?")
        where = {"origin": self.origin, "method": request.method, "path": path}
        if fault is not None:
            self.world.journal.write("fault", at=at, name=fault.value, **where)
        told = {
            "authorization": "Authorization" in request.headers,
            "user_agent": request.headers.get("User-Agent", ""),
            "body": _summary(request),
        }
        user = g.get("user")
        self.world.journal.write("request", at=at, user=user, status=status, detail=told, **where)


class Api(Origin):
    """EvalAI's addresses."""

    def __init__(self, world: World, tokens: Tokens, faults: FaultSource) -> None:
        super().__init__("api", world, faults)
        self.tokens = tokens
        for blueprint in BLUEPRINTS:
            self.register_blueprint(blueprint)
        self.register_error_handler(Breakdown, self._break_down)

    def dispatch_request(self) -> ResponseReturnValue:
        """Handle a request in the framework's order: address, authentication, permission, throttle, method, view."""
        problem = request.routing_exception
        if isinstance(problem, RequestRedirect):
            query = f"?{request.query_string.decode()}" if request.query_string else ""
            moved = Response(b"", 301, content_type="text/html")
            moved.autocorrect_location_header = False  # a path without host, as Django sends it
            moved.headers["Location"] = f"{request.path}/{query}"
            return moved
        if problem is not None and not isinstance(problem, MethodNotAllowed):
            return not_found()
        user = self.tokens.authenticate(request.headers.get("Authorization"))
        g.user = None if user is None else user.name
        endpoint = request.endpoint or ""
        if user is None and endpoint not in ANONYMOUS:
            text = "Authentication credentials were not provided."
            raise Refusal(401, {"detail": text}, CHALLENGE_HEADER)
        if user is not None and not user.verified and endpoint not in ANONYMOUS:
            raise detail(403, "Please verify your email!")
        if endpoint not in UNTHROTTLED:
            self._throttle(g.user or "")
        if problem is not None:
            raise detail(405, f'Method "{request.method}" not allowed.')
        view = self.ensure_sync(self.view_functions[endpoint])
        answer: ResponseReturnValue = view(Call(self.world, user), **(request.view_args or {}))
        return answer

    def _throttle(self, user: str) -> None:
        wait_s = self.world.throttle.admit(user, self.world.clock.monotonic())
        if wait_s is not None:
            raise _throttled(wait_s)

    def _break_down(self, problem: Breakdown) -> Response:
        self.world.effect("broke_down", reason=str(problem))
        return server_error()


class Media(Origin):
    """Files, for everybody who knows their addresses; it also accepts the parts of large uploads."""

    def __init__(self, world: World, faults: FaultSource) -> None:
        super().__init__("media", world, faults)
        self.add_url_rule("/media/<path:name>", view_func=self._file, methods=["GET"])
        self.add_url_rule("/media/<path:name>", view_func=self._part, methods=["PUT"])

    def _file(self, name: str) -> Response:
        """Serve a file if the address has its present signature."""
        content = self.world.media.get(name)
        if request.args.get("signature", "") != str(self.world.signatures.get(name, "")):
            return _refused(403, "AccessDenied")
        if content is None:
            return _refused(404, "NoSuchKey")
        return Response(content, content_type=mimetypes.guess_type(name)[0] or "application/octet-stream")

    def _part(self, name: str) -> Response:
        """Accept a part of a large upload at its address."""
        upload, number = request.args.get("uploadId", ""), request.args.get("partNumber", "")
        tag = uploads.put(self.world, name, upload, number, request.get_data())
        if tag is None:
            return _refused(403, "AccessDenied")
        return Response(b"", headers={"ETag": tag}, content_type="application/xml")


def _throttled(wait_s: int) -> Refusal:
    seconds = "second" if wait_s == 1 else "seconds"
    text = f"Request was throttled. Expected available in {wait_s} {seconds}."
    return Refusal(429, {"detail": text}, {"Retry-After": str(wait_s)})


def _refused(status: int, code: str) -> Response:
    return Response(f"<Error><Code>{code}</Code></Error>", status, content_type="application/xml")


def _spoilt(fault: Fault, faults: FaultSource, answer: Response) -> Response:
    if fault in (Fault.RESET_BEFORE, Fault.RESET_AFTER):
        raise ConnectionResetError("the sandbox drops this connection on purpose")
    if fault in (Fault.ERROR_BEFORE, Fault.ERROR_AFTER):
        return server_error()
    if fault is Fault.HTML:
        return page(200, "Please stand by")
    if fault is Fault.STORM:
        return _throttled(max(1, round(faults.plan.storm_s))).answer
    if fault is Fault.SLOW:
        time.sleep(faults.plan.slow_s)
        return answer
    body = answer.get_data()
    answer.set_data(body[: len(body) // 2])
    answer.headers["Content-Length"] = str(len(body))
    return answer


def _summary(request: Request) -> dict[str, str]:
    """Summarize a body: long values by their length, files by their names."""
    fields: dict[str, Any] = dict(request.form)
    if request.mimetype == "application/json":
        decoded = request.get_json(silent=True)
        fields = decoded if isinstance(decoded, dict) else {"": decoded}
    summary = {name: str(value) for name, value in fields.items()}
    summary = {n: v if len(v) <= SUMMARY else f"{v[:SUMMARY]}… ({len(v)})" for n, v in summary.items()}
    return summary | {name: f"file {file.filename}" for name, file in request.files.items()}


class _Handler(WSGIRequestHandler):
    """Logs no requests, because the journal does."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Do nothing."""

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        """Close the connection; without this, a dropped connection would be kept open for its next request."""
        self.close_connection = True


class Listener:
    """A web application on a port of its own, served by threads until it is closed.

    Raises:
        InfrastructureError: If the port is taken.
    """

    def __init__(self, app: Flask, host: str, port: int) -> None:
        try:
            listening = socket.create_server((host, port), backlog=128)
        except OSError as problem:
            raise InfrastructureError(
                f"The sandbox cannot listen on port {port} of {host}: {problem.strerror}.",
                cure="Choose another port with --port, or 0 for any free port.",
                code="sandbox.port_taken",
            ) from problem
        # The server duplicates this socket. If it had to open one itself, a failure would end the process.
        with listening:
            self._server: BaseWSGIServer = make_server(
                host, port, app, threaded=True, request_handler=_Handler, fd=listening.fileno()
            )
        self.url = f"http://{host}:{self._server.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name=app.name, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening and wait for the accepting thread."""
        self._server.shutdown()
        self._thread.join(timeout=5)
        self._server.server_close()
