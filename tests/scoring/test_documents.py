"""Other people's YAML, and addresses of this machine, to which a token may be sent over plain ``http://``."""

from __future__ import annotations

import pytest
import yaml

from scoring.documents import is_loopback, read_yaml


@pytest.mark.parametrize(
    "text",
    ["a: [", "2026-99-99", "[" * 5000, b"\xff\xfe\xfa", "a: !!python/object:os.system {}", "\x00"],
    ids=["open", "no date", "deep", "bytes", "object", "control"],
)
def test_all_invalid_yaml_raises_the_same_error(text: str | bytes) -> None:
    """No other exception is raised, and no object is created."""
    with pytest.raises(yaml.YAMLError):
        read_yaml(text)


@pytest.mark.parametrize(
    ("host", "own"),
    [
        *((host, True) for host in ("127.0.0.1", "::1", "localhost", "LOCALHOST")),
        *((host, False) for host in (None, "", "0.0.0.0", "10.0.0.1", "::", "2130706433", "127.1")),
        *((host, False) for host in ("localhost.example.org", "127.0.0.1.example.org")),
    ],
)
def test_only_loopback_addresses_and_localhost_are_this_machine(host: str | None, own: bool) -> None:
    """Names with the same beginning, and spellings that only some parsers read as an address, are not."""
    assert is_loopback(host) is own
