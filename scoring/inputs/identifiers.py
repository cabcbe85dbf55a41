"""Ids: read a phase's public list of them, and find out in which form the ids of a submission differ from it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from scoring.documents import contents
from scoring.errors import OrganizerError
from scoring.inputs.columns import names_an_id
from scoring.inputs.embeddings import without_suffix
from scoring.inputs.faults import PIECE_LIMIT, SHOWN, shown
from scoring.printable import count_of


def read_ids(path: Path) -> tuple[str, ...]:
    """Return the ids of a public list, one per line, in the order of the file.

    The file is UTF-8, with or without byte order mark, with any line ends. Spaces around an id, and the suffixes ``.zarr`` and
    ``.zarr.zip``, are removed as in submissions.

    Raises:
        OrganizerError: If the file is missing, unreadable or empty, or has blank, duplicate or invalid lines.
    """
    lines = _lines(path)
    if not lines:
        raise OrganizerError(
            f"The id list {path} is empty.", hint="Write one public id per line.", code="ids.empty"
        )
    if names_an_id(lines[0].split(",")[0]):
        raise OrganizerError(
            f"The id list {path} begins with the header line {lines[0]!r}.",
            hint="Keep only ids in the file, one per line, without a header or other columns.",
            code="ids.header",
        )
    separator = next((sign for sign in ",;" if all(sign in line for line in lines)), None)
    if separator:
        raise OrganizerError(
            f"The id list {path} has several columns; line 1 is {lines[0][:PIECE_LIMIT]!r}.",
            hint="Keep only the ids in the file, one per line. If they are, for example, the second column: cut -d"
            f"{separator!r} -f2",
            code="ids.columns",
        )
    blank = [str(number) for number, line in enumerate(lines, start=1) if not line]
    _refuse(path, blank, "has", "blank line", hint="Remove them.", code="ids.blank")
    odd = [str(number) for number, line in enumerate(lines, start=1) if not line.isprintable()]
    hint = "Write plain text, one public id per line."
    _refuse(path, odd, "has control or invisible characters in", "line", hint=hint, code="ids.characters")
    ids = tuple(without_suffix(line) for line in lines)
    first: dict[str, int] = {}
    again = [
        f"{identifier} on lines {first[identifier]} and {number}"
        for number, identifier in enumerate(ids, start=1)
        if first.setdefault(identifier, number) != number
    ]
    _refuse(path, again, "repeats an id on", "line", hint="Keep each id once.", code="ids.duplicate")
    return ids


def _lines(path: Path) -> list[str]:
    try:
        text = contents(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise OrganizerError(
            f"The id list {path} cannot be read: {reason}.",
            hint="It must be a UTF-8 text file with one public id per line, which the user who runs this program may read.",
            code="ids.unreadable",
        ) from None
    # Not splitlines(): it also splits at form feeds and Unicode separators, which would cut an id in two.
    lines = [line.strip(" \t") for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def _refuse(path: Path, places: list[str], verb: str, noun: str, *, hint: str, code: str) -> None:
    if places:
        listed = ", ".join(places[:SHOWN])
        raise OrganizerError(
            f"The id list {path} {verb} {count_of(len(places), noun)} (first: {listed}).",
            hint=hint,
            code=code,
        )


QUOTES = str.maketrans("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f", "''''\"\"\"\"")
FILE_SUFFIX = re.compile(r"(\.[A-Za-z][A-Za-z0-9]{0,7})+\Z")
DECIMALS = re.compile(r"\.0*\Z")
LONGEST = 1000  # characters of an id that is compared; so it takes no time worth mentioning


def _plain(text: str) -> str:
    compatible = unicodedata.normalize("NFKC", text.translate(QUOTES))
    return "".join(sign for sign in compatible if sign.isprintable()).strip(" '\"=")


PRINTED = re.compile(r"(?:[\w.]*\(|[\[{]|b(?=['\"]))+(.+?)(?:,?[)\]}])*\Z", re.DOTALL)


def _unprinted(text: str) -> str:
    """Return what is inside a text that Python printed, such as b'x', ('x',), np.int64(3) and tensor(3, device='cuda:0')."""
    inside = PRINTED.match(re.sub(r", [a-z_]+=.*", ")", text, flags=re.DOTALL))
    return inside[1].rstrip(",").strip("'\"") if inside else text


FORMS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("quotation marks, or characters that cannot be seen, differ", _plain),
    ("ids are written as Python prints objects", _unprinted),
    (
        "a path or a suffix differs",
        lambda text: FILE_SUFFIX.sub("", re.split(r"[/\\]", text.rstrip("/\\"))[-1]),
    ),
    ("ids were read as numbers with decimals", lambda text: DECIMALS.sub("", text)),
    ("zeros at the beginning differ", lambda text: text.lstrip("0")),
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
