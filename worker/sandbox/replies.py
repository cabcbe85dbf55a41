"""What views raise: refusals in JSON, and the page for an exception in EvalAI's own code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flask import Response
from werkzeug.exceptions import HTTPException


class Refusal(HTTPException):
    """A refusal in JSON."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        text = json.dumps(body, ensure_ascii=False)
        self.answer = Response(text, status, headers, content_type="application/json")
        super().__init__(text, self.answer)
        self.code = status


class Breakdown(Exception):
    """An unhandled exception in EvalAI's code: an HTML page with status 500."""


def error(status: int, text: str) -> Refusal:
    """Return a refusal in a view's words."""
    return Refusal(status, {"error": text})


def detail(status: int, text: str) -> Refusal:
    """Return a refusal in the framework's words."""
    return Refusal(status, {"detail": text})


def page(status: int, title: str) -> Response:
    """Return an HTML page, which programs do not expect."""
    html = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>\n"
    return Response(html, status, content_type="text/html")
