"""Build the matrix of the public ids from the rows of any file format."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scoring.inputs.embeddings import Embeddings, content_hash, without_suffix
from scoring.inputs.faults import Faults, shown
from scoring.printable import count_of

STRANGERS_KEPT = 3
MOST_ROWS = 1_000_000  # in a table, unless the public list is longer; limits time, and memory for ids


def most_rows(public: int) -> int:
    """Return how many rows (or lines) a file may have if there are ``public`` ids."""
    return max(MOST_ROWS, 4 * public)


class SubmissionMatrixBuilder:
    """Collect the rows of one submission, and check it as a whole at the end.

    Args:
        public_ids: The ids that must be there, in any order.
        embedding_dim: Number N of values per id.
        faults: Receives the faults.
        row_name: The format's word for a row, ``"line"`` or ``"row"``.
    """

    def __init__(
        self, public_ids: Sequence[str], embedding_dim: int, faults: Faults, *, row_name: str = "line"
    ) -> None:
        self.faults = faults
        self.dim = embedding_dim
        self.row_name = row_name
        self.ids = tuple(sorted(public_ids, key=str.encode))
        self.index = {identifier: row for row, identifier in enumerate(self.ids)}
        self.matrix: NDArray[np.float32] = np.zeros((len(self.ids), embedding_dim), dtype=np.float32)
        self.first_seen = [0] * len(self.ids)
        self.strangers = 0
        self.stranger_examples: list[str] = []
        self.suffix_removed = False
        self.spaces_removed = False
        self.extra_columns = 0
        self.extra_arrays = 0
        self.extra_names: tuple[str, ...] = ()  # of the first extra columns or arrays, already quoted
        self.faulty_lines = 0

    def knows(self, identifier: str) -> bool:
        """Return whether an id, as written in the file, is a public one; rows of other ids are ignored, whatever their values are."""
        return without_suffix(identifier.strip(" \t")) in self.index

    def place(self, identifiers: Sequence[str], rows: NDArray[np.float32], numbers: Sequence[int]) -> None:
        """Copy rows to their places in the matrix.

        Args:
            identifiers: Ids as written in the file.
            rows: float32, one row per id, columns in dimension order.
            numbers: Line or row number of each, from 1.
        """
        self.assign(self.claim(identifiers, numbers), slice(None), rows)

    def claim(self, identifiers: Sequence[str], numbers: Sequence[int]) -> NDArray[np.intp]:
        """Record that ids occurred, and return the matrix row of each; -1 if its values are not wanted."""
        targets = np.empty(len(identifiers), dtype=np.intp)
        for position, written in enumerate(identifiers):
            targets[position] = self._target(written, numbers[position])
        return targets

    def assign(self, targets: NDArray[np.intp], columns: slice, values: NDArray[np.float32]) -> None:
        """Write values into some columns of claimed rows."""
        wanted = targets >= 0
        if wanted.all():
            self.matrix[targets, columns] = values
        else:
            self.matrix[targets[wanted], columns] = values[wanted]

    def _target(self, written: str, number: int) -> int:
        trimmed = written.strip(" \t")
        identifier = without_suffix(trimmed)
        if identifier != trimmed:
            self.suffix_removed = True
        if trimmed != written:
            self.spaces_removed = True
        row = self.index.get(identifier, -1)
        if row < 0:
            if identifier:
                self.strangers += 1
                if len(self.stranger_examples) < STRANGERS_KEPT:
                    self.stranger_examples.append(shown(identifier))
            else:
                self.faults.add("rows.no_id", f"{self.row_name} {number}")
            return -1
        if self.first_seen[row]:
            place = f"{shown(identifier)} on {self.row_name}s {self.first_seen[row]} and {number}"
            self.faults.add("rows.duplicate", place)
            return -1
        self.first_seen[row] = number
        return row

    def finish(self) -> Embeddings:
        """Check the submission as a whole and return its embeddings; call it after everything was read.

        Raises:
            ParticipantError: If there are faults.
        """
        self._check_missing()
        if not self.faults and self.matrix.min() == self.matrix.max():
            self.faults.add("values.constant")
        if self.faults:
            raise self.faults.verdict()
        self.matrix += np.float32(0.0)  # no negative zeros, as in Embeddings.from_rows
        return Embeddings(
            ids=self.ids,
            matrix=self.matrix,
            content_hash=content_hash(self.ids, self.matrix),
            notes=self._notes(),
            zarr_suffix_removed=self.suffix_removed,
        )

    def _check_missing(self) -> None:
        missing = [row for row, number in enumerate(self.first_seen) if number == 0]
        if not missing:
            return
        if len(missing) == len(self.ids) and not self.strangers:
            self.faults.add("rows.none")
            return
        self.faults.add("rows.missing", *(shown(self.ids[row]) for row in missing[:3]), count=len(missing))
        if self.stranger_examples:
            self.faults.hints["rows.missing"] = (
                f"not in the list, but in the file: {', '.join(self.stranger_examples)}"
            )

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self.suffix_removed:
            notes.append(".zarr or .zarr.zip suffixes were removed from ids")
        if self.spaces_removed:
            notes.append("spaces around ids were removed")
        if self.strangers:
            ids_are = count_of(self.strangers, "id that is", "ids that are")
            notes.append(f"{ids_are} not in the public list {_were(self.strangers)} ignored")
        for count, word in ((self.extra_columns, "column"), (self.extra_arrays, "array")):
            if count:
                note = f"{count_of(count, f'extra {word}')} {_were(count)} ignored"
                more = "; and so on" if count > len(self.extra_names) else ""
                notes.append(f"{note}: {'; '.join(self.extra_names)}{more}")
        return tuple(notes)


def _were(count: int) -> str:
    return "were" if count > 1 else "was"
