"""The types of errors in calls to EvalAI.

::

    InfrastructureError
    ├── Unreachable       network, time-out, 5xx, HTML or an incomplete answer; a write may have taken effect
    │   └── Unintelligible  JSON, but not in EvalAI's form
    └── Throttled         too many calls within a minute; ``retry_after_s``
    OrganizerError
    ├── AccountRefused    whatever is asked
    │   ├── TokenRefused  the token is expired, blacklisted, of the wrong kind or unknown
    │   └── NotPermitted  the token is good, but its owner is not a host of this challenge
    ├── NotFound          there is no such submission, queue, phase or split
    └── Rejected          EvalAI refuses what we sent

EvalAI has no uniform code for "not permitted" (401, 400 or 403), and answers 401 for two different things: only a refused token comes
with the header ``WWW-Authenticate``.

The text of an answer is kept for the organizer only, shortened and without control characters. No error contains the token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from scoring.errors import InfrastructureError, NeucoError, OrganizerError

TEXT_LIMIT = 300  # characters of an answer to keep
TOKEN_FAULTS: Mapping[str, tuple[str, str]] = {
    "has expired": ("The EvalAI token has expired.", "Copy a new one from the EvalAI profile page."),
    "blacklisted": (
        "The EvalAI token was replaced by a newer one.",
        "Someone pressed “Refresh token” on the EvalAI profile page. Copy the new token from there.",
    ),
    "wrong type": (
        "The EvalAI token is an access token, which is the wrong kind.",
        "Copy the token that the EvalAI profile page shows.",
    ),
    "not provided": (
        "EvalAI did not receive a token.",
        "Check whether a proxy between this machine and EvalAI removes the Authorization header.",
    ),
    "": (
        "EvalAI does not know this token.",
        "Copy the token that the EvalAI profile page shows, and check that it belongs to evalai.server.",
    ),
}
"""What is wrong with a token, and the hint, by the words that EvalAI uses for it."""


class Unreachable(InfrastructureError):
    """EvalAI gave no usable answer; a write may have taken effect all the same."""

    usual_code = "evalai.unreachable"


ODD_ANSWER = "The worker tries again. If this continues, check evalai.server. If it is correct, report a bug in neuco-worker."


class Unintelligible(Unreachable):
    """EvalAI answered with JSON that this worker does not understand."""

    usual_code = "evalai.unintelligible"


class Throttled(InfrastructureError):
    """EvalAI refuses calls for a while, because there were too many within a minute."""

    usual_code = "evalai.throttled"

    def __init__(
        self, sentence: str = "", *, hint: str = "", code: str = "", retry_after_s: float = 60.0
    ) -> None:
        super().__init__(sentence, hint=hint, code=code)
        self.retry_after_s = retry_after_s


class AccountRefused(OrganizerError):
    """EvalAI refuses every call of our account."""


class TokenRefused(AccountRefused):
    """EvalAI refuses our token."""

    usual_code = "evalai.token_refused"


class NotPermitted(AccountRefused):
    """The token is good, but its owner may not do this."""

    usual_code = "evalai.not_permitted"


class NotFound(OrganizerError):
    """EvalAI does not have what was asked for."""

    usual_code = "evalai.not_found"


class Rejected(OrganizerError):
    """EvalAI refuses the request, and would refuse it again."""

    usual_code = "evalai.rejected"


def server_text(document: Any) -> str:
    """Return the text of an answer, shortened and on one line; it is meant only for the organizer."""
    if isinstance(document, dict):
        for key in ("error", "detail"):
            if isinstance(document.get(key), str):
                return _shorten(document[key])
    return _shorten(json.dumps(document, ensure_ascii=False, default=str))


def failure(
    *,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    what: str,
    address: str,
    token_expired: bool = False,
) -> NeucoError | None:
    """Return the error that an answer means, None if it means none.

    Args:
        status: HTTP status.
        headers: Header fields; the caller's mapping must ignore case.
        body: The whole answer.
        what: The call in words, for the sentence.
        address: What was asked.
        token_expired: Whether our token has expired by its own date; EvalAI says "invalid or expired" for both.
    """
    if status == 429:
        return Throttled(
            f"EvalAI refused to {what}, because this account made too many calls within a minute.",
            hint="The worker waits and tries again. If this continues, use a separate account for other programs, or lower"
            " evalai.requests_per_minute.",
            retry_after_s=_retry_after(headers.get("Retry-After")),
        )
    if 300 <= status < 400:
        return Rejected(
            f"EvalAI redirected the request to {what} (HTTP {status}, asked at {address}).",
            hint="Set evalai.server to the exact address of the EvalAI server, with https://.",
            code="evalai.redirected",
        )
    try:
        document, readable = json.loads(body), True
    except (ValueError, RecursionError):  # no JSON, or nested too deeply
        document, readable = None, False
    if status >= 500 or status == 408 or not readable:
        return Unreachable(
            f"EvalAI did not send a usable answer to the request to {what} (HTTP {status}, asked at {address}).",
            hint="A running worker tries again. If this continues, check evalai.server and whether EvalAI is up.",
        )
    if 200 <= status < 300:
        return None
    if status == 401 and "WWW-Authenticate" in headers:
        words = "has expired" if token_expired else json.dumps(document)
        sentence, hint = next(fault for sign, fault in TOKEN_FAULTS.items() if sign in words)
        return TokenRefused(f"{sentence.removesuffix('.')} (asked at {address}).", hint=hint)
    return _refusal(status, server_text(document), what, address)


def _refusal(status: int, text: str, what: str, address: str) -> OrganizerError:
    """Return what EvalAI means when it knows the token but refuses the call."""
    if status == 403 and "verify your email" in text:
        return NotPermitted(
            "EvalAI requires the e-mail address of this account to be verified.",
            hint="Follow the link in the e-mail from EvalAI.",
            code="evalai.email_unverified",
        )
    if status in (401, 403) or "not authorized" in text:
        return NotPermitted(
            f"EvalAI does not allow this account to {what}.",
            hint="Use the token of a host of the challenge.",
        )
    if status == 404 or (status == 400 and re.search(r"queue name .* does not exist", text)):
        return NotFound(
            f"EvalAI has no such resource (request to {what}, asked at {address}): {text}",
            hint="Check evalai.server, evalai.challenge and evalai.queue.",
        )
    return Rejected(
        f"EvalAI refused to {what} (HTTP {status}): {text}",
        hint="Compare the phases, splits and metrics in the configuration with those at EvalAI. `neuco-worker doctor` does that.",
    )


def _retry_after(value: str | None) -> float:
    text = (value or "").strip()
    return min(3600.0, float(text)) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else 60.0


def _shorten(text: str) -> str:
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= TEXT_LIMIT else line[: TEXT_LIMIT - 1] + "…"
