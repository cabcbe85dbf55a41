"""Download a submission's file: streamed, limited in size, hashed, from known hosts only, and never with our token."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO
from urllib.parse import SplitResult, urlsplit

import requests
import urllib3

from scoring.documents import is_loopback
from scoring.errors import Cancelled, InfrastructureError, NeucoError, OrganizerError
from scoring.inputs.limits import too_large
from worker.runtime.http import HttpSession, no_credentials

CHUNK = 1 << 18  # bytes
DEFAULT_PORTS = {"http": 80, "https": 443}


def download(
    url: str,
    destination: Path,
    *,
    max_bytes: int,
    allowed_hosts: Collection[str],
    timeout_s: float,
    given_up: threading.Event,
) -> str:
    """Download a file to ``destination``, which is whole when this returns its SHA-256 in hexadecimal.

    The bytes are kept as they arrive: no content encoding is undone, so that the stored bytes are those that count against the limit.
    Redirects are not followed. No credentials are sent, not even those of a ``.netrc``.

    The total time is not limited here, because names, connections, headers and bodies can all be slow; see
    :class:`worker.fetching.act.FetchFile`.

    Args:
        url: Address from the submission; ``http://`` only on loopback.
        destination: Where the file goes; its folder must exist.
        max_bytes: Size limit of the download.
        allowed_hosts: ``host`` (with https only port 443) or ``host:port``: the server's own and the configured ``media_hosts``.
        timeout_s: How long the other side may be silent, in seconds.
        given_up: Ends the download when it is set and the other side sends something.

    Raises:
        ParticipantError: ``file.too_large``.
        OrganizerError: ``download.host``: files may not come from this address.
        InfrastructureError: ``file.link_expired``: reading the submission again may give a fresh address. Others, for the network, a
            time-out or an incomplete body: trying again may help.
        Cancelled: If it was given up.
        OSError: If the file cannot be written.
    """
    check_address(url, allowed_hosts)
    with destination.open("wb") as file:
        sha256, error = _transfer(url, file, max_bytes, timeout_s=timeout_s, given_up=given_up)
    # Raised outside the library's handlers, because its exceptions contain addresses that may be signed.
    if error is not None:
        raise error
    return sha256


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
    # Ports of this machine belong to tests and rehearsals.
    usual = address.scheme == "http" or port == DEFAULT_PORTS["https"]
    safe = address.scheme == "https" or (address.scheme == "http" and is_loopback(host))
    if host and plain and safe and any(_matches(allowed, host, port, usual) for allowed in allowed_hosts):
        return
    raise OrganizerError(
        f"A submission's file is at {_origin(address)}, an address that is not allowed.",
        hint="If this is EvalAI's file store, add the host to evalai.media_hosts."
        " Otherwise someone may have edited the submission: ask the team.",
        code="download.host",
    )


def _matches(allowed: str, host: str, port: int, usual: bool) -> bool:
    """Return whether an allowed host is that of an address; without a port, it stands for the usual ones."""
    try:
        entry = urlsplit(f"//{allowed.strip()}")
        whole = entry.netloc == allowed.strip() and entry.username is None
        return whole and entry.hostname == host and (entry.port == port or (entry.port is None and usual))
    except ValueError:
        return False


def _origin(address: SplitResult) -> str:
    host = "".join(c for c in (address.hostname or "")[:100] if c.isprintable())
    return (
        f"{address.scheme[:10]}://{host}{f':{address.port}' if address.port else ''}"
        if host
        else "an unreadable address"
    )


def _transfer(
    url: str, file: BinaryIO, max_bytes: int, *, timeout_s: float, given_up: threading.Event
) -> tuple[str, NeucoError | None]:
    """Download into an open file; return the hash of what arrived, and what went wrong."""
    hashed, size = hashlib.sha256(), 0
    error: NeucoError | None
    try:
        with (
            HttpSession() as session,
            session.get(
                url,
                stream=True,
                allow_redirects=False,
                timeout=(min(10.0, timeout_s), timeout_s),
                headers={"Accept-Encoding": "identity"},
                auth=no_credentials,
            ) as response,
        ):
            error, length = _refusal(response), _length(response)
            if length is not None and length > max_bytes:
                error = error or too_large(max_bytes)
            while error is None and (chunk := response.raw.read1(CHUNK, decode_content=False)):
                size += len(chunk)
                if given_up.is_set():
                    error = Cancelled("The download was given up.")
                elif size > max_bytes:
                    error = too_large(max_bytes)
                else:
                    hashed.update(chunk)
                    file.write(chunk)
            if error is None and length not in (None, size):
                error = _broken(f"A submission's file ended after {size} of {length} bytes.")
    except (requests.RequestException, urllib3.exceptions.HTTPError) as problem:
        error = _broken(f"The download of a submission's file broke off ({type(problem).__name__}).")
    return hashed.hexdigest(), error


def _refusal(response: requests.Response) -> NeucoError | None:
    """Return the error for an answer that is not a file."""
    status = response.status_code
    if status in (403, 404, 410):
        return InfrastructureError(
            f"A submission's file is not at its address (HTTP {status}): the address has expired, or the file was deleted.",
            hint="The worker reads the submission again, which may give a new address. If this continues, ask the team to submit again.",
            code="file.link_expired",
        )
    if 300 <= status < 400:
        return OrganizerError(
            "The address of a submission's file is a redirect, which the worker does not follow.",
            hint="Add the host that EvalAI serves files from to evalai.media_hosts.",
            code="download.redirected",
        )
    return None if status == 200 else _broken(f"The file store answered HTTP {status}.")


def _length(response: requests.Response) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _broken(sentence: str) -> InfrastructureError:
    return InfrastructureError(sentence, hint="The worker tries again.", code="download.broken")
