"""``neuco-worker summarize``: rank the runs of a phase, as NeuCo-Bench's ``summarize_runs`` does."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.options import JsonOption
from worker.cli.rank import standings

if TYPE_CHECKING:
    from leaderboard.exchange import PhaseRuns


def summarize(
    *,
    output_dir: Annotated[
        Path, typer.Option("--output_dir", "--output-dir", help="Folder with the results of `score`.")
    ] = Path("results"),
    phase: Annotated[
        str, typer.Option(help="Name of the group of runs to rank, as given to `score` with --phase.")
    ] = "all",
    json_output: JsonOption = False,
) -> None:
    """Rank all complete runs of a phase by dynamic rank, and write the leaderboard as CSV.

    Example: neuco-worker summarize --output_dir results --phase dev
    """
    from leaderboard.exchange import rank_runs, table_document

    runs = rank_runs(output_dir, phase)
    path = write_leaderboard(runs, output_dir, phase, now=datetime.now().astimezone())
    if json_output:
        left_out = [{"run": name, "reason": reason} for name, reason in runs.left_out]
        print(
            json.dumps(
                table_document(runs.table, runs.ranking) | {"left_out": left_out, "csv": str(path)}, indent=2
            )
        )
    else:
        show_leaderboard(runs, path, always=True)


def write_leaderboard(runs: PhaseRuns, output_dir: Path, phase: str, *, now: datetime) -> Path:
    """Write ``leaderboards/<phase>/leaderboard_<time>.csv`` and return its path."""
    from leaderboard.exchange import leaderboard_csv

    path = output_dir / "leaderboards" / phase / f"leaderboard_{now:%Y%m%d_%H%M%S}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(leaderboard_csv(runs), "utf-8")
    return path


def show_leaderboard(runs: PhaseRuns, path: Path, *, always: bool = False) -> None:
    """Print the leaderboard, what was left out of it, and the path of the CSV; the leaderboard of a single run only on request."""
    from worker.cli.terminal import Console

    console = Console(highlight=False)
    if len(runs.table) > 1 or always:
        console.print(standings("Leaderboard", runs.table, runs.ranking, entry="Experiment"))
    for name, reason in runs.left_out:
        console.print(f"Left out: {name} {reason}.", markup=False, soft_wrap=True)
    console.print(f"Leaderboard: {path}", markup=False, soft_wrap=True)
