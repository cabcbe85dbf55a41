"""Signals: pass on to the main loop what they ask for."""

from __future__ import annotations

import signal
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
        starting: Whether a stop interrupts the main thread, which may be waiting for a lock or for a file that hangs.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.wake = threading.Event()
        self.starting = True
        self._reload = threading.Event()
        self._heard: SimpleQueue[int] = SimpleQueue()

    def install(self) -> None:
        """Handle SIGTERM and SIGINT (stop) and SIGHUP (reload).

        A handler interrupts the main thread, which may be waiting for one of these events and hold its lock; to set the event there would
        deadlock. So a handler only puts the signal in a queue, which is always allowed, and a separate thread sets the events.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._hear)
        threading.Thread(target=self._listen, name="signals", daemon=True).start()

    def ask_reload(self) -> None:
        """Ask for a reload, as SIGHUP does."""
        self._reload.set()

    def reload_asked(self) -> bool:
        """Return whether a reload was asked for since the last time."""
        asked = self._reload.is_set()
        self._reload.clear()
        return asked

    def _hear(self, number: int, _: FrameType | None) -> None:
        self._heard.put(number)
        if self.starting and number != signal.SIGHUP:
            self.starting = False
            raise Stopped

    def _listen(self) -> None:
        while True:
            if self._heard.get() == signal.SIGHUP:
                self.ask_reload()
            else:
                self.stop.set()
            self.wake.set()
