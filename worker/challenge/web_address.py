"""The address of a git repository's web page, derived from the repository's own address."""

from __future__ import annotations

import re

EXAMPLE_REPOSITORY = "git@github.com:organizer/challenge-supplement.git"  # in config/challenge.yaml
_ADDRESS = re.compile(
    r"(?:(?P<scheme>https|ssh)://(?:[^@/]*@)?(?P<server>[\w.-]+)(?P<port>:\d+)?/+|(?:[\w.-]+@)?(?P<host>[\w.-]+):)"
    r"(?P<path>(?:[\w.~-]+/)+[\w.~-]+?)(?:\.git)?/*"
)


def github_pages(repository: str) -> str | None:
    """Return the address at which GitHub serves a repository's page once that is turned on; None if it is not at GitHub."""
    _, _, path = (web_address(repository) or "").partition("https://github.com/")
    owner, _, name = path.partition("/")
    return f"https://{owner.lower()}.github.io/{name}/" if name else None


def web_address(repository: str) -> str | None:
    """Return the https address of a repository's page; None for the example's, a local path and anything unreadable.

    A user name or password in the address is dropped, and so is the port of ssh.
    """
    parts = None if repository == EXAMPLE_REPOSITORY else _ADDRESS.fullmatch(repository)
    if parts is None or "." not in (host := parts["server"] or parts["host"]):
        return None
    port = parts["port"] or ""
    return f"https://{host}{port if parts['scheme'] == 'https' else ''}/{parts['path']}"
