"""Check what participants say about their methods before it is shown: a name, and links to a paper and to code.

All of it is hostile text. A name is treated like any other text of a participant. An address is accepted only if all that a browser can do
with it is to open a web page.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from leaderboard.rendering.names import display_text
from leaderboard.snapshot import Method

ADDRESS_LIMIT = 500  # characters; longer addresses are left out, because a shortened one would lead elsewhere
_ADDRESS = re.compile(r"https?://[\w.~:/?#\[\]!$&'()*+,;=%@-]+", re.ASCII | re.IGNORECASE)


def shown_method(method: Method, *, known_as: str = "") -> Method:
    """Return a method in the form in which it is shown; applying this twice changes nothing.

    Args:
        method: What the participant wrote.
        known_as: The row's name, so that a baseline, which is named by its method, does not show it twice.
    """
    name = display_text(method.name)
    return Method(
        name="" if name == known_as else name,
        project_url=web_address(method.project_url),
        publication_url=web_address(method.publication_url),
    )


def web_address(text: str) -> str:
    """Return a web address, or an empty text if it is not one.

    Only ``http`` and ``https`` with a host, without user or password, and in the characters of RFC 3986 are accepted. This excludes
    scripts, files, blanks and quotation marks.
    """
    address = text.strip()
    if len(address) > ADDRESS_LIMIT or not _ADDRESS.fullmatch(address):
        return ""
    try:
        parts = urlsplit(address)
        named = parts.hostname and parts.port != 0  # parts.port raises ValueError if it is not a number
    except ValueError:
        return ""
    return address if named and "@" not in parts.netloc else ""
