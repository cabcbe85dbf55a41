"""The lock that keeps a second daemon off a SQLite state."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leaderboard.file_lock import taken_within
from scoring.errors import InfrastructureError

PATIENCE_S = 2.0


@contextmanager
def only_daemon(state_dir: Path) -> Iterator[None]:
    """Hold the state directory's lock while the block runs.

    The kernel releases it with the process, however it ends; children do not inherit it, so a start succeeds while children of a killed
    predecessor still run. One that was just being started holds it until it has begun its own program, so it is tried for a moment.

    Raises:
        InfrastructureError: If another daemon holds it; the message names the holder.
    """
    state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = state_dir / "worker.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not taken_within(PATIENCE_S, handle):
            holder = os.pread(handle, 200, 0).decode("utf-8", "replace").strip() or "an unknown process"
            raise InfrastructureError(
                f"Another worker runs on this state: {holder}.",
                cure="Stop it first, or wait until it ends.",
                code="state.locked",
            )
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.close(handle)
