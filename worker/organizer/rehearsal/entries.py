"""The submissions of a rehearsal: random numbers, a malformed file, a private submission, and the organizer's own files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scoring.documents import contents
from scoring.errors import OrganizerError
from scoring.inputs.identifiers import read_ids
from worker.challenge.configuration import Configuration

RANDOM = "random embeddings"
OWN = "Rehearsal: yours"
HOST = "host"  # submits through EvalAI's team of the hosts


@dataclass(frozen=True, kw_only=True, repr=False)
class RehearsalEntry:
    """One submission.

    Attributes:
        team: The team that submits; :data:`HOST` for the organizers.
        method: Name of the method.
        content: The file.
        file_name: Its name.
        project_url: The participant's link to the code.
        publication_url: The participant's link to the paper.
        public: Whether it counts for the board.
        good: Whether it must be scored; otherwise it must be refused.
    """

    team: str
    method: str
    content: bytes = b""
    file_name: str = "embeddings.csv"
    project_url: str = ""
    publication_url: str = ""
    public: bool = True
    good: bool = True

    @property
    def listed_as(self) -> str:
        """The name under which the board lists it; a baseline of the hosts is listed under its method."""
        return self.method if self.team == HOST else self.team


Entries = Mapping[str, Sequence[RehearsalEntry]]


def usual_entries(configuration: Configuration) -> dict[str, tuple[RehearsalEntry, ...]]:
    """Make the submissions that every rehearsal has: two of random numbers, one of them private, and a malformed one."""
    return {
        codename: _entries(read_ids(configuration.path(phase.ids)), configuration.submission.embedding_dim)
        for codename, phase in configuration.phases.items()
    }


def _entries(ids: Sequence[str], dim: int) -> tuple[RehearsalEntry, ...]:
    rng = np.random.default_rng(0)
    noise, other = (csv_of(ids, rng.standard_normal((len(ids), dim), dtype=np.float32)) for _ in range(2))
    return (
        RehearsalEntry(team="Rehearsal: random", method=RANDOM, content=noise),
        RehearsalEntry(
            team="Rehearsal: malformed",
            method="a malformed file",
            content=spoilt(noise, nan=((1, -1),), missing=1),
            good=False,
        ),
        RehearsalEntry(team="Rehearsal: private", method="a private file", content=other, public=False),
    )


def own_entries(files: Sequence[str], phases: Collection[str]) -> dict[str, tuple[RehearsalEntry, ...]]:
    """Read submissions that the organizer names as ``PHASE=FILE``; all of them must be scored.

    The first files of all phases come from one team, as a phase may rank only teams with a score in another one. So do the second ones.

    Raises:
        OrganizerError: If there is no such phase, or the file cannot be read.
    """
    entries: dict[str, tuple[RehearsalEntry, ...]] = {}
    for text in files:
        codename, _, name = text.partition("=")
        if codename not in phases:
            raise OrganizerError(
                f"{text!r} does not begin with a phase.",
                hint=f"Write PHASE=FILE. The phases are: {', '.join(phases)}.",
                code="rehearse.submission",
            )
        try:
            content = contents(Path(name))
        except OSError as error:
            raise OrganizerError(
                f"{name} cannot be read ({error.strerror}).", hint="Name a file.", code="rehearse.submission"
            ) from error
        earlier, file = entries.get(codename, ()), Path(name).name
        team = f"{OWN} {len(earlier) + 1}" if earlier else OWN
        entries[codename] = (
            *earlier,
            RehearsalEntry(team=team, method=file, content=content, file_name=file),
        )
    return entries


def csv_of(ids: Sequence[str], matrix: NDArray[np.float32]) -> bytes:
    """Write embeddings as participants do: a header, then a line per id with all digits of its numbers."""
    import pyarrow
    from pyarrow.csv import WriteOptions, write_csv

    columns = [str(column) for column in range(matrix.shape[1])]
    table = pyarrow.table([list(ids), *matrix.T], names=["id", *columns])
    file = pyarrow.BufferOutputStream()
    write_csv(table, file, WriteOptions(include_header=False))
    rows: bytes = file.getvalue().to_pybytes()
    return ",".join(["id", *columns]).encode() + b"\n" + rows


def spoilt(content: bytes, *, nan: Sequence[tuple[int, int]], missing: int) -> bytes:
    """Damage a file: NaN in some cells (line and column), and the last ids left out."""
    lines = [line.split(b",") for line in content.splitlines()]
    for line, column in nan:
        lines[line][column] = b"nan"
    return b"\n".join([*map(b",".join, lines[:-missing]), b""])
