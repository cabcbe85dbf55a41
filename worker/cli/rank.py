"""``neuco-worker rank``: the dynamic rank of a table, or of a phase's runs as NeuCo-Bench's ``summarize_runs`` computes it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scoring.errors import OrganizerError
from worker.cli.options import JsonOption

if TYPE_CHECKING:
    import pandas as pd

    from leaderboard.exchange import PhaseRuns
    from leaderboard.ranking import Ranking


def rank(
    source: Annotated[
        Path,
        typer.Argument(
            help="CSV file, or - for standard input: entry, then one column per task, higher is better. Or `score`'s results folder.",
            metavar="TABLE",
        ),
    ],
    *,
    phase: Annotated[
        str, typer.Option(help="With a folder: the group of runs (`score --phase`).")
    ] = "results",
    ghost_task: Annotated[
        float,
        typer.Option(help="δ0 of the paper's Eq. 8, which makes the weights more stable."),
    ] = 0.0,
    baselines: Annotated[
        list[str] | None,
        typer.Option(help="A baseline, which gets no rank; may be repeated.", metavar="NAME"),
    ] = None,
    baselines_weigh: Annotated[
        bool, typer.Option(help="Whether baselines count in task weights and ranks per task.")
    ] = True,
    json_output: JsonOption = False,
) -> None:
    """Rank the entries of a table, or runs of `score`, by dynamic rank.

    Of a folder, the complete runs of a phase are ranked, and the leaderboard is written as CSV in NeuCo-Bench's columns.

    Example: `neuco-worker rank results.csv --baselines "Averaging Baseline" --no-baselines-weigh`

    Example: `neuco-worker rank results --phase dev`
    """
    from leaderboard.exchange import rank_runs, rank_table, read_table, table_document

    runs = rank_runs(source, phase) if source.is_dir() else None
    table = read_table(_text(source)) if runs is None else runs.table
    names = tuple(baselines or ())
    ranking = rank_table(table, ghost_task=ghost_task, baselines=names, baselines_weigh=baselines_weigh)
    document = table_document(table, ranking)
    if runs is not None:
        runs = replace(runs, ranking=ranking)
        path = write_leaderboard(runs, source, phase)
        document["left_out"] = [{"run": name, "reason": reason} for name, reason in runs.left_out]
        document["csv"] = str(path)
    if json_output:
        print(json.dumps(document, indent=2, allow_nan=False))
    elif runs is not None:
        show_leaderboard(runs, path, names)
    else:
        _show(table, ranking, names)


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


def write_leaderboard(runs: PhaseRuns, output_dir: Path, phase: str) -> Path:
    """Write ``leaderboards/<phase>/leaderboard_<time>.csv`` and return its path."""
    from leaderboard.exchange import leaderboard_csv

    now = datetime.now().astimezone()
    path = output_dir / "leaderboards" / phase / f"leaderboard_{now:%Y%m%d_%H%M%S}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(leaderboard_csv(runs), "utf-8")
    return path


def show_leaderboard(runs: PhaseRuns, path: Path, baselines: tuple[str, ...] = ()) -> None:
    """Print the ranking of runs, what was left out of it, and the path of the CSV."""
    from worker.cli.terminal import Console

    _show(runs.table, runs.ranking, baselines)
    console = Console(highlight=False)
    for name, reason in runs.left_out:
        console.print(f"Left out: {name} {reason}.", markup=False, soft_wrap=True)
    console.print(f"Leaderboard: {path}", markup=False, soft_wrap=True)


def _show(scores: pd.DataFrame, ranking: Ranking, baselines: tuple[str, ...]) -> None:
    import pandas as pd

    from worker.cli.terminal import Console, table_of

    names = [str(scores.index[index]) for index in ranking.order]
    standings = {
        "Rank": [
            "–" if name in baselines else str(ranking.ranks[index])
            for name, index in zip(names, ranking.order, strict=True)
        ],
        "Entry": names,
        "Weighted rank": [f"{ranking.weighted_ranks[index]:.3f}" for index in ranking.order],
        "Mean": [f"{ranking.means[index]:.3f}" for index in ranking.order],
    }
    weights = pd.Series(ranking.weights, index=scores.columns).sort_values(ascending=False, kind="stable")
    console = Console()
    console.print(table_of(standings, "Standings"))
    shares = {"Task": list(weights.index), "Weight": [f"{weight:.4f}" for weight in weights]}
    console.print(table_of(shares, "Task weights"))
