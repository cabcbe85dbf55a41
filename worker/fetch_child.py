"""The child that downloads one submitted file: streamed, capped, hashed, without any token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def main(order: dict[str, Any], *_: Callable[..., Any]) -> dict[str, Any]:
    """Download the order's URL to its destination.

    Raises:
        ParticipantError: If the file is larger than allowed.
        InfrastructureError: If the download failed; it is tried again.
    """
    from worker.download import download

    result = download(
        order["url"],
        Path(order["destination"]),
        max_bytes=order["max_bytes"],
        allowed_hosts=frozenset(order["allowed_hosts"]),
        timeout_s=order["timeout_s"],
    )
    return {"sha256": result.sha256, "size": result.size}
