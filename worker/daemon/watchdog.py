"""Reports to systemd and monitoring: that the worker is ready, that steps are completed, that it stops."""

from __future__ import annotations

import contextlib
import os
import socket
from datetime import datetime


class Watchdog:
    """Notes every completed step, so that a step that hangs can be detected.

    Attributes:
        fed_at: When the last step was completed.

    Args:
        now: When the steps begin.
    """

    def __init__(self, now: datetime) -> None:
        self.fed_at = now

    def feed(self, now: datetime) -> None:
        """Note a completed step."""
        self.fed_at = now
        notify("WATCHDOG=1")


def notify(state: str) -> None:
    """Send systemd a notification (READY=1, WATCHDOG=1, STOPPING=1); without systemd, do nothing."""
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
