"""The submissions of a rehearsal; by default two baselines, a malformed file and a private submission."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from scoring.errors import OrganizerError
from scoring.inputs.embeddings import without_suffix
from scoring.inputs.identifiers import read_ids
from worker.challenge.configuration import Configuration
from worker.organizer.rehearsal.files import csv_of, spoilt

Matrix = NDArray[np.float32]
Features = Mapping[str, NDArray[np.float64]]


HOST = "host"  # submits through EvalAI's team of the hosts


@dataclass(frozen=True, kw_only=True, repr=False)
class Entry:
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
    content: bytes
    file_name: str = "embeddings.csv"
    project_url: str = ""
    publication_url: str = ""
    public: bool = True
    good: bool = True

    @property
    def listed_as(self) -> str:
        """The name under which the board lists it; a baseline of the hosts is listed under its method."""
        return self.method if self.team == HOST else self.team


Entries = Mapping[str, Sequence[Entry]]


def baselines(
    configuration: Configuration, features: Features, tell: Callable[[str], object]
) -> dict[str, tuple[Entry, ...]]:
    """Make the submissions to each phase, from random numbers and from public data.

    Args:
        configuration: The organizer's configuration.
        features: Public data by id, for the pooled mean.
        tell: Called with a sentence about each phase that some public data are missing for.
    """
    entries = {}
    for codename, phase in configuration.phases.items():
        ids = read_ids(configuration.path(phase.ids))
        covers = covering(features, ids)
        if covers is None:
            tell(
                f"{codename}: no pooled-mean baseline is submitted, because there is no public data for all ids (--data FILE)."
            )
        entries[codename] = _entries(ids, configuration.submission.embedding_dim, covers)
    return entries


def _entries(ids: Sequence[str], dim: int, features: Features | None) -> tuple[Entry, ...]:
    rng = np.random.default_rng(0)
    shape = (len(ids), dim)
    noise = csv_of(ids, rng.standard_normal(shape, dtype=np.float32))
    entries = [
        Entry(team="Rehearsal: random", method="random embeddings", content=noise),
        Entry(
            team="Rehearsal: malformed",
            method="a malformed file",
            content=spoilt(noise, nan=((1, -1),), missing=1),
            good=False,
        ),
        Entry(
            team="Rehearsal: private",
            method="a private file",
            content=csv_of(ids, rng.standard_normal(shape, dtype=np.float32)),
            public=False,
        ),
    ]
    if features is not None:
        matrix = pooled_means(np.stack([features[identifier] for identifier in ids]), dim)
        entries.insert(
            0, Entry(team="Rehearsal: pooled mean", method="pooled mean", content=csv_of(ids, matrix))
        )
    return tuple(entries)


def own_entries(files: Sequence[str], phases: Collection[str]) -> dict[str, tuple[Entry, ...]]:
    """Read submissions that the organizer names as ``PHASE=FILE``; all of them must be scored.

    Raises:
        OrganizerError: If there is no such phase, or the file cannot be read.
    """
    entries: dict[str, tuple[Entry, ...]] = {}
    for text in files:
        codename, _, name = text.partition("=")
        if codename not in phases:
            raise OrganizerError(
                f"{text!r} does not begin with a phase.",
                cure=f"Write PHASE=FILE. The phases are: {', '.join(phases)}.",
                code="rehearse.submission",
            )
        try:
            content = Path(name).read_bytes()
        except OSError as error:
            raise OrganizerError(
                f"{name} cannot be read ({error.strerror}).", cure="Name a file.", code="rehearse.submission"
            ) from error
        file = Path(name).name
        entry = Entry(team=f"Rehearsal: {file}", method=file, content=content, file_name=file)
        entries[codename] = (*entries.get(codename, ()), entry)
    return entries


def pooled_means(rows: NDArray[np.float64], dim: int) -> Matrix:
    """Average neighboring numbers down to the embedding's dimension; if there are fewer numbers, repeat them.

    Args:
        rows: n x M, the public data with one sample per row.
        dim: N.

    Returns:
        n x N.
    """
    if rows.shape[1] < dim:
        times = -(-dim // rows.shape[1])
        return np.tile(rows, times)[:, :dim].astype(np.float32)
    starts = np.arange(dim) * rows.shape[1] // dim
    sizes = np.diff([*starts, rows.shape[1]])
    return np.asarray(np.add.reduceat(rows, starts, axis=1) / sizes, dtype=np.float32)


def read_features(files: Sequence[Path]) -> dict[str, NDArray[np.float64]]:
    """Read public data: NPZ with ``ids`` and one other array (a sample per row), or CSV with a column ``id`` and numbers.

    Raises:
        OrganizerError: If a file is neither.
    """
    features: dict[str, NDArray[np.float64]] = {}
    for file in files:
        try:
            ids, rows = _npz(file) if file.suffix == ".npz" else _csv(file)
        except (OSError, ValueError, LookupError, StopIteration, csv.Error, BadZipFile, zlib.error) as error:
            raise OrganizerError(
                f"{file} cannot be read as public data ({type(error).__name__}).",
                cure="Use an NPZ file with ids and one array of numbers (one row per sample), or a CSV file with the column id and"
                " columns of numbers.",
                code="rehearse.data",
            ) from error
        flat = np.nan_to_num(rows.reshape(len(ids), -1).astype(np.float64))
        features.update((without_suffix(name), row) for name, row in zip(ids, flat, strict=True))
    return features


def covering(features: Features, ids: Sequence[str]) -> Features | None:
    """Return the features if every id has them, with equal lengths."""
    if not all(identifier in features for identifier in ids):
        return None
    return features if len({len(features[identifier]) for identifier in ids}) == 1 else None


def _npz(file: Path) -> tuple[list[str], NDArray[np.float64]]:
    with file.open("rb") as raw, np.load(raw, allow_pickle=False) as archive:
        ids = [str(name) for name in archive["ids"]]
        (other,) = [name for name in archive.files if name != "ids"]
        rows = archive[other]
    if len(rows) != len(ids) or not ids:
        raise ValueError("one row per id is needed")
    return ids, rows


def _csv(file: Path) -> tuple[list[str], NDArray[np.float64]]:
    with file.open(encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text)
        place = next(reader).index("id")
        rows = [row for row in reader if row]
    ids = [row[place] for row in rows]
    return ids, np.array([[float(x) for x in row[:place] + row[place + 1 :]] for row in rows])
