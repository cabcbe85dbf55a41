"""Find team names that look alike, for example with letters of another alphabet, or a digit for a letter."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Mapping

from leaderboard.rendering import display_name


def names_alike(teams: Mapping[int, str]) -> tuple[tuple[int, ...], ...]:
    """Find teams whose names a reader can confuse.

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
    """Return a form of a name that is equal for names that look alike.

    Characters that look alike become one (by the confusables of Unicode Technical Standard 39), then case, accents, spaces and punctuation
    are removed. The result is for comparisons only, never shown.
    """
    alike = "".join(map(_prototype, unicodedata.normalize("NFKC", name)))
    letters = [char for char in unicodedata.normalize("NFKD", alike.casefold()) if char.isalnum()]
    return "".join(map(_prototype, letters)).casefold() or name


def _prototype(char: str) -> str:
    """Return the prototype of a character, which all characters that look like it share."""
    # Imported only here, because the table is large and only reports need it.
    from confusable_homoglyphs.confusables import confusables_data

    alike = [str(other["c"]) for other in confusables_data.get(char, ())]
    # The table maps a character to its prototype, and a prototype to all characters that look like it.
    if len(alike) != 1:
        return char
    [other] = alike
    is_prototype = len(confusables_data.get(other, ())) == 1 and len(other) == 1 and char < other
    return char if is_prototype else other
