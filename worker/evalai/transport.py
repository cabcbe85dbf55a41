"""One call to EvalAI: address, token, time-outs, and every failure turned into a typed error.

The token is added inside the HTTP library by an object whose repr hides it, and errors are raised outside the library's handlers, so
neither a message nor a traceback with its variables contains the token.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import jwt
import requests
from requests.auth import AuthBase

from scoring.documents import is_loopback
from scoring.errors import Cancelled, NeucoError, OrganizerError
from worker.evalai.errors import Unreachable, failure
from worker.runtime.http import HttpSession

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 60.0  # a listing of a whole challenge takes long


class Transport:
    """Sends one request at a time to one server with one token; see :class:`worker.evalai.Client` for the arguments.

    Attributes:
        expiry: When the token expires; None for a token without an expiry date.
        calls: How many calls were sent, answered or not.
        ahead: How far EvalAI's clock was ahead of ours at the last answer that has a date; None before.
    """

    def __init__(
        self,
        *,
        server: str,
        token: str,
        session: requests.Session | None,
        timeout_s: tuple[float, float],
        clock: Callable[[], datetime],
    ) -> None:
        self.server = checked_server(server)
        self.expiry = token_expiry(token)
        self._auth = _TokenAuth(token)
        self._session = session or HttpSession()
        self._timeout_s = timeout_s
        self._clock = clock
        self._given_up = False
        self.calls = 0
        self.ahead: timedelta | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(server={self.server!r})"

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def give_up(self) -> None:
        """Send no further request, for which a thread may still have this client."""
        self._given_up = True

    def call(self, method: str, path: str, what: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send one request and return the JSON of its answer.

        Args:
            method: HTTP method.
            path: Address below the server, exactly as EvalAI wants it.
            what: The call in words, such as "read submission 4", for sentences.
            body: JSON to send.

        Raises:
            Cancelled: After :meth:`give_up`.
            NeucoError: One of :mod:`worker.evalai.errors`.
        """
        if self._given_up:
            raise Cancelled(f"The request to {what} was given up.")
        self.calls += 1
        answer, error = self._send(method, path, what, body)
        # Raised here, outside any handler, because the library's exceptions contain the request, which contains the token.
        if error is not None:
            raise error
        return json.loads(answer)

    def _send(
        self, method: str, path: str, what: str, body: Mapping[str, Any] | None
    ) -> tuple[bytes, NeucoError | None]:
        asked_at = self._clock()
        try:
            response = self._session.request(
                method,
                self.server + path,
                json=body,
                auth=self._auth,
                headers={"Accept": "application/json"},
                timeout=self._timeout_s,
                allow_redirects=False,
            )
        except OSError as problem:  # the library's own errors, and those of files that it opens
            return b"", Unreachable(
                f"The request to {what} did not reach EvalAI at {self.server + path}, or its answer did not arrive"
                f" ({type(problem).__name__}).",
                hint="A running worker tries again. If this continues, check the network and evalai.server.",
            )
        with contextlib.suppress(TypeError, ValueError):  # no date, or an invalid one
            theirs = parsedate_to_datetime(response.headers.get("Date"))  # type: ignore[arg-type]
            # Clocks that agree show a moment between the request and now, however long the answer took.
            self.ahead = theirs - min(max(theirs, asked_at), self._clock())
        error = failure(
            status=response.status_code,
            headers=response.headers,
            body=response.content,
            what=what,
            address=self.server + path,
            token_expired=self.expiry is not None and self.expiry <= self._clock(),
        )
        return response.content, error


def token_expiry(token: str) -> datetime | None:
    """Return when a JSON web token expires, without verifying it; None for hexadecimal digits and anything unreadable."""
    try:
        payload = jwt.decode(token.strip(), options={"verify_signature": False})
        return datetime.fromtimestamp(payload["exp"], tz=UTC)
    except (jwt.InvalidTokenError, LookupError, TypeError, ValueError, OverflowError, OSError):
        return None


def authorization(token: str) -> str:
    """Return the value of the header that sends a token.

    Raises:
        OrganizerError: If it has not the form of one.
    """
    token = token.strip()
    if re.fullmatch(r"[0-9a-fA-F]{40}", token):
        return f"Token {token}"
    if re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+", token, re.ASCII):
        return f"Bearer {token}"
    raise OrganizerError(
        "The EvalAI token is neither a JSON web token nor 40 hexadecimal digits.",
        hint="Copy the whole token from the EvalAI profile page.",
        code="evalai.token_form",
    )


class _TokenAuth(AuthBase):
    """Adds the Authorization header; its repr hides the token."""

    def __init__(self, token: str) -> None:
        self._header = authorization(token)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = self._header
        return request

    def __repr__(self) -> str:
        return "<token>"


def checked_server(server: str) -> str:
    """Return a server's address without a slash at its end.

    Raises:
        OrganizerError: If a token may not be sent there (``evalai.server_address``).
    """
    try:
        address = urlsplit(server.strip())
        safe = address.scheme == "https" or (address.scheme == "http" and is_loopback(address.hostname))
        whole = (
            bool(address.hostname) and address.username is None and not (address.query or address.fragment)
        )
    except ValueError:  # an IPv6 address with unbalanced brackets
        safe = whole = False
    if not (safe and whole):
        raise OrganizerError(
            "evalai.server is not an address that a token may be sent to.",
            hint="Write https://<host>. http:// is accepted only for this machine.",
            code="evalai.server_address",
        )
    return server.strip().rstrip("/")
