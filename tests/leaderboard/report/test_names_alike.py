"""Team names that a reader can take for each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.report.names_alike import names_alike, skeleton


@pytest.mark.parametrize(
    "other",
    [
        "Рixel Pushers",
        "PixeI Pushers",
        "pixel-pushers",
        "Píxel  Pushers",
        "𝐏ixel Pushers",
        "Pixel\u200bPushers",
    ],
)
def test_tricks_are_seen_through(other: str) -> None:
    """Letters of another alphabet, a capital I for an l, case, accents, spaces, mathematical and invisible letters."""
    assert names_alike({1: "Pixel Pushers", 7: other, 3: "Random Walkers"}) == ((1, 7),)


@pytest.mark.parametrize(
    ("one", "other"), [("modern", "rnodern"), ("0ff", "Off"), ("АВС", "ABC"), ("team 1", "team l")]
)
def test_what_looks_like_another_letter_is_the_same(one: str, other: str) -> None:
    """Also what takes two letters to draw one, and digits."""
    assert skeleton(one) == skeleton(other)


@pytest.mark.parametrize(
    ("one", "other"), [("Team A", "Team B"), ("Team 2", "Team 3"), ("🐙", "🦀"), ("北京", "東京")]
)
def test_different_names_stay_different(one: str, other: str) -> None:
    """A number or a letter more is another name, and so is another sign."""
    assert names_alike({1: one, 2: other}) == ()


@given(st.text(max_size=40))
def test_every_name_looks_like_itself(name: str) -> None:
    """No text breaks the comparison, and case never tells two teams apart."""
    assert names_alike({1: name, 2: name, 3: name.upper()})[0][:2] == (1, 2)
