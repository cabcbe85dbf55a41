"""Find out in which form the ids of a file differ from those that are expected."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from scoring.inputs.faults import shown

QUOTES = str.maketrans("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f", "''''\"\"\"\"")
FILE_SUFFIX = re.compile(r"(\.[A-Za-z][A-Za-z0-9]{0,7})+\Z")
DECIMALS = re.compile(r"\.0*\Z")
LONGEST = 1000  # characters of an id that is compared; so it takes no time worth mentioning


def _plain(text: str) -> str:
    compatible = unicodedata.normalize("NFKC", text.translate(QUOTES))
    return "".join(sign for sign in compatible if sign.isprintable()).strip(" '\"")


FORMS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("quotation marks, or characters that cannot be seen, differ", _plain),
    ("a path or a suffix differs", lambda text: FILE_SUFFIX.sub("", re.split(r"[/\\]", text)[-1])),
    ("ids were read as numbers with decimals", lambda text: DECIMALS.sub("", text)),
    ("zeros at the beginning are lost", lambda text: text.lstrip("0")),
    ("upper and lower case differ", str.casefold),
)


def _in_all_forms(text: str) -> str:
    for _, normal in FORMS:
        text = normal(text)
    return text


def differing_form(written: Sequence[str], expected: Iterable[str]) -> tuple[str, list[str]] | None:
    """Return in which form ids differ from the expected ones, and the pairs, quoted; None if they differ in more than form.

    Args:
        written: Some ids of the file, none of which is expected.
        expected: Ids that the file lacks.
    """
    lacking = list(expected)
    for name, normal in (*FORMS, ("paths, suffixes, case or the like differ", _in_all_forms)):
        by_form = {normal(identifier): identifier for identifier in lacking}
        pairs = [
            f"{shown(identifier)} instead of {shown(by_form[normal(identifier)])}"
            for identifier in written
            if len(identifier) <= LONGEST and normal(identifier) in by_form
        ]
        if pairs and len(by_form) == len(lacking):  # the form keeps ids apart
            return name, pairs
    return None
