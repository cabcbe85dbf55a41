"""What systemd wants to hear: that we are ready, that steps complete, that we stop."""

from __future__ import annotations

import contextlib
import os
import socket


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
