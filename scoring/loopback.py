"""What counts as this machine: ``http://`` is allowed only to it, because elsewhere tokens and files would travel in the clear.

This module is in ``scoring`` because every package may import from ``scoring``.
"""

from __future__ import annotations

import ipaddress


def is_loopback(host: str | None) -> bool:
    """Return whether a host, as a name or as an address without brackets, means this machine."""
    if host is None:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
