"""Map the columns of a table to dimensions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.faults import Faults, shown

ID = -2  # the column with the ids
IGNORED = -1  # a named column that is not part of the embedding
EXTRA_COLUMNS = 10_000  # a table with more extra named columns than this is not a table of embeddings
NUMBER_NAME = re.compile(r"[0-9]+\Z")
NAMED = 3  # how many columns a fault or a note names
LOOKS_LIKE_VALUE = re.compile(r"[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?\Z")


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """The meaning of each column in the order of the file.

    Attributes:
        names: Names as written.
        targets: int32 per column: the dimension, or ``ID``, or ``IGNORED``.
        extra: Positions of the columns that are ignored because their names are not numbers.
    """

    names: tuple[str, ...]
    targets: NDArray[np.int32]
    extra: tuple[int, ...]

    @property
    def id_column(self) -> int:
        """Position of the column with the ids."""
        return int(np.flatnonzero(self.targets == ID)[0])

    @property
    def extra_names(self) -> tuple[str, ...]:
        """The first few ignored columns, described for the participant."""
        return tuple(
            shown(self.names[position]) if self.names[position] else f"column {position + 1}, without a name"
            for position in self.extra[:NAMED]
        )


def resolve_columns(names: Sequence[str], embedding_dim: int, faults: Faults) -> Columns:
    """Return the meaning of each column; columns named by digits may be in any order.

    Raises:
        Unreadable: If there is not exactly one id column. A wrong dimension is only added to ``faults``, so that reading goes on and finds
            the rest.
    """
    stripped = [name.strip() for name in names]
    _require_id(stripped, faults)
    targets = np.full(len(stripped), IGNORED, dtype=np.int32)
    targets[stripped.index("id")] = ID
    taken: set[int] = set()
    unexpected: list[str] = []
    extra: list[int] = []
    for position, name in enumerate(stripped):
        if name == "id":
            continue
        if not NUMBER_NAME.match(name):
            extra.append(position)
            continue
        number = int(name) if len(name) <= 9 else embedding_dim
        if number >= embedding_dim:
            unexpected.append(name)
        elif number in taken:
            faults.add("columns.duplicate", shown(name))
        else:
            taken.add(number)
            targets[position] = number
    others = [_called(position, stripped[position]) for position in extra]
    _judge_dimension(taken, unexpected, others, embedding_dim, faults)
    return Columns(names=tuple(stripped), targets=targets, extra=tuple(extra))


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
    raise faults.fatal("columns.no_id", f"the first names are {listed}" if not near else f"found {listed}")


def _judge_dimension(
    taken: set[int], beyond: list[str], others: list[str], embedding_dim: int, faults: Faults
) -> None:
    """Add as few faults as possible that say what is wrong with the names.

    Args:
        taken: Dimensions that have a column.
        beyond: Names that are numbers, but too large for a dimension.
        others: Descriptions of the columns whose names are not numbers.
        embedding_dim: Number of dimensions.
        faults: Receives the faults.
    """
    missing = [number for number in range(embedding_dim) if number not in taken]
    wanted = f"columns must be called 0 to {embedding_dim - 1}"
    if not missing and not beyond:
        return
    if missing == [0] and [name.lstrip("0") for name in beyond] == [str(embedding_dim)]:
        faults.add("columns.from_one", f"the last is called {embedding_dim}; {wanted}")
        return
    if others and not taken and not beyond:
        faults.add("columns.names", *others[:NAMED], count=len(others))
        faults.hints["columns.names"] = wanted
        return
    hint = f"found {len(taken) + len(beyond):,}, expected {embedding_dim:,}; {wanted}"
    if missing:
        faults.add("columns.missing", *(f"column {number}" for number in missing[:NAMED]), count=len(missing))
        faults.hints["columns.missing"] = "; ".join([hint, *others[:NAMED]])
    if beyond:
        faults.add(
            "columns.unexpected", *(f"column {shown(name)}" for name in beyond[:NAMED]), count=len(beyond)
        )
        faults.hints["columns.unexpected"] = wanted if missing else hint


def _called(position: int, name: str) -> str:
    return f"column {position + 1} {f'is called {shown(name)}' if name else 'has no name'}"
