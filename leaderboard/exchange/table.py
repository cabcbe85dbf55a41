"""Rank a plain table of scores with one line per entry and one column per task."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leaderboard.ranking import LARGEST, Ranking, rank
from scoring.errors import OrganizerError
from scoring.printable import count_of


@dataclass(frozen=True, kw_only=True)
class Table:
    """Scores of named entries on named tasks; higher is better."""

    entries: tuple[str, ...]
    tasks: tuple[str, ...]
    scores: tuple[tuple[float, ...], ...]


def read_table(text: str) -> Table:
    """Read CSV: a header line, then one line per entry with its name and its score on each task.

    Raises:
        OrganizerError: If the text is not such a table; the message says where.
    """
    try:
        lines = [
            line for line in csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")) if any(line)
        ]
    except csv.Error as error:
        raise _fault(
            f"The table is not CSV: {error}.", "Save it as CSV, separated by commas.", "rank.no_csv"
        ) from error
    if not lines:
        raise _fault("The table is empty.", "Write a header line, then one line per entry.", "rank.empty")
    tasks = tuple(name.strip() for name in lines[0][1:])
    if not tasks:
        cure = "Write the entries' names in the first column and one column per task after it, separated by commas."
        raise _fault("The table has no task columns.", cure, "rank.no_tasks")
    if not all(tasks):
        raise _fault(
            "A task column has no name.", "Name every column in the header line.", "rank.unnamed_task"
        )
    if len(lines) == 1:
        raise _fault(
            "The table has no entries.", "Write one line per entry below the header.", "rank.no_entries"
        )
    entries, scores = [], []
    for number, line in enumerate(lines[1:], 1):
        name = line[0].strip()
        if not name:
            raise _fault(f"Entry {number} has no name.", "Name it in the first column.", "rank.unnamed_entry")
        if len(line) != len(tasks) + 1:
            sentence = f"Entry {_shown(name)} has {count_of(len(line) - 1, 'score')}, but the table has {count_of(len(tasks), 'task')}."
            raise _fault(sentence, "Write one score per task for every entry.", "rank.ragged")
        entries.append(name)
        scores.append(tuple(_score(value, name, task) for task, value in zip(tasks, line[1:], strict=True)))
    _refuse_repeats(entries, "entry")
    _refuse_repeats(tasks, "task")
    return Table(entries=tuple(entries), tasks=tasks, scores=tuple(scores))


def rank_table(
    table: Table, *, ghost_task: float = 0.0, baselines: Sequence[str] = (), baselines_weigh: bool = True
) -> Ranking:
    """Rank a table's entries by dynamic rank; ties on the board are ordered by name.

    Raises:
        OrganizerError: If a baseline is not in the table or the ghost task is negative.
    """
    for name in baselines:
        if name not in table.entries:
            raise _fault(
                f"No entry is named {_shown(name)}.",
                "Write the name as it is in the first column.",
                "rank.unknown_baseline",
            )
    if not (math.isfinite(ghost_task) and ghost_task >= 0):
        raise _fault(
            "The option --ghost-task is not a number of at least 0.",
            "Use a number above 0, or 0 for no ghost task.",
            "rank.bad_ghost",
        )
    numbered = np.array([entry not in baselines for entry in table.entries])
    return rank(
        np.array(table.scores, np.float64),
        weighs=np.ones(len(table.entries), bool) if baselines_weigh else numbered,
        numbered=numbered,
        ghost_task=ghost_task,
        tie_breaks=table.entries,
    )


def table_document(table: Table, ranking: Ranking) -> dict[str, object]:
    """Return the ranking as ``rank --json`` prints it, best entry first."""
    return {
        "weights": dict(zip(table.tasks, ranking.weights, strict=True)),
        "entries": [
            {
                "entry": table.entries[index],
                "rank": ranking.ranks[index],
                "weighted_rank": ranking.weighted_ranks[index],
                "mean": ranking.means[index],
            }
            for index in ranking.order
        ],
    }


def finite_number(text: str) -> float | None:
    """Return the finite number in a text, or None; 1_000 is refused, because only Python reads it as a number."""
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _score(text: str, entry: str, task: str) -> float:
    value = finite_number(text)
    if value is None:
        found = f"{_shown(text.strip())}, not a finite number," if text.strip() else "no score"
        raise _fault(
            f"Entry {_shown(entry)} has {found} in task {_shown(task)}.",
            "Fill in the cell or remove the entry. An entry needs a score in every task.",
            "rank.bad_score",
        )
    if abs(value) > LARGEST:
        raise _fault(
            f"Entry {_shown(entry)} has {_shown(text.strip())} in task {_shown(task)}, which is too large to be ranked.",
            f"Scores may be at most {LARGEST:g}. Use another unit for the task.",
            "rank.too_large",
        )
    return value


def _refuse_repeats(names: Sequence[str], kind: str) -> None:
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise _fault(
            f"The {kind} {_shown(name)} occurs {times} times in the table.",
            "Keep one, or rename the others.",
            "rank.repeated_entry" if kind == "entry" else "rank.repeated_task",
        )


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _fault(sentence: str, cure: str, code: str) -> OrganizerError:
    return OrganizerError(sentence, cure=cure, code=code)
