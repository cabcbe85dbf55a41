"""The worker's User-Agent, from which operators of servers can see what sends a request, and in which version."""

from __future__ import annotations

from importlib.metadata import version

USER_AGENT = f"neuco-worker/{version('neuco-worker')}"
