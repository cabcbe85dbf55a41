"""The lock that keeps a second daemon off a SQLite state."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scoring.errors import InfrastructureError

PATIENCE_S = 2.0


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
        ends = time.monotonic() + PATIENCE_S
        while not (held := _locked(handle)) and time.monotonic() < ends:
            time.sleep(0.05)
        if not held:
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
