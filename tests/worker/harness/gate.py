"""A gate at one of the worker's checkpoints, and a file that hangs the process that opens it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIMIT_S = 300.0  # of real time; reached only when something is wrong


class Gate:
    """A checkpoint function that, each time it is closed, holds the next thread that reaches a given checkpoint.

    Args:
        checkpoint: Name of the checkpoint.
    """

    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = checkpoint
        self._closed, self._reached, self._open = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, name: str) -> None:
        """Come to a checkpoint."""
        if name == self._checkpoint and self._closed.is_set():
            self._closed.clear()
            self._reached.set()
            self._open.wait(LIMIT_S)

    def close(self) -> None:
        """Hold the next thread that reaches it."""
        self._closed.set()

    def reached(self) -> bool:
        """Return whether a thread is held."""
        return self._reached.is_set()

    def open(self) -> None:
        """Release the thread."""
        self._open.set()


@contextmanager
def hanging(path: Path) -> Iterator[None]:
    """Make a file hang every process that reads it."""
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    os.mkfifo(path)
    try:
        yield
    finally:
        path.unlink()
        aside.rename(path)
