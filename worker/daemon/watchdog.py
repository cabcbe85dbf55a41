"""What systemd and monitoring hear: that we are ready, that steps complete, that we stop."""

from __future__ import annotations

import contextlib
import os
import socket
from datetime import datetime


class Watchdog:
    """Hears of every step that was completed. A step that hangs is noticed by the silence.

    Attributes:
        fed_at: When a step was completed last.

    Args:
        now: When the steps begin.
    """

    def __init__(self, now: datetime) -> None:
        self.fed_at = now

    def feed(self, now: datetime) -> None:
        """Tell of a completed step."""
        self.fed_at = now
        notify("WATCHDOG=1")


def notify(state: str) -> None:
    """Tell systemd something (READY=1, WATCHDOG=1, STOPPING=1); nothing happens without it."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel,
    ):
        channel.sendto(state.encode(), address)
