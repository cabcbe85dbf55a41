"""A server on loopback that gives every request the answer that a test has chosen, and keeps the requests."""

from __future__ import annotations

import flask

from worker.sandbox import Listener


class Answering:
    """A running server.

    Attributes:
        reply: Its answer.
        asked: The requests.
        url: Its address.
    """

    def __init__(self) -> None:
        self.reply = flask.Response()
        self.asked: list[flask.Request] = []
        app = flask.Flask("answering")

        @app.before_request
        def answer() -> flask.Response:
            flask.request.get_data()  # it cannot be read later
            self.asked.append(flask.request._get_current_object())  # type: ignore[attr-defined]
            return self.reply

        self._listener = Listener(app)
        self.url = self._listener.url

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
