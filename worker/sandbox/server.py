"""The two origins of the sandbox over HTTP: the API, and the files, which EvalAI too serves from another host."""

from __future__ import annotations

import json
import mimetypes
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from flask import Flask, Request, Response, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RequestRedirect
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from scoring.errors import InfrastructureError
from worker.sandbox import uploads
from worker.sandbox.authentication import Tokens
from worker.sandbox.faults import Fault, FaultSource
from worker.sandbox.replies import NOT_FOUND, SERVER_ERROR, Breakdown, Reply, detail, page
from worker.sandbox.routing import FORM_TYPES, Route, answer
from worker.sandbox.state import World
from worker.sandbox.views import ROUTES

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
SUMMARY = 200  # characters of a body field that the journal keeps


def build_api(world: World, tokens: Tokens, faults: FaultSource) -> Flask:
    """Build the web application with EvalAI's addresses."""
    app = Flask("evalai-sandbox", static_folder=None)
    app.config["PROPAGATE_EXCEPTIONS"] = True  # a dropped connection must reach the server below

    @app.before_request
    def wrong_address() -> Response | None:
        problem = request.routing_exception
        if problem is None:
            return None
        if isinstance(problem, RequestRedirect):
            query = f"?{request.query_string.decode()}" if request.query_string else ""
            reply = page(301, "")
            answered = Response(b"", status=301, content_type=reply.content_type)
            answered.autocorrect_location_header = False  # a path without host, as Django sends it
            answered.headers["Location"] = f"{request.path}/{query}"
        elif problem.code == 404:
            answered = _response(NOT_FOUND)
        else:
            answered = _response(page(problem.code or 405, "Error"))
        _log_request(world, answered.status_code, user=None, fault=None)
        return answered

    for route in ROUTES:
        app.add_url_rule(
            route.path,
            endpoint=route.path,
            view_func=_view(route, world, tokens, faults),
            methods=METHODS,
            provide_automatic_options=False,
        )
    return app


def _view(route: Route, world: World, tokens: Tokens, faults: FaultSource) -> Any:
    def view(**arguments: Any) -> Response:
        if request.mimetype in FORM_TYPES:  # read the body before the lock is taken
            request.files.keys()
        else:
            request.get_data()
        fault = faults.draw("api")
        if fault in (Fault.ERROR_BEFORE, Fault.RESET_BEFORE, Fault.STORM):
            status = {Fault.RESET_BEFORE: 0, Fault.STORM: 429}.get(fault, 500)
            _log_request(world, status, user=None, fault=fault)
            return _spoilt(fault, faults, SERVER_ERROR)
        with world.lock:
            try:
                reply, user = answer(route, world, tokens, request, arguments)
            except Breakdown as breakdown:
                reply, user = SERVER_ERROR, None
                world.effect("broke_down", reason=str(breakdown))
            _log_request(world, reply.status, user=user.name if user else None, fault=fault)
        return _response(reply) if fault is None else _spoilt(fault, faults, reply)

    return view


def build_media(world: World, faults: FaultSource) -> Flask:
    """Build the web application that serves files, to anybody who knows their names, and takes the parts of large ones."""
    app = Flask("evalai-sandbox-media", static_folder=None)
    app.config["PROPAGATE_EXCEPTIONS"] = True

    @app.errorhandler(HTTPException)
    def other(problem: HTTPException) -> Response:
        return _response(page(problem.code or 404, "Error"))

    def answered(name: str, act: Callable[[World, str], Reply]) -> Response:
        request.get_data()  # read the body before the lock is taken
        fault = faults.draw("media")
        if fault in (Fault.ERROR_BEFORE, Fault.RESET_BEFORE):
            _log_request(world, 0, user=None, fault=fault, origin="media")
            return _spoilt(fault, faults, SERVER_ERROR)
        with world.lock:
            reply = act(world, name)
        _log_request(world, reply.status, user=None, fault=fault, origin="media")
        return _response(reply) if fault is None else _spoilt(fault, faults, reply)

    app.add_url_rule("/media/<path:name>", "file", lambda name: answered(name, _file), methods=["GET"])
    app.add_url_rule("/media/<path:name>", "part", lambda name: answered(name, _part), methods=["PUT"])
    return app


def _file(world: World, name: str) -> Reply:
    """Serve a file, if the address has its present signature."""
    content = world.media.get(name)
    if request.args.get("signature", "") != str(world.signatures.get(name, "")):
        return _refused(403, "AccessDenied")
    if content is None:
        return _refused(404, "NoSuchKey")
    return Reply(body=content, content_type=mimetypes.guess_type(name)[0] or "application/octet-stream")


def _part(world: World, name: str) -> Reply:
    """Take a part of a large upload at the address that was given for it."""
    upload, number = request.args.get("uploadId", ""), request.args.get("partNumber", "")
    tag = uploads.put(world, name, upload, number, request.get_data())
    if tag is None:
        return _refused(403, "AccessDenied")
    return Reply(body=b"", content_type="application/xml", headers={"ETag": tag})


def _refused(status: int, code: str) -> Reply:
    return Reply(status=status, body=f"<Error><Code>{code}</Code></Error>", content_type="application/xml")


def _response(reply: Reply) -> Response:
    if reply.content_type == "application/json" and not isinstance(reply.body, bytes):
        body: bytes | str = json.dumps(reply.body, ensure_ascii=False)
    else:
        body = reply.body
    response = Response(body, status=reply.status, content_type=reply.content_type)
    response.headers.update(reply.headers)
    return response


def _spoilt(fault: Fault, faults: FaultSource, reply: Reply) -> Response:
    if fault in (Fault.RESET_BEFORE, Fault.RESET_AFTER):
        raise ConnectionResetError("the sandbox drops this connection on purpose")
    if fault in (Fault.ERROR_BEFORE, Fault.ERROR_AFTER):
        return _response(SERVER_ERROR)
    if fault is Fault.HTML:
        return _response(page(200, "Please stand by"))
    if fault is Fault.STORM:
        wait_s = max(1, round(faults.plan.storm_s))
        refusal = detail(429, f"Request was throttled. Expected available in {wait_s} seconds.").reply
        response = _response(refusal)
        response.headers["Retry-After"] = str(wait_s)
        return response
    response = _response(reply)
    if fault is Fault.SLOW:
        time.sleep(faults.plan.slow_s)
        return response
    body = response.get_data()
    response.set_data(body[: len(body) // 2])
    response.headers["Content-Length"] = str(len(body))
    return response


def _log_request(
    world: World, status: int, *, user: str | None, fault: Fault | None, origin: str = "api"
) -> None:
    at = world.clock.now()
    path = request.full_path.rstrip("?")
    if fault is not None:
        fields = {"name": fault.value, "origin": origin, "method": request.method, "path": path}
        world.journal.write("fault", at=at, **fields)
    world.journal.write(
        "request",
        at=at,
        origin=origin,
        method=request.method,
        path=path,
        user=user,
        status=status,
        detail={
            "authorization": "Authorization" in request.headers,
            "user_agent": request.headers.get("User-Agent", ""),
            "body": _summary(request),
        },
    )


def _summary(request: Request) -> dict[str, str]:
    """Sum a body up: long values by their length, files by their name."""
    fields: dict[str, Any] = dict(request.form)
    if request.mimetype == "application/json":
        decoded = request.get_json(silent=True)
        fields = decoded if isinstance(decoded, dict) else {"": decoded}
    summary = {name: str(value) for name, value in fields.items()}
    summary = {n: v if len(v) <= SUMMARY else f"{v[:SUMMARY]}… ({len(v)})" for n, v in summary.items()}
    return summary | {name: f"file {file.filename}" for name, file in request.files.items()}


class _Handler(WSGIRequestHandler):
    """Answers without a line on stderr for each request: the journal is the log."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        """Hang up: without this a dropped connection would be kept alive, waiting for its next request."""
        self.close_connection = True


class Listener:
    """A web application on a port of its own, served by threads until it is closed.

    Raises:
        InfrastructureError: The port is taken.
    """

    def __init__(self, app: Flask, host: str, port: int) -> None:
        try:
            listening = socket.create_server((host, port), backlog=128)
        except OSError as problem:
            raise InfrastructureError(
                f"Port {port} of {host} cannot be listened on: {problem.strerror}.",
                cure="Choose another one with --port, or 0 for any free one.",
                code="sandbox.port_taken",
            ) from problem
        with listening:  # the server takes a duplicate; left to itself it would end the process
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
