"""Which column of a table is which dimension."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.reading.faults import Faults, shown

ID = -2  # the column with the ids
IGNORED = -1  # a named column that is not part of the embedding
EXTRA_COLUMNS = 10_000  # more named columns than this beside the embedding are not a table of embeddings
NUMBER_NAME = re.compile(r"[0-9]+\Z")
LOOKS_LIKE_VALUE = re.compile(r"[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?\Z")


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """The meaning of each column in the order of the file.

    Attributes:
        names: Names as written.
        targets: int32 per column: the dimension, or ``ID``, or ``IGNORED``.
        extra: Number of named columns that are ignored.
    """

    names: tuple[str, ...]
    targets: NDArray[np.int32]
    extra: int

    @property
    def id_column(self) -> int:
        """Position of the column with the ids."""
        return int(np.flatnonzero(self.targets == ID)[0])


def resolve_columns(names: Sequence[str], embedding_dim: int, faults: Faults) -> Columns:
    """Give each column its meaning. Digit-named columns count by number, in any order; faults of the dimension do not stop the reading.

    Raises:
        Unreadable: If rows could not be told apart: no id column, or two, or no names at all.
    """
    stripped = [name.strip() for name in names]
    _require_id(stripped, faults)
    targets = np.full(len(stripped), IGNORED, dtype=np.int32)
    targets[stripped.index("id")] = ID
    taken: set[int] = set()
    unexpected: list[str] = []
    extra = 0
    for position, name in enumerate(stripped):
        if name == "id":
            continue
        if not NUMBER_NAME.match(name):
            extra += 1
            continue
        number = int(name) if len(name) <= 9 else embedding_dim
        if number >= embedding_dim:
            unexpected.append(name)
        elif number in taken:
            faults.add("columns.duplicate", shown(name))
        else:
            taken.add(number)
            targets[position] = number
    _judge_dimension(taken, unexpected, embedding_dim, faults)
    return Columns(names=tuple(stripped), targets=targets, extra=extra)


def _require_id(names: list[str], faults: Faults) -> None:
    found = names.count("id")
    if found == 1:
        return
    if found > 1:
        raise faults.fatal("columns.two_ids", f"{found} of them")
    values = sum(bool(LOOKS_LIKE_VALUE.match(name)) for name in names)
    if values * 2 > len(names):
        raise faults.fatal("columns.no_header", ", ".join(shown(name) for name in names[:3]))
    near = [name for name in names if name.casefold() == "id"]
    listed = ", ".join(shown(name) for name in (near or names)[:3])
    raise faults.fatal("columns.no_id", f"the first names are {listed}" if not near else f"there is {listed}")


def _judge_dimension(taken: set[int], unexpected: list[str], embedding_dim: int, faults: Faults) -> None:
    missing = [number for number in range(embedding_dim) if number not in taken]
    if not missing and not unexpected:
        return
    found = len(taken) + len(unexpected)
    last = embedding_dim - 1
    faults.add("columns.dimension", f"found {found:,}, expected {embedding_dim:,}, named 0 to {last}")
    if missing:
        faults.add("columns.missing", *(f"column {number}" for number in missing[:3]), count=len(missing))
    if unexpected:
        faults.add(
            "columns.unexpected", *(f"column {shown(name)}" for name in unexpected[:3]), count=len(unexpected)
        )
