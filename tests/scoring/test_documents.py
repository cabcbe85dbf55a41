"""Other people's YAML, and addresses of this machine, to which a token may be sent over plain ``http://``."""

from __future__ import annotations

import pytest
import yaml

from scoring.documents import is_loopback, read_yaml, yaml_fault


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "FILE, line 1, column 5: this is not valid YAML."),
        ("a: 1\na: 2", "FILE, line 2, column 1: the key `a` is already in line 1."),
        ('a: "x\\0y"', "FILE, line 1, column 4: a text has the character NUL, or half a character."),
        ("2026-99-99", "FILE, line 1, column 1: `2026-99-99`: month must be in 1..12."),
        ("a: !!timestamp x", "FILE, line 1, column 4: this is not valid YAML."),
        ("a: !!bool x", "FILE, line 1, column 4: this is not valid YAML."),
        ('a: !!int ""', "FILE, line 1, column 4: this is not valid YAML."),
        ('a: "\\ud800"', "FILE, line 1, column 4: a text has the character NUL, or half a character."),
        ("[" * 5000, "FILE: it is nested too deeply."),
        (b"\xff\xfe\xfa", "FILE: line 1 is not UTF-8; save the file as UTF-8."),
        ("a: !!python/object:os.system {}", "FILE, line 1, column 4: this is not valid YAML."),
        ("\x00", "FILE: this is not valid YAML."),
        ("a: &x\n  b: [*x]", "FILE, line 1, column 4: this contains itself."),
    ],
    ids=[
        "open",
        "twice",
        "NUL",
        "no date",
        "tag",
        "bool",
        "int",
        "half",
        "deep",
        "bytes",
        "object",
        "control",
        "loop",
    ],
)
def test_all_invalid_yaml_raises_the_same_error(text: str | bytes, sentence: str) -> None:
    """No other exception is raised, and no object is created; where and what the fault is is said in plain words."""
    with pytest.raises(yaml.YAMLError) as caught:
        read_yaml(text)
    assert yaml_fault(caught.value, "FILE") == sentence


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
