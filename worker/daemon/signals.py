"""Signals: what they ask the daemon for, told to its loop."""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass, field
from queue import SimpleQueue


@dataclass
class Signals:
    """What signals ask for. A handler only puts them into a queue, the one thing that may be done at any moment."""

    stop: threading.Event = field(default_factory=threading.Event)
    wake: threading.Event = field(default_factory=threading.Event)
    reload: bool = False
    _heard: SimpleQueue[int] = field(default_factory=SimpleQueue)

    def install(self) -> None:
        """Listen to SIGTERM and SIGINT (stop) and SIGHUP (reload).

        A handler interrupts the thread that waits for our events, perhaps while it holds a lock of theirs: there, setting one would wait
        for ever. So a thread of its own sets them.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda heard, _: self._heard.put(heard))
        threading.Thread(target=self._listen, name="signals", daemon=True).start()

    def _listen(self) -> None:
        while True:
            if self._heard.get() == signal.SIGHUP:
                self.reload = True
            else:
                self.stop.set()
            self.wake.set()
