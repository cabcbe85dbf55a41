"""Download a submission's file: streamed, limited in size, hashed, from known hosts only, and never with our token."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import SplitResult, urlsplit

import requests
import urllib3

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from scoring.inputs.limits import too_large
from scoring.loopback import is_loopback
from worker.runtime.user_agent import USER_AGENT

CHUNK = 1 << 18  # bytes
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, kw_only=True)
class DownloadResult:
    """What was downloaded: SHA-256 of the bytes as they arrived, in hexadecimal, and their number."""

    sha256: str
    size: int


def download(
    url: str,
    destination: Path,
    *,
    max_bytes: int,
    allowed_hosts: Collection[str],
    timeout_s: float,
    session: requests.Session | None = None,
) -> DownloadResult:
    """Download a file to ``destination``, which appears whole or not at all.

    The bytes are kept as they arrive: no content encoding is undone, so that the stored bytes are those that count against the limit.
    Redirects are not followed. No credentials are sent, not even those of a ``.netrc``.

    The total time is not limited here: names, connections, headers and bodies can all be slow, and only a process can be stopped in each
    of them. See :class:`worker.fetching.act.FetchFile`.

    Args:
        url: Address from the submission; ``http://`` only on loopback.
        destination: Where the file goes; its folder must exist. A temporary file next to it is always removed.
        max_bytes: Size limit of the download.
        allowed_hosts: ``host`` (any port) or ``host:port``: the server's own and the configured ``media_hosts``.
        timeout_s: How long the other side may be silent, in seconds.
        session: Connection pool; without one, a new one is made.

    Raises:
        ParticipantError: ``file.too_large``.
        OrganizerError: ``download.host``: files may not come from this address.
        InfrastructureError: ``file.link_expired``: reading the submission again may give a fresh address. Others, for the network, a
            time-out or an incomplete body: trying again may help.
    """
    check_address(url, allowed_hosts)
    pool = session or requests.Session()
    try:
        with _Part(destination) as part:
            result, error = _Transfer(part.file, max_bytes, timeout_s=timeout_s).run(pool, url)
            # Raised outside the library's handlers, because its exceptions contain addresses that may be signed.
            if error is not None:
                raise error
            part.keep()
            return result
    except OSError as problem:
        raise InfrastructureError(
            f"A submission's file cannot be written: {problem.strerror}.",
            cure="Check the free space and the permissions of the state directory. The worker tries again.",
            code="disk.write",
        ) from problem
    finally:
        if session is None:
            pool.close()


class _Part:
    """A temporary file next to its destination: moved there if it is kept, otherwise removed."""

    def __init__(self, destination: Path) -> None:
        self._destination = destination
        prefix = f".{destination.name[:40]}."
        descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=destination.parent)
        self._path = Path(name)
        self.file = os.fdopen(descriptor, "wb")

    def __enter__(self) -> _Part:
        return self

    def keep(self) -> None:
        """Move the whole file to its destination, durably."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self._path.replace(self._destination)

    def __exit__(self, *_: object) -> None:
        try:
            self.file.close()
        finally:
            self._path.unlink(missing_ok=True)


def check_address(url: str, allowed_hosts: Collection[str]) -> None:
    """Refuse an address from which files may not come.

    Raises:
        OrganizerError: ``download.host``.
    """
    try:
        address = urlsplit(url)
        port = address.port or DEFAULT_PORTS.get(address.scheme, 0)
        # The HTTP library has a parser of its own; an address that the two could read differently is refused.
        other = (urllib3.util.parse_url(url).host or "").strip("[]")
        if other != (address.hostname or "") or any(c <= " " or c in "\\\x7f" for c in url):
            raise ValueError("read differently by different parsers")
    except ValueError:
        address, port = SplitResult("", "", "", "", ""), 0
    host = address.hostname or ""
    plain = address.username is None and address.password is None
    safe = address.scheme == "https" or (address.scheme == "http" and is_loopback(host))
    if host and plain and safe and any(_matches(allowed, host, port) for allowed in allowed_hosts):
        return
    raise OrganizerError(
        f"A submission's file is at {_origin(address)}, a host that is not allowed.",
        cure="If this is EvalAI's file store, add the host to evalai.media_hosts."
        " Otherwise someone may have edited the submission: ask the team.",
        code="download.host",
    )


def _matches(allowed: str, host: str, port: int) -> bool:
    try:
        entry = urlsplit(f"//{allowed.strip()}")
        whole = entry.netloc == allowed.strip() and entry.username is None
        return whole and entry.hostname == host and entry.port in (None, port)
    except ValueError:
        return False


def _origin(address: SplitResult) -> str:
    host = "".join(c for c in (address.hostname or "")[:100] if c.isprintable())
    return f"{address.scheme[:10]}://{host}" if host else "an unreadable address"


class _Transfer:
    """One download into an open file."""

    def __init__(self, file: BinaryIO, max_bytes: int, *, timeout_s: float) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._hash = hashlib.sha256()
        self._size = 0

    def run(self, pool: requests.Session, url: str) -> tuple[DownloadResult, NeucoError | None]:
        """Download; return what arrived and what went wrong."""
        error: NeucoError | None
        try:
            with pool.get(
                url,
                stream=True,
                allow_redirects=False,
                timeout=(min(10.0, self._timeout_s), self._timeout_s),
                headers={"Accept-Encoding": "identity", "User-Agent": USER_AGENT},
                auth=_no_credentials,
            ) as response:
                error = self._check(response) or self._copy(response)
        except (requests.RequestException, urllib3.exceptions.HTTPError) as problem:
            error = _broken(f"The download of a submission's file broke off ({type(problem).__name__}).")
        return DownloadResult(sha256=self._hash.hexdigest(), size=self._size), error

    def _check(self, response: requests.Response) -> NeucoError | None:
        status = response.status_code
        if status in (403, 404, 410):
            return InfrastructureError(
                f"The address of a submission's file has expired (HTTP {status}).",
                cure="The worker reads the submission again, which gives a new address.",
                code="file.link_expired",
            )
        if 300 <= status < 400:
            return OrganizerError(
                "The address of a submission's file is a redirect, which the worker does not follow.",
                cure="Add the host that EvalAI serves files from to evalai.media_hosts.",
                code="download.redirected",
            )
        if status != 200:
            return _broken(f"The file store answered HTTP {status}.")
        length = _length(response)
        return too_large(self._max_bytes) if length is not None and length > self._max_bytes else None

    def _copy(self, response: requests.Response) -> NeucoError | None:
        """Copy the body as it arrives."""
        while chunk := response.raw.read1(CHUNK, decode_content=False):
            self._size += len(chunk)
            if self._size > self._max_bytes:
                return too_large(self._max_bytes)
            self._hash.update(chunk)
            self._file.write(chunk)
        length = _length(response)
        if length is not None and length != self._size:
            return _broken(f"A submission's file ended after {self._size} of {length} bytes.")
        return None


def _no_credentials(request: requests.PreparedRequest) -> requests.PreparedRequest:
    request.headers.pop("Authorization", None)
    return request


def _length(response: requests.Response) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _broken(sentence: str) -> InfrastructureError:
    return InfrastructureError(sentence, cure="The worker tries again.", code="download.broken")
