"""Logging: each event has a sentence, a stable key and bound ids; JSON under systemd, readable lines at a terminal.

A redaction processor runs last: text that looks like a token never reaches a log, wherever it came from.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

from scoring.errors import NeucoError
from scoring.printable import printable

_TOKENS = (
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]+"),  # a JWT
    re.compile(r"\b[0-9a-f]{40}\b"),  # EvalAI's hex token
    re.compile(r"\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}"),
    re.compile(r"https://hooks\.[^\s\"']+"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),  # user:password in a URL
)
REDACTED = "[redacted]"
# every secret that this process has known: what is logged may contain one that was replaced
_hidden: set[str] = set()
_COMMITS = ("commit",)  # 40 hexadecimal digits that are not a secret


def redacted(value: Any, secrets: Collection[str]) -> Any:
    """Return a value of an event without the given secrets, and without what looks like one."""
    if isinstance(value, dict):
        return {key: redacted(item, secrets) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(redacted(item, secrets) for item in value)
    if isinstance(value, str):
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            value = value.replace(secret, REDACTED)
        for pattern in _TOKENS:
            value = pattern.sub(REDACTED, value)
    return value


def _redacted(_: Any, __: str, event: EventDict) -> EventDict:
    """A processor that removes secrets from every text of an event."""
    return {key: value if key in _COMMITS else redacted(value, _hidden) for key, value in event.items()}


def _printable(_: Any, __: str, event: EventDict) -> EventDict:
    """A processor that removes control sequences, so that text from others cannot control a terminal."""
    return {key: printable(value) if isinstance(value, str) else value for key, value in event.items()}


class _Logger(structlog.PrintLogger):
    """Goes on without a line that cannot be written, because its disk is full, or nobody reads it any more."""

    def msg(self, message: str) -> None:
        with suppress(OSError):
            super().msg(message)

    info = warning = error = critical = msg


def _logger(*_: str) -> _Logger:
    return _Logger(sys.stderr)


def for_systemd() -> bool:
    """Return whether the journal reads this process's stderr: a terminal's programs inherit the variable from the desktop."""
    try:
        stderr = os.fstat(2)
    except OSError:  # closed
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{stderr.st_dev}:{stderr.st_ino}"


def log_end(error: NeucoError) -> None:
    """Log what ends the process, as one line in the format of all other lines."""
    if not structlog.is_configured():  # the process ended before its secrets were known
        set_up()
    structlog.get_logger("neuco_worker").critical(error.sentence, event_key=error.code, hint=error.hint)


def set_up(*, secrets: Collection[str] = ()) -> None:
    """Configure structlog for a process that runs the worker: logs go to stderr, one JSON object a line when systemd reads it.

    Args:
        secrets: Values that must never appear, besides those of earlier calls.
    """
    _hidden.update(secrets)
    # JSON escapes control characters itself
    shown: tuple[Processor, ...] = (structlog.processors.JSONRenderer(sort_keys=True),)
    if not for_systemd():
        console = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
        shown = (_printable, console)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _redacted,
            *shown,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=_logger,
    )
