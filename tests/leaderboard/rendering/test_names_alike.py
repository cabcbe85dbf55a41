"""Team names that a reader can confuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.rendering.names import names_alike, skeleton


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
def test_lookalike_letters_are_detected(other: str) -> None:
    """This covers letters of another alphabet, I for l, case, accents, spaces, mathematical and invisible letters."""
    assert names_alike({1: "Pixel Pushers", 7: other, 3: "Random Walkers"}) == ((1, 7),)


@pytest.mark.parametrize(
    ("name", "other"), [("modern", "rnodern"), ("0ff", "Off"), ("АВС", "ABC"), ("team 1", "team l")]
)
def test_confusable_letters_count_as_equal(name: str, other: str) -> None:
    """This covers two letters that look like one, and digits."""
    assert skeleton(name) == skeleton(other)


@pytest.mark.parametrize(
    ("name", "other"), [("Team A", "Team B"), ("Team 2", "Team 3"), ("🐙", "🦀"), ("北京", "東京")]
)
def test_different_names_stay_different(name: str, other: str) -> None:
    """An additional number or letter makes another name, and so does another symbol."""
    assert names_alike({1: name, 2: other}) == ()


@given(st.text(max_size=40))
def test_every_name_looks_like_itself(name: str) -> None:
    """No text breaks the comparison, and case is never a difference."""
    assert names_alike({1: name, 2: name, 3: name.upper()})[0][:2] == (1, 2)
