"""The sections of the configuration: a malformed value is refused with a sentence that says what to write."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from worker.challenge.sections import BEACONS, Fairness, read_source


@pytest.mark.parametrize(
    "rule", ["drnd", "NONE", "Lotto", "Lotto@tomorrow", "Lotto@2026-12-05T19:30", "@2026-12-05T19:30+01:00"]
)
def test_a_malformed_beacon_is_refused_with_the_right_form(rule: str) -> None:
    """The error says how to write it."""
    with pytest.raises(
        ValidationError, match=r"must be drand, none or SOURCE@TIME with .* UTC offset, such as `Lotto"
    ):
        Fairness(beacon=rule)


def test_a_well_formed_beacon_is_read() -> None:
    """A source may contain an @; the time follows the last one."""
    assert [Fairness(beacon=rule).beacon for rule in BEACONS] == list(BEACONS)
    assert read_source("a@b @ 2026-12-05T19:30+01:00") == ("a@b", datetime(2026, 12, 5, 18, 30, tzinfo=UTC))
