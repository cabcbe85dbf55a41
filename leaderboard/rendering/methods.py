"""What participants say of their methods, made fit to be shown: a name, and links to a paper and to code.

All of it is hostile text. A name gets the form of any other text of a participant; an address is taken only if a browser can do nothing
with it but open a web page.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from leaderboard.rendering.names import display_text
from leaderboard.snapshot import Method

ADDRESS_LIMIT = 500  # characters; a longer one is left out, because an address that is cut leads elsewhere
_ADDRESS = re.compile(r"https?://[\w.~:/?#\[\]!$&'()*+,;=%@-]+", re.ASCII | re.IGNORECASE)


def shown_method(method: Method, *, known_as: str = "") -> Method:
    """Return what is shown of a method; showing that again changes nothing.

    Args:
        method: What the participant wrote.
        known_as: A name that the row has already: a baseline is called by its method.
    """
    name = display_text(method.name)
    return Method(
        name="" if name == known_as else name,
        project_url=web_address(method.project_url),
        publication_url=web_address(method.publication_url),
    )


def web_address(text: str) -> str:
    """Return an address of the web, or nothing if the text is anything else.

    Only ``http`` and ``https`` with a host and without a user or password, in the characters that RFC 3986 allows; so there is no script,
    no file, no blank and no quotation mark in it.
    """
    address = text.strip()
    if len(address) > ADDRESS_LIMIT or not _ADDRESS.fullmatch(address):
        return ""
    try:
        parts = urlsplit(address)
        named = parts.hostname and parts.port != 0  # a port that is not a number raises
    except ValueError:
        return ""
    return address if named and "@" not in parts.netloc else ""
