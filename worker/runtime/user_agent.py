"""How the worker names itself to the servers that it calls: their operators see from whom a request comes, and which version it is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def _version() -> str:
    try:
        return version("neuco-worker")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"


USER_AGENT = f"neuco-worker/{_version()}"
