"""Serve a web application on a port of loopback, in threads."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

from flask import Flask
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from scoring.errors import InfrastructureError


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

    def __init__(self, app: Flask, port: int = 0, host: str = "127.0.0.1") -> None:
        try:
            listening = socket.create_server((host, port), backlog=128)
        except OSError as problem:
            raise InfrastructureError(
                f"The sandbox cannot listen on port {port} of {host}: {os.strerror(problem.errno or 0)}.",
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
