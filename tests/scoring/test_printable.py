"""Foreign text is made safe to print on a terminal."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from scoring.printable import duration_of, printable, printable_lines


@given(st.text())
def test_terminal_controls_are_removed(text: str) -> None:
    """No control, direction or surrogate character, one line, and a second time changes nothing."""
    shown = printable(text)
    allowed = {"\u200c", "\u200d"}
    assert not [char for char in shown if unicodedata.category(char)[0] == "C" and char not in allowed]
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown
    shown.encode()


def test_words_stay_and_removed_characters_leave_a_mark() -> None:
    """Names in any script do not change; removed characters leave a mark."""
    assert printable("Équipe 北京 👩\u200d🚀") == "Équipe 北京 👩\u200d🚀"
    assert (
        printable("a\x1b[31mb\x9bc\x7f\u202ed\u2066\ud800") == "a\ufffd[31mb\ufffdc\ufffd\ufffdd\ufffd\ufffd"
    )
    assert printable("✓ all is well\r\n✗\u2028no\u00a0") == "✓ all is well  ✗ no "


def test_a_text_with_lines_keeps_them() -> None:
    """Its line ends stay."""
    assert printable_lines("one\n- two\r\x1b[2J\n") == "one\n- two \ufffd[2J\n"


def test_a_duration_has_the_unit_in_which_people_say_it() -> None:
    """It is rounded, and its unit is the largest of which there are two."""
    said = [duration_of(seconds) for seconds in (0.4, 1, 90, 600, 7199, 7200, 100_000, 864_000)]
    assert said == [
        *("0 seconds", "1 second", "90 seconds", "10 minutes", "120 minutes", "2 hours", "28 hours"),
        "10 days",
    ]
