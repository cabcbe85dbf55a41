"""A terminal in which a command runs."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from tests.worker.harness.harness import ROOT, clean_environment


def shown(*words: str, until: str | None = None, answers: str = "", **environment: str) -> str:
    """Return what a terminal shows of a command, which is ended by SIGTERM as soon as it shows the given words.

    Args:
        words: The command.
        until: The words that end it.
        answers: What a person types.
        environment: Variables of the command.
    """
    ours, theirs = pty.openpty()
    kept = {key: value for key, value in clean_environment().items() if key not in ("NO_COLOR", "TERM")}
    command = [sys.executable, "-m", "worker.cli", *words]
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=kept | {"TERM": "xterm", "COLUMNS": "160"} | environment,
        cwd=ROOT,
    ) as process:
        os.close(theirs)
        os.write(ours, answers.encode())
        screen = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not piece:
                break
            screen += piece
            if until is not None and until.encode() in screen:
                process.terminate()
                until = None
        process.wait()
    os.close(ours)
    return screen.decode()
