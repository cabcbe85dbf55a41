"""Texts of participants, names, methods and links: what is accepted, one display form, and an escape for each renderer.

Team names are hostile: they may have Markdown, HTML, spreadsheet formulas, our own markers, invisible characters, characters that change
the writing direction, or hundreds of characters. :func:`display_name` decides what a person sees. :func:`markdown`, :func:`csv_cell` and,
for HTML and SVG, Jinja2's autoescape preserve exactly that text in their format. No other code in the package changes a name.

All of it is hostile text. A name is treated like any other text of a participant. An address is accepted only if all that a browser can do
with it is to open a web page.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from leaderboard.snapshot import Method, RowKey
from scoring.printable import JOINERS

NAME_LIMIT = 64  # characters shown; EvalAI accepts 100, older servers any number
_SOURCE_LIMIT = 1000  # characters of the source that are read, which is more than NAME_LIMIT needs
MARKS_LIMIT = 4  # combining marks on one character; no real name has more
UNNAMED = "(unnamed team)"

_EMOJI_STYLES = "\ufe0e\ufe0f"  # choose the text or picture form of the symbol before them
_KEYCAP = "\u20e3"
_BLANKS = "\u115f\u1160\u2800\u3164\uffa0"  # print nothing, although Unicode calls them letters or symbols
_JOINABLE = frozenset({"So", "Sk", "Lo", "Mn", "Mc", "Me"})
_MARKS = frozenset({"Mn", "Mc", "Me"})
_ASSIGNED = zlib.decompress(Path(__file__).with_name("unicode14.zlib").read_bytes())
"""A bit for each character: whether it is in Unicode 14, that of Python 3.11. The properties of newer ones depend on the version of Python,
so that another machine would render other bytes, and `verify` would contradict an honest challenge because of a team's name."""
_QUOTES = dict.fromkeys(map(ord, '"“”„‟″ˮ❝❞〝〞〟＂'), "'")
"""Double quotation marks, and what looks like one, to the single one that is usual within a quotation."""
_FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠'")

# Punctuation that has no meaning anywhere in a cell of a GitHub table.
_MARKDOWN_PLAIN = frozenset(" -.,()+/'\"!?%=;:#")
# GitHub rewrites these after rendering, so neither a backslash nor an entity protects them: mentions and mail addresses, issue references,
# emoji shortcodes, formulas, bare links. An element around the character does, as GitHub's manual says about "$".
_REWRITTEN = re.compile(r"@|\$|#(?=[\w\x80-\U0010ffff])|:(?=[\w+-]+:)|:(?=//)|(?<=(?i:www))\.", re.ASCII)
_INTRAWORD = re.compile(r"(?<=[0-9A-Za-z])_(?=[0-9A-Za-z])")


def display_name(text: str) -> str:
    """Return the form in which a name is shown: :func:`display_text`, but never empty."""
    return display_text(text) or UNNAMED


@lru_cache(maxsize=4096)
def display_text(text: str) -> str:
    """Return the form in which a participant's text is shown.

    It is composed canonically, on one line, with single spaces, without control, direction or invisible characters, and has at most
    ``NAME_LIMIT`` characters (a text that was cut ends with an ellipsis). Characters that are not in Unicode 14 become the replacement
    character. Applying this twice changes nothing.
    """
    name = text[:_SOURCE_LIMIT]
    # Removing a character can make its neighbors removable or join them; two rounds were enough for every name that we have seen.
    for _ in range(4):
        before, name = name, _clean(name)
        if name == before:
            break
    return _shortened(name, NAME_LIMIT)


def _shortened(name: str, limit: int) -> str:
    """Return a name with at most this many characters."""
    if len(name) <= limit:
        return name
    cut = name[: limit - 1]
    while cut and (name[len(cut)] in JOINERS or unicodedata.category(name[len(cut)]) in _MARKS):
        cut = cut[:-1]  # without its accent or the rest of an emoji, the last character would be another
    return cut.rstrip(" " + JOINERS) + "…"


def _clean(text: str) -> str:
    shown: list[str] = []
    marks = 0
    known = "".join(char if _is_assigned(char) or _ignorable(char) else "\ufffd" for char in text)
    source = unicodedata.normalize("NFC", known)
    for position, char in enumerate(source):
        category = unicodedata.category(char)
        before, after = shown[-1:], source[position + 1 : position + 2]
        marks = marks + 1 if category in _MARKS else 0
        if marks > MARKS_LIMIT or _ignorable(char):
            continue
        if char in JOINERS:
            if before and after and _joinable(before[0]) and _joinable(after):
                shown.append(char)
        elif char in _EMOJI_STYLES:
            if (before and unicodedata.category(before[0]) == "So") or after == _KEYCAP:
                shown.append(char)
        elif category in ("Zs", "Zl", "Zp") or char in "\t\n\v\f\r\x85" or char in _BLANKS:
            if before and before != [" "]:
                shown.append(" ")
        elif category in ("Cs", "Co"):
            shown.append("\ufffd")  # these have no public meaning, and XML forbids some of them
        elif category not in ("Cc", "Cf"):
            if category in _MARKS and (not before or before == [" "]):
                shown.append("\u25cc")  # a mark without a letter would be drawn over the table's border
            shown.append(char)
    return unicodedata.normalize("NFC", "".join(shown)).strip(" ")


def _is_assigned(char: str) -> bool:
    return bool(_ASSIGNED[ord(char) >> 3] >> (ord(char) & 7) & 1)


def _joinable(char: str) -> bool:
    return char not in _BLANKS and unicodedata.category(char) in _JOINABLE


def _ignorable(char: str) -> bool:
    """Return whether Unicode says that a character is invisible although it is not in the format category."""
    code = ord(char)
    return (
        char in "\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065"
        or 0xFE00 <= code <= 0xFE0D
        or 0xFFF0 <= code <= 0xFFF8
        or 0xE0000 <= code <= 0xE0FFF
    )


def quoted(name: str) -> str:
    """Return a display name for a sentence, in quotation marks that it cannot end, so that none of its words seem to be ours."""
    return f"“{name.translate(_QUOTES)}”"


def distinct_names(teams: Iterable[tuple[RowKey, str]]) -> dict[RowKey, str]:
    """Return row key → display name, and make all names different. Applying this twice changes nothing.

    Of names that a reader can confuse, such as those with letters of another alphabet, the team that registered first keeps the plain
    name; the others get a number.
    """
    names: dict[RowKey, str] = {}
    taken: set[str] = set()
    for key, text in sorted(dict(teams).items()):
        base = name = display_name(text)
        number = 1
        while skeleton(name) in taken:
            number += 1
            suffix = f" ({number})"
            name = _shortened(base, NAME_LIMIT - len(suffix)) + suffix
        taken.add(skeleton(name))
        names[key] = name
    return names


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


@lru_cache(maxsize=4096)
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
    # Imported only here, because the table is large (15 MB), and few need it.
    from confusable_homoglyphs.confusables import confusables_data

    alike = [str(other["c"]) for other in confusables_data.get(char, ())]
    # The table maps a character to its prototype, and a prototype to all characters that look like it.
    if len(alike) != 1:
        return char
    [other] = alike
    is_prototype = len(confusables_data.get(other, ())) == 1 and len(other) == 1 and char < other
    return char if is_prototype else other


def markdown(text: str) -> str:
    """Escape display text for a cell of a table in GitHub-flavored Markdown.

    Special characters become numeric character references, which never start markup and never split a table cell. Characters that GitHub
    rewrites after rendering are put into an element. An underscore between letters stays, so ordinary names do not change.
    """
    out: list[str] = []
    inside = {match.start() for match in _INTRAWORD.finditer(text)}
    isolated = {match.start() for match in _REWRITTEN.finditer(text)}
    for position, char in enumerate(text):
        if position in isolated:
            out.append(f"<span>&#{ord(char)};</span>")
        elif char.isalnum() or ord(char) > 127 or char in _MARKDOWN_PLAIN or position in inside:
            out.append(char)
        else:
            out.append(f"&#{ord(char)};")
    return "".join(out)


def csv_cell(text: str) -> str:
    """Return display text that no spreadsheet reads as a formula.

    An apostrophe, which marks text in spreadsheets, is put before everything that starts like a formula, and before a leading apostrophe,
    so that removing one leading apostrophe always restores the text. The same holds after a semicolon, where a spreadsheet whose language
    has decimal commas begins another cell.
    """
    return ";".join(
        "'" + piece if piece.lstrip(' "').startswith(_FORMULA_STARTS) else piece for piece in text.split(";")
    )


def csv_text(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV, with the same line ends on every system."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return text.getvalue()


WIDE = "\u2e80"  # CJK begins here; Unicode's own table of widths depends on the version of Python


def breadth(text: str) -> int:
    """Return how broad a text is, in tenths of a character; whole numbers, because versions of Python add floats differently."""
    return sum(20 if char >= WIDE else 13 if char.isupper() else 10 for char in text)


ADDRESS_LIMIT = 500  # characters; longer addresses are left out, because a shortened one would lead elsewhere
_ADDRESS = re.compile(r"https?://[\w.~:/?#\[\]!$&'()*+,;=%@-]+", re.ASCII | re.IGNORECASE)


def shown_method(method: Method, *, known_as: str = "") -> Method:
    """Return a method in the form in which it is shown; applying this twice changes nothing.

    Args:
        method: What the participant wrote.
        known_as: The row's name, so that a baseline, which is named by its method, does not show it twice.
    """
    name = display_text(method.name)
    return Method(
        name="" if name == known_as else name,
        project_url=web_address(method.project_url),
        publication_url=web_address(method.publication_url),
    )


def web_address(text: str) -> str:
    """Return a web address, or an empty text if it is not one.

    Only ``http`` and ``https`` with a host, without user or password, and in the characters of RFC 3986 are accepted. This excludes
    scripts, files, blanks and quotation marks.
    """
    address = text.strip()
    if len(address) > ADDRESS_LIMIT or not _ADDRESS.fullmatch(address):
        return ""
    try:
        parts = urlsplit(address)
        named = parts.hostname and parts.port != 0  # parts.port raises ValueError if it is not a number
    except ValueError:
        return ""
    return address if named and "@" not in parts.netloc else ""
