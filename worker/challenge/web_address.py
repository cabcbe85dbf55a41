"""The address of a git repository's web page, derived from the repository's own address."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

EXAMPLE_REPOSITORY = "git@github.com:organizer/challenge-supplement.git"  # in config/challenge.yaml
_SCP = re.compile(r"(?:[\w.-]+@)?(?P<host>[\w.-]+):(?P<path>[^/\\].*)")


def web_address(repository: str) -> str | None:
    """Return the https address of a repository's page; None for the example's, a local path and anything unreadable.

    A user name or password in the address is dropped, and so is the port of ssh.
    """
    if repository == EXAMPLE_REPOSITORY:
        return None
    if "://" in repository:
        try:
            address = urlsplit(repository)
            port = f":{address.port}" if address.scheme == "https" and address.port else ""
        except ValueError:
            return None
        host, path = address.hostname or "", address.path
        if address.scheme not in ("https", "ssh") or address.query or address.fragment:
            return None
        host += port
    else:
        scp = _SCP.fullmatch(repository)
        if scp is None:
            return None
        host, path = scp["host"], scp["path"]
    path = path.strip("/").removesuffix(".git")
    if "." not in host or not re.fullmatch(r"[\w.~-]+(/[\w.~-]+)+", path):
        return None
    return f"https://{host}/{path}"
