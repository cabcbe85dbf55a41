"""What counts as this machine, to which a token may be sent over plain ``http://``."""

from __future__ import annotations

import pytest

from scoring.documents import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"])
def test_this_machine(host: str) -> None:
    """Every loopback address and the name localhost count."""
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "0.0.0.0",
        "10.0.0.1",
        "::",
        "localhost.example.org",
        "127.0.0.1.example.org",
        "2130706433",
        "127.1",
    ],
)
def test_other_addresses_are_not_this_machine(host: str | None) -> None:
    """This covers other addresses, names with the same beginning, and spellings that only some parsers read as an address."""
    assert not is_loopback(host)
