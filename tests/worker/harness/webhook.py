"""A webhook on loopback."""

from __future__ import annotations

from typing import Any

from tests.worker.harness.answering import Answering


class Hook(Answering):
    """A webhook on loopback that keeps what it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.reply.data = b"ok"
        self.url += "/services/T0/B0/secretsecret"

    @property
    def heard(self) -> list[dict[str, Any]]:
        """What it has received."""
        return [request.get_json() for request in self.asked]
