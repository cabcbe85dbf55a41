"""Read the public id list of a phase, which names the samples that a submission must embed."""

from __future__ import annotations

from pathlib import Path

from scoring.errors import OrganizerError
from scoring.inputs.embeddings import without_suffix
from scoring.printable import count_of

SHOWN = 3


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
            f"The id list {path} is empty.", cure="Write one public id per line.", code="ids.empty"
        )
    if lines[0].casefold() == "id" or lines[0].casefold().startswith("id,"):
        raise OrganizerError(
            f"The id list {path} begins with the header line {lines[0]!r}.",
            cure="Keep only ids in the file, one per line, without a header or other columns.",
            code="ids.header",
        )
    blank = [str(number) for number, line in enumerate(lines, start=1) if not line]
    _refuse(path, blank, "has", "blank line", cure="Remove them.", code="ids.blank")
    odd = [str(number) for number, line in enumerate(lines, start=1) if not line.isprintable()]
    cure = "Write plain text, one public id per line."
    _refuse(path, odd, "has control or invisible characters in", "line", cure=cure, code="ids.characters")
    ids = tuple(without_suffix(line) for line in lines)
    first: dict[str, int] = {}
    again = [
        f"{identifier} on lines {first[identifier]} and {number}"
        for number, identifier in enumerate(ids, start=1)
        if first.setdefault(identifier, number) != number
    ]
    _refuse(path, again, "repeats an id on", "line", cure="Keep each id once.", code="ids.duplicate")
    return ids


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise OrganizerError(
            f"The id list {path} cannot be read: {reason}.",
            cure="It must be a UTF-8 text file with one public id per line, which the user who runs this program may read.",
            code="ids.unreadable",
        ) from None
    # Not splitlines(): it also splits at form feeds and Unicode separators, which would cut an id in two.
    lines = [line.strip(" \t") for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def _refuse(path: Path, places: list[str], verb: str, noun: str, *, cure: str, code: str) -> None:
    if places:
        listed = ", ".join(places[:SHOWN])
        raise OrganizerError(
            f"The id list {path} {verb} {count_of(len(places), noun)} (first: {listed}).",
            cure=cure,
            code=code,
        )
