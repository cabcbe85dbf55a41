"""The sections of the configuration: a value of the wrong form is refused in words that say what to write."""

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
def test_a_beacon_of_another_form_is_refused_in_our_words(rule: str, words: tuple[str, ...]) -> None:
    """It names what it saw, and how to write it."""
    with pytest.raises(ValidationError) as refused:
        Fairness(beacon=rule)
    said = str(refused.value)
    assert all(word in said for word in words)
    assert "isoformat" not in said


def test_a_beacon_of_the_right_form_is_read() -> None:
    """A source may have an @ in its name; the time is what comes after the last one."""
    assert [Fairness(beacon=rule).beacon for rule in BEACONS] == list(BEACONS)
    assert read_source("a@b @ 2026-12-05T19:30+01:00") == ("a@b", datetime(2026, 12, 5, 18, 30, tzinfo=UTC))
