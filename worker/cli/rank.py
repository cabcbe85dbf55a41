"""``neuco-worker rank``: the dynamic rank of any table."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scoring.errors import OrganizerError
from worker.cli.options import JsonOption

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from leaderboard.ranking import Ranking


def rank(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV file: first column = entry, other columns = tasks, higher is better. Use - for standard input."
        ),
    ],
    json_output: JsonOption = False,
    ghost_task: Annotated[
        float,
        typer.Option(
            help="Number that is added to the sum of the tasks' spreads, to stabilize the weights (δ0 in the paper's Eq. 8)."
        ),
    ] = 0.0,
    baselines: Annotated[
        list[str] | None,
        typer.Option(help="Name of a baseline, which gets no rank number; may be repeated."),
    ] = None,
    baselines_weigh: Annotated[
        bool, typer.Option(help="Let baselines take part in the task weights and per-task ranks, or not.")
    ] = True,
) -> None:
    """Rank the entries of any table by dynamic rank: the mean of their ranks per task, weighted by how much scores differ on the task.

    Example: neuco-worker rank results.csv --baselines "Averaging Baseline" --no-baselines-weigh
    """
    from leaderboard.exchange import rank_table, read_table, table_document

    read = read_table(_text(table))
    names = tuple(baselines or ())
    ranking = rank_table(read, ghost_task=ghost_task, baselines=names, baselines_weigh=baselines_weigh)
    if json_output:
        print(json.dumps(table_document(read, ranking), indent=2, allow_nan=False))
    else:
        _show(read, ranking, names)


def _text(path: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OrganizerError(
            f"{path} is not UTF-8 text.", cure="Save the table as CSV in UTF-8.", code="rank.encoding"
        ) from error
    except OSError as error:
        raise OrganizerError(
            f"{path} cannot be read: {error.strerror}.",
            cure="Check the path and its permissions.",
            code="rank.unreadable",
        ) from error


def standings(
    title: str, scores: pd.DataFrame, ranking: Ranking, *, entry: str, baselines: Sequence[str] = ()
) -> Table:
    """Return ranked entries as a table for the terminal, the best first; ``entry`` heads the column of their names."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for name in ("Rank", entry, "Weighted rank", "Mean"):
        table.add_column(name, justify="left" if name == entry else "right")
    for index in ranking.order:
        name = str(scores.index[index])
        table.add_row(
            "–" if name in baselines else str(ranking.ranks[index]),
            Text(name),  # a name is text, not markup
            f"{ranking.weighted_ranks[index]:.3f}",
            f"{ranking.means[index]:.3f}",
        )
    return table


def _show(scores: pd.DataFrame, ranking: Ranking, baselines: Sequence[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    from worker.cli.terminal import Console

    weights = Table(title="Task weights", title_justify="left")
    weights.add_column("Task")
    weights.add_column("Weight", justify="right")
    for task, weight in sorted(zip(scores.columns, ranking.weights, strict=True), key=lambda pair: -pair[1]):
        weights.add_row(Text(task), f"{weight:.4f}")
    console = Console()
    console.print(standings("Standings", scores, ranking, entry="Entry", baselines=baselines))
    console.print(weights)
