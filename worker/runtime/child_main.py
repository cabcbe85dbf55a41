"""The entry point of every child process: lower the priority, end with the parent, and write JSON lines.

Run as ``python -m worker.runtime.child_main MODULE``. The module's ``main(order, say)`` does the work, in the working directory.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

from scoring.errors import NeucoError, error_document
from worker.runtime import storage

PR_SET_PDEATHSIG = 1
OOM_SCORE = 800  # of 1000: the kernel kills this process before the daemon
NICENESS = 5


def lower_priority() -> None:
    """Lower the priority, offer this process to the kernel's out-of-memory killer, and end with the parent."""
    os.nice(NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))
    parent = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died before the request took effect
        os._exit(1)


def send(stream: FileIO, **message: Any) -> None:
    """Send a message as one JSON line."""
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[stream.write(data) :]


def main() -> int:
    """Run one order and report how it ended; the exit status adds nothing to the last message."""
    gc.disable()  # the process ends soon; until then, to look for garbage takes a tenth of a short order
    lower_priority()
    stream = FileIO(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to stderr
    say = partial(send, stream)
    work: Callable[..., dict[str, Any]] = importlib.import_module(sys.argv[1]).main
    try:
        say(kind="done", **work(json.load(sys.stdin.buffer), say))
    except NeucoError as error:
        say(kind="error", **error_document(error))
    except OSError as problem:
        if not storage.is_full(problem):
            raise
        say(kind="error", **error_document(storage.full("the process of a submission could not write")))
    except MemoryError:
        say(kind="error", family="memory", sentence="Out of memory.", hint="", code="memory")
    gc.freeze()  # nor at the end, which takes another fifth
    return 0


if __name__ == "__main__":
    sys.exit(main())
