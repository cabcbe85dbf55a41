"""The process of a command: which signals end it, its exit status, and how its faults are told."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, ClassVar, NoReturn

import typer
from typer.exceptions import TyperException

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from scoring.printable import printable_lines

INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells."""
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end a command; Windows has only the first."""
UNWRITABLE = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF}
"""Errors of an output that takes no more: its reader has ended, a disk, a quota or a file's limit is full, or it is closed."""

FREE = "Free space, or write to another place, and run the command again."


class NoVerdict(InfrastructureError):
    """The command itself failed, so that nothing is known of what it should have checked."""

    exit_code: ClassVar[int] = 2  # 1 may be a verdict


@contextlib.contextmanager
def no_verdict() -> Iterator[None]:
    """Give a check that fails itself another exit status than a check that finds something.

    Raises:
        NoVerdict: In place of an infrastructure error, or if memory is short.
    """
    try:
        yield
    except (InfrastructureError, MemoryError) as error:
        reason = error if isinstance(error, InfrastructureError) else _out_of_memory()
        raise NoVerdict(reason.sentence, hint=reason.hint, code=reason.code) from error


def _out_of_memory() -> InfrastructureError:
    return InfrastructureError(
        "This needs more memory than it may use.",
        hint="End other programs, raise the limit (ulimit -v), or use a larger machine.",
        code="memory",
    )


def hear_of_children() -> None:
    """Learn how child processes end, also if the caller ignores that for this process: each would seem to have succeeded."""
    if hasattr(signal, "SIGCHLD"):  # not on Windows
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def end_in_order() -> None:
    """On SIGTERM, or if the terminal is closed, leave all contexts first, so that no temporary folder and no child process stays."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as after nohup
            signal.signal(number, _leave)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    for other in ENDING:  # a shell and the system each send SIGHUP when a terminal is closed
        signal.signal(other, lambda *_: None)  # SIG_IGN would hold for child processes too
    sys.exit(128 + number)


def end(status: int) -> NoReturn:
    """End the process with an exit status, whatever of its messages cannot be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # Python would try again, and end with a status of its own
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(status)


def run(program: Callable[..., Any], arguments: list[str]) -> int:
    """Run a command and return its exit status; wrong usage is reported here.

    Raises:
        NeucoError: If the command ended with it, its output cannot be written, or the system refused a file or memory.
    """
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal need not have every character
            stream.reconfigure(errors="replace")
    try:
        status = _status(program, arguments)
        sys.stdout.flush()
    except MemoryError as error:
        raise _out_of_memory() from error
    except OSError as error:
        if error.strerror is None:  # not the system's
            raise
        if error.filename is not None or error.errno not in UNWRITABLE:
            raise _refused(error) from error
        if isinstance(error, BrokenPipeError):  # the reader, such as a pager or head, has ended
            return NoVerdict.exit_code
        raise NoVerdict(
            f"The output of the command cannot be written: {error.strerror}.",
            hint=FREE,
            code="output.unwritable",
        ) from error
    return status


def _open_closed_streams() -> None:
    """Put the null device in place of each standard stream that is closed; what is printed to a closed stdout is an error."""
    for name, mode, access in (
        ("stdin", "r", os.O_RDONLY),
        ("stdout", "w", os.O_RDONLY),  # which refuses to be written
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode, encoding="utf-8"))


def _refused(error: OSError) -> NeucoError:
    """Return what the system refused, with the path if it is known, and the system's reason."""
    if error.errno in UNWRITABLE:
        return NoVerdict(
            f"{error.filename} cannot be written: {error.strerror}.", hint=FREE, code="file.unwritable"
        )
    if "No usable temporary directory" in str(error):  # Python's own words, followed by a list of folders
        return NoVerdict(
            f"{error.strerror}.",
            hint="Free space there, or let TMPDIR name a folder that can be written to, and run the command again.",
            code="file.unwritable",
        )
    # only the current folder can be missing without a name: it was deleted
    place = error.filename or ("The current folder" if error.errno == errno.ENOENT else "A file")
    return OrganizerError(
        f"{place} cannot be used: {error.strerror}.",
        hint="Check the path and its permissions, or name another place, and run the command again.",
        code="file.unusable",
    )


def _status(program: Callable[..., Any], arguments: list[str]) -> int:
    try:
        status = int(program(arguments, standalone_mode=False) or 0)
        if status != INTERRUPTED:
            return status
        raise KeyboardInterrupt
    except typer.Exit as ending:
        return ending.exit_code
    except SystemExit as ending:  # Typer ends with 1 if the reader of stdout has ended
        if isinstance(ending.__context__, BrokenPipeError):
            raise ending.__context__ from None
        raise
    except TyperException as error:
        error.message = error.message.replace("Value error, ", "")
        show = getattr(error, "show", None)
        if show is None:
            print(error, file=sys.stderr)
        else:
            show()
        return 2
    except (typer.Abort, KeyboardInterrupt):
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED


def report(name: str, error: NeucoError) -> int:
    """Print what ended a command, and what to do about it, after what it has said; return the exit status."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    with contextlib.suppress(OSError):  # stderr need not be writable either
        print(f"{name}: {printable_lines(error.sentence)}", file=sys.stderr)
        if error.hint:
            print(f"  {printable_lines(error.hint)}", file=sys.stderr)
    return error.exit_code
