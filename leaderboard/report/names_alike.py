"""Team names that look alike: one written with letters of another alphabet, or with a digit for a letter."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Mapping

from leaderboard.rendering import display_name


def names_alike(teams: Mapping[int, str]) -> tuple[tuple[int, ...], ...]:
    """Find teams whose names a reader can take for each other.

    Args:
        teams: Team key to name.

    Returns:
        Groups of team keys, each sorted, so that the team that registered first comes first.
    """
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for key, name in sorted(teams.items()):
        groups[skeleton(display_name(name))].append(key)
    return tuple(tuple(keys) for keys in groups.values() if len(keys) > 1)


def skeleton(name: str) -> str:
    """Return what is left of a name once everything is gone that a reader overlooks.

    Characters that look alike become one (Unicode Technical Standard 39, the table of confusables), then case, accents, spaces and
    punctuation go. It is for comparing alone, never for showing.
    """
    alike = "".join(map(_prototype, unicodedata.normalize("NFKC", name)))
    letters = [char for char in unicodedata.normalize("NFKD", alike.casefold()) if char.isalnum()]
    return "".join(map(_prototype, letters)).casefold() or name


def _prototype(char: str) -> str:
    """Return the character, or the characters, that represent all that look like one."""
    # Loaded when a report is made: the table is large, and the worker does not need it.
    from confusable_homoglyphs.confusables import confusables_data

    alike = [str(other["c"]) for other in confusables_data.get(char, ())]
    # The table names for each character its prototype, and for a prototype everything that looks like it.
    if len(alike) != 1:
        return char
    [other] = alike
    is_prototype = len(confusables_data.get(other, ())) == 1 and len(other) == 1 and char < other
    return char if is_prototype else other
