"""Rank a plain table of scores with one line per entry and one column per task."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from leaderboard.ranking import LARGEST, Ranking, rank
from scoring.errors import OrganizerError

SUMMARY = ("mean_score", "weighted_score", "aggregated_rank", "overall_q_score", "overall_acc_score")
"""Columns of a leaderboard that are no tasks; NeuCo-Bench's has the first three."""


def read_table(text: str) -> pd.DataFrame:
    """Read CSV: a header line, then one line per entry with its name and its score on each task; higher is better.

    Of NeuCo-Bench's leaderboards, or ours, only the columns with Q on each task count.

    Returns:
        Scores, with the entries' names as index and the tasks' names as columns.

    Raises:
        OrganizerError: If the text is not such a table; the message says where.
    """
    try:
        cells = pd.read_csv(
            io.StringIO(text.removeprefix("\ufeff")), header=None, dtype=str, keep_default_na=False
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise _fault(f"The table cannot be read as CSV: {str(error).strip()}.") from error
    cells = cells.apply(lambda column: column.str.strip())
    cells = cells[(cells != "").any(axis=1)]
    if set(SUMMARY[:3]) <= set(cells.iloc[0]):
        cells = cells.loc[:, [name not in SUMMARY and not name.startswith("acc::") for name in cells.iloc[0]]]
        cells.iloc[0] = cells.iloc[0].str.removeprefix("q::")
    entries, tasks = cells.iloc[1:, 0].tolist(), cells.iloc[0, 1:].tolist()
    if not tasks or not entries:
        raise _fault(f"The table has no {'task columns' if not tasks else 'entries'}.")
    for kind, names in (("entry", entries), ("task", tasks)):
        if "" in names:
            raise _fault(f"A{'n' if kind == 'entry' else ''} {kind} has no name.")
        if repeated := [name for name in names if names.count(name) > 1]:
            raise _fault(f"The {kind} {_shown(repeated[0])} occurs {len(repeated)} times in the table.")
    written = cells.iloc[1:, 1:].set_axis(pd.Index(entries), axis=0).set_axis(pd.Index(tasks), axis=1)
    scores: pd.DataFrame = written.map(number)
    for entry, task in np.argwhere(~(scores.abs() <= LARGEST).to_numpy()):
        value = written.iat[entry, task]
        raise _fault(
            f"Entry {_shown(entries[entry])} has {_shown(value) if value else 'no score'} in task {_shown(tasks[task])};"
            f" a score is a number of at most {LARGEST:g}."
        )
    return scores


def rank_table(
    table: pd.DataFrame,
    *,
    ghost_task: float = 0.0,
    baselines: Sequence[str] = (),
    baselines_weigh: bool = True,
) -> Ranking:
    """Rank a table's entries by dynamic rank; ties on the board are ordered by name.

    Raises:
        OrganizerError: If a baseline is not in the table or the ghost task is negative.
    """
    for name in baselines:
        if name not in table.index:
            raise _fault(f"No entry is named {_shown(name)}.")
    if not (math.isfinite(ghost_task) and ghost_task >= 0):
        raise _fault("The option --ghost-task is not a number of at least 0.")
    numbered = ~table.index.isin(list(baselines))
    return rank(
        table.to_numpy(np.float64),
        weighs=np.ones(len(table), bool) if baselines_weigh else numbered,
        numbered=numbered,
        ghost_task=ghost_task,
        tie_breaks=table.index.tolist(),
    )


def table_document(table: pd.DataFrame, ranking: Ranking) -> dict[str, object]:
    """Return the ranking as ``rank --json`` prints it, best entry first."""
    return {
        "weights": dict(zip(table.columns, ranking.weights, strict=True)),
        "entries": [
            {
                "entry": table.index[index],
                "rank": ranking.ranks[index],
                "weighted_rank": ranking.weighted_ranks[index],
                "mean": ranking.means[index],
            }
            for index in ranking.order
        ],
    }


def number(text: str) -> float:
    """Return the number in a text, or NaN; 1_000 is refused, because only Python reads it as a number."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _fault(sentence: str) -> OrganizerError:
    return OrganizerError(
        sentence,
        cure="Save the table as CSV: entries' names in the first column, a column per task, separated by commas.",
        code="rank.table",
    )
