"""Read a faultless CSV file into ids and values, in the order of the file.

The standalone benchmark, which accepts what a challenge refuses, reads faulty files with a slower library. A faultless file is read by the
code that reads submissions, in less time and memory.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.archives import Capped
from scoring.inputs.columns import NUMBER_NAME, resolve_columns
from scoring.inputs.faults import Faults, Unreadable
from scoring.inputs.sniffing import sniff, sniff_text
from scoring.inputs.submission import HEAD_BYTES, open_text
from scoring.inputs.tabular import SMALL_FILE, BlockReader, blocks, read_header

ANY_SIZE = 1 << 62  # no limit, because users run this on their own files


def read_in_order(path: Path, wanted: Callable[[str], bool]) -> tuple[list[str], NDArray[np.float32]] | None:
    """Return the wanted ids as written and their values, n x N float32, in the order of the file.

    Args:
        path: CSV, plain or in .gz or .zip, with a column id and columns named 0 to N - 1, in any order.
        wanted: Returns whether the row of an id (without spaces around it) is wanted; values of other rows are not checked.

    Returns:
        None if the file is not CSV, or has anything that would be a fault in a submission: text, gaps, ragged lines, infinite values.
        Repeated ids are allowed here.

    Raises:
        OSError: If the file cannot be read.
    """
    faults = Faults()
    try:
        with path.open("rb") as file:
            kind = sniff(file, faults)
            if not kind.is_csv:
                return None
            source = Capped(open_text(file, kind, faults), file, faults, max_expanded_bytes=ANY_SIZE)
            sniff_text(source.peek(HEAD_BYTES), faults, nested=True)
            return _read(source, wanted, faults)
    except Unreadable:
        return None


def _read(
    source: Capped, wanted: Callable[[str], bool], faults: Faults
) -> tuple[list[str], NDArray[np.float32]] | None:
    stream = blocks(source, faults)
    first = next(stream, None)
    if first is None:
        return None
    header, rest = read_header(first, faults, most_columns=ANY_SIZE)
    dim = sum(bool(NUMBER_NAME.match(name.strip())) for name in header)
    columns = resolve_columns(header, dim, faults)
    if faults or not dim:
        return None
    reader = BlockReader(columns, dim, wanted, compiled=len(first.text) >= SMALL_FILE)
    identifiers: list[str] = []
    parts: list[NDArray[np.float32]] = []
    for parsed in reader.read_all(chain([rest], stream)):
        if parsed.faults:
            return None
        for names, _, rows in parsed.portions():
            written = [name.strip(" \t") for name in names]
            chosen = np.array([wanted(identifier) for identifier in written], dtype=np.bool_)
            parts.append(rows[chosen])
            identifiers.extend(identifier for identifier, kept in zip(written, chosen, strict=True) if kept)
    return (identifiers, np.concatenate(parts)) if identifiers else None
