"""A webhook on loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Hook:
    """A webhook on loopback that keeps what it receives."""

    def __init__(self) -> None:
        heard: list[dict[str, Any]] = []
        self.heard, self.status = heard, 200
        agents: list[str | None] = []
        self.agents = agents
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                agents.append(self.headers["User-Agent"])
                heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(hook.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, format: str, *args: Any) -> None:
                return

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/services/T0/B0/secretsecret"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
