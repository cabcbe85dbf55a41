"""Run the real worker in a child process, against the sandbox."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from scoring.errors import InfrastructureError
from worker.organizer.rehearsal.folder import RehearsalFolder
from worker.sandbox import Sandbox

LOOK_EVERY_S = 0.2
STOP_S = 12  # the daemon's own limit and a little more
LAST_WORDS = 1500  # characters of the worker's log in the error when it fails


@contextmanager
def worker_process(folder: RehearsalFolder, command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``once`` as cron would, or ``run`` as systemd would, and end it as systemd would."""
    code = "from worker.cli import main; main()"
    words = [sys.executable, "-c", code, command, "--config", str(folder.configuration)]
    with folder.log.open("ab") as log:
        process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, cwd=folder.path)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def watch(
    process: subprocess.Popen[bytes],
    folder: RehearsalFolder,
    evalai: Sandbox,
    submissions: Sequence[int],
    *,
    patience_s: float,
) -> Iterator[dict[int, str]]:
    """Yield the submissions' statuses repeatedly, for the last time after the worker has ended.

    Raises:
        InfrastructureError: If nothing changes any more.
    """
    before: dict[int, str] = {}
    changed_at = time.monotonic()
    ended = False
    while not ended:
        ended = process.poll() is not None  # checked before the last look, so that nothing is missed
        statuses = {pk: str(evalai.submission(pk)["status"]) for pk in submissions}
        if statuses != before:
            before, changed_at = statuses, time.monotonic()
        yield statuses
        if time.monotonic() - changed_at > patience_s and not ended:
            raise InfrastructureError(
                f"There was no progress for {patience_s:.0f} seconds.",
                cure=f"Look for the cause in the last lines of the worker's log: {last_words(folder)}",
                code="rehearse.stuck",
            )
        time.sleep(0 if ended else LOOK_EVERY_S)


def last_words(folder: RehearsalFolder) -> str:
    """Return the end of the worker's log."""
    return folder.log.read_text("utf-8", "replace")[-LAST_WORDS:].strip()
