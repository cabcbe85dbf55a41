"""The worker's User-Agent, from which operators of servers can see what sends a request, and in which version."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def _version() -> str:
    try:
        return version("neuco-worker")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"


USER_AGENT = f"neuco-worker/{_version()}"
