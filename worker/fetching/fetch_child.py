"""The child process that downloads one submitted file without any token and stores it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypedDict


class FetchOrder(TypedDict):
    """What to download, and which file not to keep."""

    url: str
    state_dir: str
    placeholder: str
    max_bytes: int
    allowed_hosts: list[str]
    timeout_s: float


class FetchResult(TypedDict):
    """What was downloaded."""

    sha256: str


def main(order: FetchOrder, _: Callable[..., None]) -> FetchResult:
    """Download the order's URL; keep the file, unless it is EvalAI's placeholder.

    Raises:
        ParticipantError: If the file is larger than allowed.
        InfrastructureError: If the download failed or the file cannot be stored; the daemon tries again.
    """
    from scoring.errors import InfrastructureError
    from worker.fetching.download import download
    from worker.runtime.storage import FileStore

    destination = Path("file").absolute()
    sha256 = download(
        order["url"],
        destination,
        max_bytes=order["max_bytes"],
        allowed_hosts=frozenset(order["allowed_hosts"]),
        timeout_s=order["timeout_s"],
    )
    if sha256 != order["placeholder"]:
        try:
            FileStore(Path(order["state_dir"])).keep(destination, sha256)
        except OSError as problem:
            raise InfrastructureError(
                f"A downloaded file could not be stored ({problem.strerror}).",
                hint="Check the free space and the permissions of the state directory. The worker tries again.",
                code="disk.write",
            ) from problem
    return {"sha256": sha256}
