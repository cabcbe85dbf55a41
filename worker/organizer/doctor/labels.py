"""Label files, read one by one, so that a fault in one does not hide those in the next."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

from scoring.errors import OrganizerError
from scoring.tasks import Task, is_package, load_task, read_package, task_sources


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelRow:
    """One line of a label file; a label that is not a finite number is NaN."""

    line: int
    id: str
    label: float


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelFile:
    """One hidden task's file.

    Attributes:
        path: Its path.
        task: The task as the worker reads it; None if that fails.
        fault: Why that failed. Its sentence may contain labels and must not be shown.
        rows: Its readable lines, in their order.
    """

    path: Path
    task: Task | None
    fault: OrganizerError | None
    rows: tuple[LabelRow, ...]


def read_labels(folder: Path, ids: tuple[str, ...]) -> tuple[LabelFile, ...]:
    """Read a folder's label files.

    Raises:
        OrganizerError: If the folder contains anything but label files, or nothing.
    """
    known = frozenset(ids)
    return tuple(_read(source, known) for source in task_sources(folder))


def _read(source: Path, known: frozenset[str]) -> LabelFile:
    task, fault = None, None
    try:
        task = load_task(source, known)
    except OrganizerError as error:
        fault = error
    return LabelFile(path=source, task=task, fault=fault, rows=_rows(source))


def _rows(source: Path) -> tuple[LabelRow, ...]:
    try:
        path = read_package(source).labels if is_package(source) else source
        text = path.read_bytes().decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
        return tuple(
            LabelRow(line=reader.line_num, id=record.get("id") or "", label=_number(record.get("label")))
            for record in reader
        )
    except (OSError, UnicodeDecodeError, csv.Error, OrganizerError):
        return ()


def _number(text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
