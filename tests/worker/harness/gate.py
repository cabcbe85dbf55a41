"""Where threads, children and processes hang until a test goes on, so that nothing depends on how long they take."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import LIMIT_S

NEVER_SCORES = """case "$*" in *evaluate_child) mv record "record of the phase" && mkfifo record;; esac"""
"""Lines for :func:`interpreter` that make children hang when they begin to score: the record of their phase is a pipe without a writer."""


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


def interpreter(folder: Path, lines: str) -> Path:
    """Write a program that becomes the interpreter of children, but runs some lines of shell first, in the child's folder."""
    program = folder / "interpreter"
    program.write_text(f'#!/bin/sh\n{lines}\nexec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return program


@contextmanager
def scoring_hangs(folder: Path) -> Iterator[None]:
    """Let the children that this process starts in the block hang when they begin to score."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(interpreter(folder, NEVER_SCORES)))
        yield
