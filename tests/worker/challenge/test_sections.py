"""The sections of the configuration: a malformed value is refused with a sentence that says what to write."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from worker.challenge.sections import BEACONS, Fairness, read_source

EXAMPLE = "`Lotto 6 aus 49@2026-12-05T19:30+01:00`"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("drnd", ("it says `drnd`", EXAMPLE, "did you mean drand?")),
        ("NONE", ("it says `NONE`", "did you mean none?")),
        ("Lotto", ("it says `Lotto`", "drand or none, or SOURCE@TIME")),
        ("Lotto@tomorrow", ("`tomorrow`", "is not a date and time", EXAMPLE)),
        ("Lotto@2026-12-05T19:30", ("has no UTC offset", EXAMPLE)),
        ("@2026-12-05T19:30+01:00", ("names no source", EXAMPLE)),
    ],
)
def test_a_malformed_beacon_is_refused_with_the_right_form(rule: str, words: tuple[str, ...]) -> None:
    """The error quotes the value and says how to write it."""
    with pytest.raises(ValidationError) as refused:
        Fairness(beacon=rule)
    said = str(refused.value)
    assert all(word in said for word in words)
    assert "isoformat" not in said


def test_a_well_formed_beacon_is_read() -> None:
    """A source may contain an @; the time follows the last one."""
    assert [Fairness(beacon=rule).beacon for rule in BEACONS] == list(BEACONS)
    assert read_source("a@b @ 2026-12-05T19:30+01:00") == ("a@b", datetime(2026, 12, 5, 18, 30, tzinfo=UTC))
