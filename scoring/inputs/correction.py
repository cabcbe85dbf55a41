"""Correct a submission where its meaning is clear: names of columns, and repeated rows.

Faults that only the author can correct (a missing id, a value that is not a number) are still refused.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from scoring.errors import ParticipantError
from scoring.inputs.archives import Capped
from scoring.inputs.columns import EXTRA_COLUMNS, NUMBER_NAME
from scoring.inputs.embeddings import Embeddings
from scoring.inputs.faults import Faults, Unreadable, shown
from scoring.inputs.sniffing import sniff
from scoring.inputs.submission import open_text, read_submission
from scoring.inputs.tabular import Block, blocks, read_header, record_end
from scoring.printable import count_of

__all__ = ["Corrected", "corrected"]
ENDS_WITH_NUMBER = re.compile(r"(.*?)([0-9]{1,9})\Z", re.DOTALL)


@dataclass(frozen=True, kw_only=True, eq=False)
class Corrected:
    """A submission that can be scored, and what was changed.

    Attributes:
        embeddings: Its embeddings.
        changes: One sentence for each change, and for each part of the file that was left out.
    """

    embeddings: Embeddings
    changes: tuple[str, ...]


def corrected(
    path: Path, public_ids: Sequence[str], embedding_dim: int, *, max_expanded_bytes: int
) -> Corrected:
    """Read a submission; if it is refused, rename its columns, leave out repeated rows, and try again.

    Args:
        path: The file; only CSV is corrected.
        public_ids: Ids that must be embedded, in any order.
        embedding_dim: Number N of values per id.
        max_expanded_bytes: Most bytes that are read out of the file.

    Raises:
        ParticipantError: If the corrected file is refused, too; the message says what is left to fix.
        InfrastructureError: If a file cannot be read.
    """
    try:
        found = read_submission(path, public_ids, embedding_dim, max_expanded_bytes=max_expanded_bytes)
        return Corrected(embeddings=found, changes=_sentences(found.notes))
    except ParticipantError as refusal:
        if path.is_dir():
            raise
        with tempfile.TemporaryDirectory() as folder:
            better = Path(folder) / "better.csv"
            with better.open("wb") as target:
                changes = _rewrite(path, target, embedding_dim, max_expanded_bytes=max_expanded_bytes)
            if not changes:
                raise _left(refusal) from None
            try:
                found = read_submission(
                    better, public_ids, embedding_dim, max_expanded_bytes=2 * max_expanded_bytes
                )
            except ParticipantError as error:
                raise _left(error) from None
    return Corrected(embeddings=found, changes=(*changes, *_sentences(found.notes)))


def _sentences(notes: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{note[0].upper()}{note[1:]}." for note in notes)


def _left(error: ParticipantError) -> ParticipantError:
    """Return a refusal that says what only the author can fix."""
    return ParticipantError(
        f"No file was written, because only you can correct this:\n{error.sentence}",
        cure=error.cure,
        code=error.code,
    )


def _rewrite(path: Path, target: BinaryIO, embedding_dim: int, *, max_expanded_bytes: int) -> tuple[str, ...]:
    """Copy a table with better names and without repeated rows, and return the changes; none if it is not CSV.

    Every row keeps its line number, so that error messages fit the author's file.
    """
    faults = Faults()
    try:
        with path.open("rb") as file:
            kind = sniff(file, faults)
            if not kind.is_csv:
                return ()
            source = Capped(
                open_text(file, kind, faults), file, faults, max_expanded_bytes=max_expanded_bytes
            )
            stream = blocks(source, faults)
            first = next(stream, None)
            if first is None:
                return ()
            names, rest = read_header(first, faults, most_columns=embedding_dim + EXTRA_COLUMNS)
            header, changes = better_names(names, embedding_dim)
            target.write(b"\n" * (rest.line - 2) + _line(header))
            repeated = _copy(chain([rest], stream), target)
    except Unreadable:
        return ()
    if repeated:
        rows = count_of(repeated, "row that repeats another", "rows that repeat another")
        changes = (*changes, f"Left out {rows}.")
    return changes


def _line(cells: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()


def _copy(stream: Iterator[Block], target: BinaryIO) -> int:
    """Copy records; replace each one that repeats an earlier record with blank lines. Return the number of repeats."""
    seen: set[bytes] = set()
    repeated = 0
    for block in stream:
        position = 0
        while position < len(block.text):
            end = record_end(block.text, position)
            record, position = block.text[position:end], end
            bare = record.strip()
            name = hashlib.blake2b(bare, digest_size=16).digest()
            if bare and name in seen:
                repeated += 1
                record = b"\n" * record.count(b"\n")
            seen.add(name)
            target.write(record)
    return repeated


def better_names(names: Sequence[str], embedding_dim: int) -> tuple[list[str], tuple[str, ...]]:
    """Return the required names of the columns, as far as it is certain which column is which.

    Returns:
        The names, and one sentence for each change.
    """
    better = [name.strip() for name in names]
    changes = []
    named_id = [position for position, name in enumerate(better) if name.casefold() == "id"]
    if len(named_id) == 1 and better[named_id[0]] != "id":
        changes.append(f"Renamed the column {shown(better[named_id[0]])} to id.")
        better[named_id[0]] = "id"
    numbered = any(NUMBER_NAME.match(name) and int(name) == 0 for name in better)
    runs = [] if numbered else list(_runs(better, embedding_dim))
    if len(runs) == 1:
        [places] = runs
        ends = shown(better[places[0]]), shown(better[places[-1]])
        changes.append(
            f"Renamed {count_of(embedding_dim, 'column')}: {ends[0]} to {ends[1]} are now 0 to {embedding_dim - 1}."
        )
        for number, place in enumerate(places):
            better[place] = str(number)
    return better, tuple(changes)


def _runs(names: Sequence[str], embedding_dim: int) -> Iterator[list[int]]:
    """Yield the positions of columns that share a prefix and are numbered without gaps from 0 or 1, one for each dimension."""
    groups: dict[str, dict[int, int]] = {}
    counts: dict[str, int] = {}
    for place, name in enumerate(names):
        if found := ENDS_WITH_NUMBER.match(name):
            groups.setdefault(found[1], {})[int(found[2])] = place
            counts[found[1]] = counts.get(found[1], 0) + 1
    for beginning, places in groups.items():
        numbers = sorted(places)
        counted = counts[beginning] == len(numbers) == embedding_dim
        if counted and numbers[0] in (0, 1) and numbers[-1] == numbers[0] + embedding_dim - 1:
            yield [places[number] for number in numbers]
