"""Rank a plain table of scores with one line per entry and one column per task."""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Literal

import numpy as np
import pandas as pd

from leaderboard.ranking import LARGEST, Ranking, rank, stability_sentence, task_stability
from leaderboard.rules import REPLICATES
from leaderboard.snapshot import RowStability
from scoring.errors import OrganizerError
from scoring.inputs.lines import MISSING
from scoring.printable import name_some

SUMMARY = ("mean_score", "weighted_score", "aggregated_rank", "overall_q_score", "overall_acc_score")
"""Columns of a leaderboard that are no tasks; NeuCo-Bench's has the first three."""
SUMMARY_NAME = re.compile(
    r"((macro|weighted|global|aggregated|grand|geometric|task|final) )?"
    r"(mean|average|avg|median|iqm|interquartile mean|overall|total|sum|aggregate|best|worst|max|min|std|stdev|std dev|std err"
    r"|standard (deviation|error))"
    r"( (of|over|across|all|\d+|tasks?|task ?types?|types?|datasets?|scores?|results?|performance|accuracy|acc|q|std))*"
)
"""Columns and rows that sum up others, such as Mean (Task)."""
OTHER_NAME = re.compile(
    r"(.+ )?rank( .+)?|borda( .+)?|((number|num|n)( of)? )?(active |total |trainable )?(params?|parameters)( [bmk])?"
    r"|(model|file) size( .+)?|(embeddings?|emb|features?|vector) (dims?|dimensions?|dimensionality|size)|dims?|dimensions?"
    r"|max(imum)? (tokens|length)|context (length|window)|(gpu )?memory( usage)?( [mg]b)?( .+)?|[gt]?flops|[gm]?macs|latency( ms)?"
    r"|throughput|runtime( .+)?|((training|inference) )?time( [a-z]+)?|seconds|epochs|batch size|learning rate|lr|seeds?|folds|year"
    r"|(release )?date|license|zero shot|urls?|links?|paper|code|unnamed \d+|no|index|resolution"
    r"|(input|image|patch|hidden|vocab) (size|resolution)|layers|depth|((train|training|inference) )?s|((gpu|training) )?hours|cost|version"
    r"|id|weighted score|(number of|num|n) (samples|images|rows|epochs|folds|layers|seeds|tasks|runs)"
)
"""Columns that describe an entry."""
SPREAD_NAME = re.compile(
    r"(.+?) (std|stdev|std dev|sd|se|sem|stderr|std err|variance|uncertainty|(95 )?ci|ci 95|ci (low|high)|(ci )?(lower|upper))"
)
"""Columns that say how uncertain the column before them is; of NeuCo-Bench, biomass_std is a task, next to biomass_mean."""
ERROR_NAME = re.compile(
    r"(.* )?(n?rmse|n?mae|mse|mape|loss|perplexity|wer|cer|nll|ece|fid|brier|error|errors|err|lower( is)? better)( .*)?"
)
"""Tasks on which lower is better; so says an arrow, too."""
TRANSPOSED = ("task", "tasks", "dataset", "datasets", "metric", "metrics")
"""Names of a first column that has tasks."""
DOMINANT = 100  # times the standard deviation of every other column


@dataclass(frozen=True, kw_only=True)
class TableRanking(Ranking):
    """The ranking of a table, and what becomes of it with other tasks.

    Attributes:
        places: Rank of each entry; None for a baseline.
        stability: What becomes of each entry, in the order of the input; empty if there is one task, or fewer than two entries compete.
        sentence: Which entries change places without one of the tasks; empty, too.
    """

    places: tuple[int | None, ...]
    stability: tuple[RowStability, ...]
    sentence: str


def read_table(text: str, tasks: Sequence[str] = ()) -> tuple[pd.DataFrame, list[str]]:
    """Read CSV: a header line, then one line per entry with its name and its score on each task; higher is better.

    Means, ranks and columns that describe the entries are left out. Of NeuCo-Bench's leaderboards, or ours, only the columns with Q on
    each task count.

    Args:
        text: The table.
        tasks: The columns that count; all others are left out.

    Returns:
        The scores, with a row per entry and a column per task; and the names of the rows and columns that are left out.

    Raises:
        OrganizerError: If the text is not such a table; the message says where.
    """
    cells = _cells(text.removeprefix("\ufeff"))
    is_leaderboard = set(SUMMARY[:3]) <= set(cells.iloc[0])
    if is_leaderboard:
        is_beside = cells.iloc[0].isin(SUMMARY) | cells.iloc[0].str.startswith("acc::")
        is_beside.iloc[0] = False  # the names of the entries
        cells = cells.loc[:, ~is_beside]
        marked = [name.removeprefix("q::") for name in cells.iloc[0] if name.startswith("q::")]
        tasks = tasks or marked  # whatever their names are
        cells.iloc[0, :] = [name.removeprefix("q::") for name in cells.iloc[0]]
    cells, left_out = _scored(cells, tasks, sums_up=not is_leaderboard)
    entries, names = cells.iloc[1:, 0].tolist(), cells.iloc[0, 1:].tolist()
    if left_out and not (entries and (names or tasks)):
        raise _fault(
            f"By their names, these are neither tasks nor entries: {name_some(left_out)}.",
            "Choose tasks with --tasks, once for each, and give entries other names.",
        )
    check_names("task", names)
    check_names("entry", entries)
    written = cells.iloc[1:, 1:].set_axis(pd.Index(entries), axis=0).set_axis(pd.Index(names), axis=1)
    scores: pd.DataFrame = written.map(number)
    for entry, task in np.argwhere(~(scores.abs() <= LARGEST).to_numpy()):
        value = str(written.iat[entry, task])
        raise _fault(
            f"Entry {_shown(entries[entry])} has {_shown(value) if value else 'no score'} in task {_shown(names[task])};"
            f" a score is a number of at most {LARGEST:g}.",
            _hint(value),
        )
    if not tasks and (name := dominating(scores)):
        raise _fault(
            f"The column {_shown(name)} would decide the ranking alone: its values spread over {DOMINANT} times as far as any other's.",
            "Name the columns that are tasks with --tasks, once for each.",
        )
    return scores, left_out


def check_names(kind: Literal["entry", "task"], names: Sequence[str]) -> None:
    """Check that a table has entries or tasks, each with a name of its own.

    Raises:
        OrganizerError: If it has not.
    """
    if not names:
        raise _fault(f"The table has no {'entries' if kind == 'entry' else 'task columns'}.")
    hint = "Give each entry and each task a name of its own."
    if "" in names:
        raise _fault(f"A{'n' if kind == 'entry' else ''} {kind} has no name.", hint)
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise _fault(f"The {kind} {_shown(name)} occurs {count} times in the table.", hint)


def _cells(text: str) -> pd.DataFrame:
    """Split a text into cells without spaces around them, and without blank lines and columns."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    for is_other, what in (
        (first.lstrip().startswith("|"), "is in Markdown"),
        ("\t" in first, "is separated by tabs"),
        (first.count(";") > first.count(","), "is separated by semicolons"),
    ):
        if is_other:
            raise _fault(
                f"The table {what}.", "Save it as CSV: commas between columns, decimal points in numbers."
            )
    try:
        cells = pd.read_csv(io.StringIO(text), header=None, dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise _fault(f"The table cannot be read as CSV: {str(error).strip()}.") from error
    cells = cells.map(str.strip)
    cells = cells.loc[(cells != "").any(axis=1), (cells != "").any(axis=0)]
    if cells.empty:
        raise _fault("The table is empty.")
    return cells


def _scored(cells: pd.DataFrame, tasks: Sequence[str], *, sums_up: bool) -> tuple[pd.DataFrame, list[str]]:
    """Return the cells of entries and tasks, and the names of the others; ``sums_up`` says whether a row may sum up others."""
    names = cells.iloc[0].tolist()
    if unknown := [name for name in tasks if name not in names]:
        raise _fault(f"No column is named {_shown(unknown[0])}.", f"The columns are: {name_some(names, 10)}.")
    is_other = are_other(names)
    if not tasks:
        _ask_about_names(names)
    # Entries may be numbered or ranked before they are named.
    texts = [
        position
        for position, name in enumerate(names)
        if "rank" not in _words(name) and cells.iloc[1:, position].map(number).isna().all()
    ]
    is_numbered = is_other[0] or not _words(names[0])
    named = texts[0] if is_numbered and texts else 0
    counted = [
        position
        for position in range(len(names))
        if position != named
        and (names[position] in tasks if tasks else position > named and not is_other[position])
    ]
    left = [name for position, name in enumerate(names) if name and position not in (named, *counted)]
    is_entry = ~cells.iloc[:, named].map(lambda name: sums_up and is_summary(name))
    is_entry.iloc[0] = True
    left += cells.iloc[:, named][~is_entry].tolist()
    return cells.loc[is_entry].iloc[:, [named, *counted]], left


def are_other(names: Sequence[str]) -> list[bool]:
    """Return for each column whether its name says that it is not a task: it sums up others, or describes an entry."""
    words = [_words(name + " std" * ("±" in name)) for name in names]
    spreads = {word for word in words if (spread := SPREAD_NAME.fullmatch(word)) and spread[1] in words}
    return [word in spreads or is_summary(word) or bool(OTHER_NAME.fullmatch(word)) for word in words]


def is_summary(name: str) -> bool:
    """Return whether a row or column sums up others, by its name."""
    return bool(SUMMARY_NAME.fullmatch(_words(name)))


def is_error(name: str) -> bool:
    """Return whether lower is better on a task, by its name."""
    return "↓" in name or bool(ERROR_NAME.fullmatch(_words(name)))


def dominating(scores: pd.DataFrame) -> str | None:
    """Return the column that decides the ranking alone, if one does, because tasks weigh by the standard deviation of their scores."""
    spread = scores.std(ddof=0).sort_values()
    decides = len(spread) > 1 and spread.iloc[-1] > DOMINANT * spread.iloc[-2] > 0
    return str(spread.index[-1]) if decides else None


def _words(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", name.casefold()).strip()


def _ask_about_names(names: Sequence[str]) -> None:
    """Refuse a table whose rows are tasks, one without names, and scores of which the lower are better."""
    if _words(names[0]) in TRANSPOSED:
        raise _fault(
            f"The first column is called {_shown(names[0])}, so rows seem to be tasks.",
            "Write a line per entry and a column per task, with pandas as table.T.",
        )
    if len(names) > 1 and all(math.isfinite(number(name)) for name in names[1:]):
        raise _fault(
            "The first line has numbers instead of column names.",
            "Begin with a line of names; if numbers are names, choose the tasks with --tasks, once for each.",
        )
    if errors := [name for name in names if is_error(name)]:
        raise _fault(
            f"The column {_shown(errors[0])} seems to have errors, but higher scores are better.",
            "Write negative numbers; if the column has them, or it is not a task, name the tasks with --tasks, once for each.",
        )


def _hint(value: str) -> str:
    """Return what to do about a value that is not a score."""
    bare = value.casefold()
    if bare in MISSING or bare in {"-", "–", "—", "?", "tbd", "x"}:
        return "Every entry needs a score in every task: complete it, or leave out the entry or the task."
    for signs, hint in (
        (("\u2212",), "Write numbers with the characters 0 to 9, point, hyphen and e."),
        (("±", "+/-", "+-", "\\pm"), "Write the score alone, without its uncertainty."),
        (("%",), "Write numbers without percent signs."),
        (
            ("*", "_", "<", "\\", "$", "^", "†", "‡", "§", "¹", "²", "³", "(", "["),
            "Write numbers without signs around them, such as asterisks for bold type, or marks of footnotes.",
        ),
        ((",",), "Write numbers with decimal points and without commas."),
    ):
        if any(sign in bare for sign in signs):
            return hint
    return "If the column is not a task, name those that are with --tasks, once for each."


def rank_table(
    table: pd.DataFrame,
    *,
    ghost_task: float = 0.0,
    baselines: Sequence[str] = (),
    baselines_weigh: bool = True,
) -> TableRanking:
    """Rank a table's entries by dynamic rank; ties on the board are ordered by name.

    Raises:
        OrganizerError: If a baseline is not in the table or the ghost task is negative.
    """
    for name in baselines:
        if name not in table.index:
            raise _fault(
                f"No entry is named {_shown(name)}.", f"The entries are: {name_some([*table.index], 10)}."
            )
    if not (isinstance(ghost_task, (int, float, np.number)) and 0 <= ghost_task < math.inf):
        raise _fault(f"The ghost task is {ghost_task!s:.40}, not a number of at least 0.", "Correct it.")
    quality, numbered = table.to_numpy(np.float64), ~table.index.isin(list(baselines))
    weighs = np.ones(len(table), bool) if baselines_weigh else numbered
    ranking = rank(
        quality, weighs=weighs, numbered=numbered, ghost_task=ghost_task, tie_breaks=table.index.tolist()
    )
    order = list(ranking.order)
    rows = task_stability(
        quality[order],
        [*map(str, table.columns)],
        weighs=weighs[order],
        numbered=numbered[order],
        ghost_task=ghost_task,
        phase="",
        replicates=REPLICATES,
    )
    places = tuple(rank if competes else None for rank, competes in zip(ranking.ranks, numbered, strict=True))
    return TableRanking(
        **vars(ranking),
        places=places,
        stability=tuple(row for _, row in sorted(zip(order, rows, strict=False), key=itemgetter(0))),
        sentence=stability_sentence([places[index] for index in order], [row.without for row in rows]),
    )


def table_document(table: pd.DataFrame, ranking: TableRanking) -> dict[str, object]:
    """Return the ranking as ``rank --json`` prints it, best entry first."""
    return {
        "weights": dict(zip(table.columns, ranking.weights, strict=True)),
        "entries": [
            {
                "entry": table.index[index],
                "rank": ranking.places[index],
                "weighted_rank": ranking.weighted_ranks[index],
                "mean": ranking.means[index],
                **(asdict(ranking.stability[index]) if ranking.stability else {}),
            }
            for index in ranking.order
        ],
        "stability": ranking.sentence,
    }


def number(text: str) -> float:
    """Return the number in a text, or NaN; 1_000 and other scripts' digits are refused, because only Python reads them as numbers."""
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _fault(sentence: str, hint: str = "") -> OrganizerError:
    return OrganizerError(
        sentence,
        hint=hint
        or "Save the table as CSV: entries' names in the first column, a column per task, separated by commas.",
        code="rank.table",
    )
