"""The service manager: signals, by which it asks for something, and reports to it that the worker is ready, works, or stops."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from queue import SimpleQueue
from types import FrameType


class Stopped(BaseException):
    """SIGTERM came while the daemon was starting; nothing has begun that would need to be ended."""


class Signals:
    """What signals ask for.

    Attributes:
        stop: Set when the process is to end.
        wake: Set when the main loop has something to look at.
        reload: Set when the configuration is to be read again; see :meth:`reload_asked`.
        starting: Whether a stop interrupts the main thread, which may be waiting for a lock or for a file that hangs.
        stop_heard: Whether a signal has asked for a stop, which another thread then sets.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.wake = threading.Event()
        self.reload = threading.Event()
        self.starting = True
        self.stop_heard = False
        self._heard: SimpleQueue[int] = SimpleQueue()

    def install(self) -> None:
        """Handle SIGTERM and SIGINT (stop) and SIGHUP (reload).

        A handler interrupts the main thread, which may be waiting for one of these events and hold its lock; to set the event there would
        deadlock. So a handler only puts the signal in a queue, which is always allowed, and a separate thread sets the events.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._receive)
        threading.Thread(target=self._listen, name="signals", daemon=True).start()

    def reload_asked(self) -> bool:
        """Return whether a reload was asked for since the last time."""
        if not self.reload.is_set():
            return False
        self.reload.clear()  # one that comes now asks for another
        return True

    def _receive(self, number: int, _: FrameType | None) -> None:
        self._heard.put(number)
        self.stop_heard |= number != signal.SIGHUP
        if self.starting and self.stop_heard:
            self.starting = False
            raise Stopped

    def _listen(self) -> None:
        while True:
            if self._heard.get() == signal.SIGHUP:
                self.reload.set()
            else:
                self.stop.set()
            self.wake.set()


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
