"""``neuco-worker rank`` and ``compare``: the dynamic rank of a table or of a phase's runs, and intervals of their differences."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scoring.documents import contents
from scoring.errors import OrganizerError
from scoring.files import write_files
from scoring.printable import printable
from worker.cli.terminal import Console, JsonOption, table_of

if TYPE_CHECKING:
    import pandas as pd

    from leaderboard.exchange import Compared, PhaseRuns, TableRanking
    from leaderboard.ranking import Difference


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
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            help="With a table: a column that is a task; may be repeated. By default all but means, ranks and descriptions.",
            metavar="NAME",
        ),
    ] = None,
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
    """Rank the entries of a table, or runs of `score`, by dynamic rank, and say what other tasks would change.

    Of a folder, the complete runs of a phase are ranked, and the leaderboard is written as CSV in NeuCo-Bench's columns.

    Next: `neuco-worker compare` says how certain the difference between two runs is.

    Example: `neuco-worker rank results.csv --baselines "Averaging Baseline" --no-baselines-weigh`

    Example: `neuco-worker rank results --phase dev`
    """
    from leaderboard.exchange import rank_table, read_runs, read_table, table_document
    from scoring.neuco_bench.results import phase_folder

    if tasks and source.is_dir():
        raise typer.BadParameter(
            "--tasks needs a table, such as the leaderboard that is written for a folder."
        )
    runs = read_runs(phase_folder(source, phase)) if source.is_dir() else None
    table, left_out = read_table(_text(source), tasks or ()) if runs is None else (runs.table, [])
    ranking = rank_table(
        table, ghost_task=ghost_task, baselines=baselines or (), baselines_weigh=baselines_weigh
    )
    document = table_document(table, ranking)
    if left_out:
        document["left_out"] = left_out
    if runs is not None:
        path = write_leaderboard(runs, ranking, source, phase)
        document["left_out"] = [{"run": name, "reason": reason} for name, reason in runs.left_out]
        document["differing"] = list(runs.differing)
        document["csv"] = str(path)
    if json_output:
        print(json.dumps(document, indent=2, allow_nan=False))
    elif runs is not None:
        show_leaderboard(Console(highlight=False), runs, ranking, path)
    else:
        _show(Console(highlight=False), table, ranking)
        if left_out:
            print(
                f"Not counted as tasks or entries: {printable(', '.join(left_out))}. Choose tasks with --tasks."
            )


def _text(path: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else contents(path)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OrganizerError(
            f"{path} is not UTF-8 text.", hint="Save the table as CSV in UTF-8.", code="rank.encoding"
        ) from error
    except OSError as error:
        raise OrganizerError(
            f"{path} cannot be read: {error.strerror}.",
            hint="Check the path and its permissions.",
            code="rank.unreadable",
        ) from error


def write_leaderboard(runs: PhaseRuns, ranking: TableRanking, output_dir: Path, phase: str) -> Path:
    """Write ``leaderboards/<phase>/leaderboard_<time>.csv`` and return its path."""
    from leaderboard.exchange import leaderboard_csv

    now = datetime.now().astimezone()
    path = output_dir / "leaderboards" / phase / f"leaderboard_{now:%Y%m%d_%H%M%S}.csv"
    write_files(path.parent, {path.name: leaderboard_csv(runs, ranking).encode()})
    return path


def show_leaderboard(console: Console, runs: PhaseRuns, ranking: TableRanking, path: Path) -> None:
    """Print the ranking of runs, what was left out of it, and the path of the CSV."""
    _show(console, runs.table, ranking)
    for name, reason in runs.left_out:
        console.print(f"Left out: {name} {reason}.", markup=False, soft_wrap=True)
    if runs.differing:
        sentence = f"Not all runs were scored on the same labels and splits: see {', '.join(runs.differing)}."
        console.print(sentence, markup=False, soft_wrap=True)
    console.print(f"Leaderboard: {path}", markup=False, soft_wrap=True)


def _show(console: Console, scores: pd.DataFrame, ranking: TableRanking) -> None:
    import pandas as pd

    from leaderboard.rules import REPLICATES

    places = [ranking.places[index] for index in ranking.order]
    standings = {
        "Rank": ["–" if place is None else str(place) for place in places],
        "Entry": [str(scores.index[index]) for index in ranking.order],
        "Weighted rank": [f"{ranking.weighted_ranks[index]:.3f}" for index in ranking.order],
        "Mean": [f"{ranking.means[index]:.3f}" for index in ranking.order],
    }
    if ranking.stability:
        rows = [ranking.stability[index] for index in ranking.order]
        standings["First"] = [
            "–" if place is None else f"{row.p_first:.0%}" for place, row in zip(places, rows, strict=True)
        ]
        standings["Order kept"] = [
            "–" if row.keeps_order is None else f"{row.keeps_order:.0%}" for row in rows
        ]
    weights = pd.Series(ranking.weights, index=scores.columns).sort_values(ascending=False, kind="stable")
    console.print(table_of(standings, "Standings"))
    shares = {"Task": list(weights.index), "Weight": [f"{weight:.4f}" for weight in weights]}
    console.print(table_of(shares, "Task weights"))
    if ranking.sentence:
        console.print(
            f"{ranking.sentence} First, and Order kept with the next entry: shares of {REPLICATES:,} resamplings of the tasks.",
            markup=False,
            soft_wrap=True,
        )


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of runs; each is compared with the first.",
            metavar="RUN",
        ),
    ],
    *,
    json_output: JsonOption = False,
) -> None:
    """Compare runs of `score` with the first one: Q per task and overall, with 95 % intervals, and what other tasks would change.

    Runs with the same labels and splits are compared fold by fold, which narrows the intervals. They reflect the random splits, not new
    data.

    Example: `neuco-worker compare results/results/ours_20260314_120000 results/results/theirs_20260314_120500`
    """
    from leaderboard.exchange import compare_runs, comparison_document

    compared = compare_runs(runs)
    if json_output:
        print(json.dumps(comparison_document(compared), indent=2))
    else:
        _show_compared(compared)


def _show_compared(compared: Compared) -> None:
    """Print a table for each run that is compared with the first, so that each fits a terminal of 80 columns."""
    from leaderboard.exchange import OVERALL

    console = Console(highlight=False)
    first, *others = compared.names
    console.print(f"A: {first}", markup=False, soft_wrap=True)
    q = [
        [f"{value:.3f}" for value in (*(scores[task] for task in compared.tasks), mean)]
        for scores, mean in zip(compared.q, compared.means, strict=True)
    ]
    for number, (name, comparison) in enumerate(zip(others, compared.comparisons, strict=True), 1):
        columns = {
            "Task": [*compared.tasks, OVERALL],
            "A": q[0],
            "B": q[number],
            "B − A [95 % interval]": list(map(_interval, [*comparison.tasks, comparison.overall])),
        }
        console.print(table_of(columns, f"Q of A, and of B: {name}", total=True))
        console.print(_pairing(compared.unpaired[number - 1]), markup=False, soft_wrap=True)
        if sentence := comparison.sentence(compared.tasks):
            console.print(sentence, markup=False, soft_wrap=True)
    for line in _remarks(compared):
        console.print(line, markup=False, soft_wrap=True)


def _interval(difference: Difference) -> str:
    if difference.interval is None:
        return f"{difference.value:+.3f} (too few folds)"
    low, high = difference.interval
    return f"{'* ' if difference.is_certain else ''}{difference.value:+.3f} [{low:+.3f}, {high:+.3f}]"


def _pairing(unpaired: Sequence[str]) -> str:
    """Say whether two runs were compared fold by fold."""
    if not unpaired:
        return "B and A were compared fold by fold: same labels, same splits."
    return (
        f"B and A were not compared fold by fold in {', '.join(unpaired)}, because labels or splits differ or were not recorded. This"
        " makes the intervals wider."
    )


def _remarks(compared: Compared) -> Iterator[str]:
    """Explain the intervals, and what was left out."""
    differences = [each for of in compared.comparisons for each in (*of.tasks, of.overall) if each.interval]
    if differences:
        certain = any(difference.is_certain for difference in differences)
        meaning = "* The interval does not contain 0." if certain else "Every interval contains 0."
        yield f"{meaning} Intervals reflect the random splits, not new data."
    if compared.left_out:
        yield f"Left out, because some run has no score: {', '.join(compared.left_out)}."
