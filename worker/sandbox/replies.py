"""What a view answers: JSON as Django REST framework words it, or the HTML pages that EvalAI shows for 404 and 500."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CHALLENGE_HEADER = {"WWW-Authenticate": 'Bearer realm="api"'}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer: ``body`` is sent as JSON unless ``content_type`` says otherwise."""

    body: Any = None
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """The server says no, in JSON."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status} {body}")
        self.reply = Reply(status=status, body=body, headers=headers or {})


class Breakdown(Exception):
    """EvalAI's code fails here with an unhandled exception: an HTML page with status 500."""


def error(status: int, text: str) -> Refusal:
    """Refuse in the words of a view."""
    return Refusal(status, {"error": text})


def detail(status: int, text: str) -> Refusal:
    """Refuse in the words of the framework."""
    return Refusal(status, {"detail": text})


def page(status: int, title: str) -> Reply:
    """Build one of the HTML pages that a program does not expect."""
    html = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>\n"
    return Reply(status=status, body=html, content_type="text/html")


SERVER_ERROR = page(500, "Error 500 - Internal Server Error")
NOT_FOUND = page(404, "Error 404 - Page Not Found")
