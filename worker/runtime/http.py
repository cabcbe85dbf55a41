"""HTTP requests: to this machine directly, and to all others as the environment says."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3

from scoring.documents import is_loopback
from worker import __version__

USER_AGENT = f"neuco-worker/{__version__}"
"""What operators of servers see of the software that sends a request."""


class HttpSession(requests.Session):
    """A session that uses no proxy on loopback, where the sandbox and the practice draw are.

    For all other hosts, ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``, ``NO_PROXY`` and ``REQUESTS_CA_BUNDLE`` count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.headers["User-Agent"] = USER_AGENT

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:
        """Return how a request is sent."""
        settings = super().merge_environment_settings(url, proxies, stream, verify, cert)
        if is_loopback(urlsplit(url).hostname):
            settings["proxies"] = {}
        return settings

    def send(self, request: requests.PreparedRequest, **settings: Any) -> requests.Response:
        """Send a request; a host's name that cannot exist, such as eval..ai, is an error of the library like all others."""
        try:
            return super().send(request, **settings)
        except urllib3.exceptions.LocationParseError as error:
            raise requests.exceptions.InvalidURL(str(error), request=request) from None


def no_credentials(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Send a request without credentials, not even those of a ``.netrc``."""
    request.headers.pop("Authorization", None)
    return request


def proxy_of(url: str) -> str:
    """Return the address of the proxy through which requests to a server go, without its password; empty if there is none."""
    with HttpSession() as session:
        proxies = session.merge_environment_settings(url, {}, None, None, None)["proxies"]
    scheme, separator, place = (requests.utils.select_proxy(url, proxies) or "").rpartition("://")
    return f"{scheme}{separator}{place.rpartition('@')[2]}"
