"""Map the columns of a table to dimensions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scoring.inputs.faults import ID_NAMES, SHOWN, Faults, Unreadable, shown
from scoring.printable import name_some

EXTRA_COLUMNS = 10_000  # a table with more extra named columns than this is not a table of embeddings
VECTOR_NAMES = ("embedding", "embeddings")  # which decide if several columns hold lists of numbers
NUMBER_NAME = re.compile(r"[0-9]+\Z")
LOOKS_LIKE_VALUE = re.compile(r"[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?\Z")
FACTS = frozenset(
    {
        "...1",
        "__index_level_0__",
        "class",
        "cloudcover",
        "country",
        "date",
        "datetime",
        "day",
        "dayofyear",
        "fold",
        "geometry",
        "grid_cell",
        "grid_col_r",
        "grid_row_u",
        "idx",
        "index",
        "label",
        "labels",
        "lat",
        "latitude",
        "level_0",
        "lng",
        "lon",
        "long",
        "longitude",
        "month",
        "row",
        "row_names",
        "rownames",
        "season",
        "set",
        "shape_area",
        "shape_length",
        "split",
        "system:index",
        "target",
        "time",
        "timestamp",
        "url",
        "year",
    }
)
"""Names of columns that say something about a sample, and so are no dimension of its embedding."""
FACT_WORDS = frozenset(
    {
        "altitude",
        "bbox",
        "cloud",
        "clouds",
        "cloudy",
        "crs",
        "date",
        "datetime",
        "doy",
        "easting",
        "elevation",
        "epsg",
        "fid",
        "filename",
        "geo",
        "geom",
        "geometry",
        "gid",
        "id",
        "ids",
        "lat",
        "latitude",
        "lng",
        "lon",
        "longitude",
        "northing",
        "objectid",
        "split",
        "srid",
        "timestamp",
        "unnamed",
        "url",
        "utm",
        "wkt",
        "year",
        "years",
    }
)
"""The same, if they are a word of a longer name, such as ``cloud_cover``."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The meaning of the columns of a file.

    Attributes:
        names: Names in the order of the file.
        id_column: Position of the column with the ids.
        positions: Position of each column that is a dimension, in the order of the dimensions.
        dimensions: The dimension of each of these.
        from_1: Whether the dimensions were numbered from 1.
        extra: Positions of the columns that are ignored because their names are not numbers.
    """

    names: tuple[str, ...]
    id_column: int
    positions: tuple[int, ...]
    dimensions: tuple[int, ...]
    extra: tuple[int, ...]
    from_1: bool = False

    def label(self, place: int) -> str:
        """Return the name of the column of a dimension, by its place among these, for messages."""
        name = self.names[self.positions[place]]
        return name if NUMBER_NAME.match(name) else shown(name)

    @property
    def extra_names(self) -> tuple[str, ...]:
        """The first few ignored columns, described for the participant."""
        taken = {self.names[position] for position in self.positions}
        return tuple(
            f"{shown(self.names[position])}{', the second time' if self.names[position] in taken else ''}"
            if self.names[position]
            else f"column {position + 1}, without a name"
            for position in self.extra[:SHOWN]
        )


def find_id(names: Sequence[str], faults: Faults) -> int:
    """Return the position of the column with the ids.

    Raises:
        Unreadable: If there is not exactly one.
    """
    for name in faults.id_names:
        if names.count(name) > 1:
            raise faults.fatal("columns.two_ids", f"{names.count(name)} of them")
        if name in names:
            return names.index(name)
    values = sum(bool(LOOKS_LIKE_VALUE.match(name)) for name in names)
    if values * 2 > len(names):
        raise faults.fatal("columns.no_header", ", ".join(shown(name) for name in names[:3]))
    near = [name for name in names if name.lstrip("# ").casefold() in ID_NAMES]
    words_first = near or sorted(names, key=lambda name: name[-1:].isdigit())
    listed = [shown(name) if name else "a column without a name" for name in words_first]
    raise faults.fatal("columns.no_id", f"found {name_some(listed, SHOWN)}")


def resolve_columns(names: Sequence[str], embedding_dim: int, faults: Faults) -> Columns:
    """Return the meaning of each column if the dimensions must be named 0 to N - 1, in any order.

    Raises:
        Unreadable: If there is not exactly one id column. A wrong dimension is only added to ``faults``, so that reading goes on and finds
            the rest.
    """
    stripped = tuple(name.strip() for name in names)
    id_column = find_id(stripped, faults)
    others = [position for position in range(len(stripped)) if position != id_column]
    numbers = {
        position: int(stripped[position]) if len(stripped[position]) <= 9 else embedding_dim + 1
        for position in others
        if NUMBER_NAME.match(stripped[position])
    }
    if from_1 := _is_from_1([stripped[position] for position in numbers], embedding_dim):
        numbers = {position: number - 1 for position, number in numbers.items()}
    taken: dict[int, int] = {}
    for position, number in numbers.items():
        if number < embedding_dim and taken.setdefault(number, position) != position:
            faults.add("columns.duplicate", shown(stripped[position]))
    unexpected = [stripped[position] for position, number in numbers.items() if number >= embedding_dim]
    extra = tuple(position for position in others if position not in numbers)
    _judge_dimension(taken, unexpected, _described(stripped, extra), embedding_dim, faults)
    return Columns(
        names=stripped,
        id_column=id_column,
        positions=tuple(taken[number] for number in sorted(taken)),
        dimensions=tuple(sorted(taken)),
        extra=extra,
        from_1=from_1,
    )


def _words(name: str) -> list[str]:
    return re.findall("[a-z]+|[0-9]+", re.sub("([a-z])([A-Z])", r"\1 \2", name).casefold())


def names_an_id(name: str) -> bool:
    """Return whether the name of a column says that it has ids, such as ``ID`` and ``image_id``."""
    return _words(name)[-1:] in (["id"], ["ids"])


def is_fact(name: str) -> bool:
    """Return whether the name of a column says that it describes a sample; a column of a numbered series, such as ``time_3``, does not."""
    words = _words(name)
    if not name or name.casefold() in FACTS or words[:1] == ["unnamed"]:
        return True
    return bool(words) and not words[-1].isdigit() and not FACT_WORDS.isdisjoint(words)


def chosen_vectors(names: Sequence[str]) -> list[int]:
    """Return which of some columns of lists of numbers may be the embeddings, by their names; one alone is."""
    chosen = [place for place, name in enumerate(names) if "embed" in name.casefold() or not is_fact(name)]
    for usual in VECTOR_NAMES:
        chosen = [place for place in chosen if names[place] == usual] or chosen
    return chosen


def resolve_any_columns(names: Sequence[str], faults: Faults) -> Columns:
    """Return the meaning of each column as NeuCo-Bench sees it.

    The dimensions are the columns named by numbers, in the order of these, without repeated ones; if there are none, all columns except
    the id.

    Raises:
        Unreadable: If there is not exactly one id column, or no column that can be a dimension; or if no column has a number as its name,
            and one tells a fact about the samples.
    """
    stripped = tuple(name.strip() for name in names)
    id_column = find_id(stripped, faults)
    others = [position for position in range(len(stripped)) if position != id_column]
    first = {stripped[position]: position for position in reversed(others)}
    numbered = sorted(position for name, position in first.items() if NUMBER_NAME.match(name))
    facts = [position for position in others if is_fact(stripped[position])]
    if not others or (facts and not numbered):
        faults.add("columns.names", count=len(others))
        if facts:
            described = name_some(_described(stripped, facts), SHOWN)
            faults.details["columns.names"] = f"{described}; remove columns that describe the samples"
        raise Unreadable
    chosen = sorted(numbered, key=lambda position: by_number(stripped[position])) or others
    return Columns(
        names=stripped,
        id_column=id_column,
        positions=tuple(chosen),
        dimensions=tuple(range(len(chosen))),
        extra=tuple(sorted(set(others) - set(chosen))),
        from_1=_is_from_1([stripped[position] for position in numbered], len(numbered)),
    )


def by_number(name: str) -> tuple[int, str]:
    """Return what sorts names that are numbers; Python's int takes no number of thousands of digits."""
    digits = name.lstrip("0")
    return len(digits), digits


def _is_from_1(names: Sequence[str], embedding_dim: int) -> bool:
    """Return whether columns are numbered 1 to N, as TerraTorch does; they are the dimensions 0 to N - 1."""
    digits = [digits for _, digits in sorted(map(by_number, names))]
    return bool(names) and digits == [str(number) for number in range(1, embedding_dim + 1)]


def _judge_dimension(
    taken: dict[int, int], beyond: list[str], others: list[str], embedding_dim: int, faults: Faults
) -> None:
    """Add as few faults as possible that say what is wrong with the names.

    Args:
        taken: Position of the column of each dimension that has one.
        beyond: Names that are numbers, but too large for a dimension.
        others: Descriptions of the columns whose names are not numbers.
        embedding_dim: Number of dimensions.
        faults: Receives the faults.
    """
    missing = [number for number in range(embedding_dim) if number not in taken]
    wanted = f"columns must be called 0 to {embedding_dim - 1}"
    detail = f"found {len(taken) + len(beyond):,}, expected {embedding_dim:,}; {wanted}"
    if others and missing and not taken and not beyond:
        faults.add("columns.names", *others, count=len(others))
        faults.details["columns.names"] = wanted
    elif missing:
        faults.add("columns.missing", *(f"column {number}" for number in missing[:SHOWN]), count=len(missing))
        faults.details["columns.missing"] = "; ".join([detail, *others[:SHOWN]])
    if beyond:
        named = (f"column {shown(name)}" for name in beyond[:SHOWN])
        faults.add("columns.unexpected", *named, count=len(beyond))
        faults.details["columns.unexpected"] = detail


def _described(names: Sequence[str], positions: Sequence[int]) -> list[str]:
    return [
        f"column {position + 1} "
        + (f"is called {shown(names[position])}" if names[position] else "has no name")
        for position in positions
    ]
