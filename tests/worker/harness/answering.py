"""A server on loopback that gives every request the answer that a test has chosen, and keeps the requests."""

from __future__ import annotations

import flask
from werkzeug.wrappers import Request

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
        self.asked: list[Request] = []
        app = flask.Flask("answering")
        app.wsgi_app = Request.application(self._answer)
        self._listener = Listener(app)
        self.url = self._listener.url

    def _answer(self, request: Request) -> flask.Response:
        request.get_data()  # it cannot be read later
        self.asked.append(request)
        return self.reply

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
