"""``neuco-worker compare``: compare runs, with intervals of their differences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scoring.errors import OrganizerError
from worker.cli.options import JsonOption

if TYPE_CHECKING:
    from leaderboard.exchange import Compared
    from leaderboard.ranking import Difference

OVERALL = "mean of tasks"
KINDS = (".png", ".svg", ".json")


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of runs; each is compared with the first.",
            metavar="RUN",
        ),
    ],
    *,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Save a plot of the differences: .png, .svg, or .json (a Vega-Lite specification).",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Compare runs of `score` with the first one: Q per task and overall, with 95 % intervals of the differences.

    Runs with the same labels and splits are compared fold by fold, which narrows the intervals. They reflect the random splits, not new
    data.

    Example: `neuco-worker compare results/results/ours_20260314_120000 results/results/theirs_20260314_120500 --plot differences.png`
    """
    from leaderboard.exchange import compare_runs, comparison_document

    if plot is not None and plot.suffix not in KINDS:
        raise OrganizerError(
            f"{plot} must end in {' or '.join(KINDS)}.",
            cure="Use a name such as differences.png.",
            code="runs.plot",
        )
    compared = compare_runs(runs)
    if plot is not None:
        _draw(compared, plot)
    if json_output:
        print(json.dumps(comparison_document(compared), indent=2))
        return
    _show(compared)
    if plot is not None:
        print(f"Plot: {plot}")


def _show(compared: Compared) -> None:
    """Print a table for each run that is compared with the first, so that each fits a terminal of 80 columns."""
    from worker.cli.terminal import Console, table_of

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


def _remarks(compared: Compared) -> list[str]:
    """Explain the intervals, and what was left out."""
    certain = any(
        difference.is_certain for each in compared.comparisons for difference in (*each.tasks, each.overall)
    )
    meaning = "* The interval does not contain 0." if certain else "Every interval contains 0."
    remarks = [f"{meaning} Intervals reflect the random splits, not new data."]
    if compared.left_out:
        remarks.append(f"Left out, because some run has no score: {', '.join(compared.left_out)}.")
    return remarks


def _draw(compared: Compared, path: Path) -> None:
    from scoring.neuco_bench.charts import Difference as Drawn
    from scoring.neuco_bench.charts import differences, draw

    drawn: list[Drawn] = []
    for name, comparison in zip(compared.names[1:], compared.comparisons, strict=True):
        of_tasks = [*zip(compared.tasks, comparison.tasks, strict=True), (OVERALL, comparison.overall)]
        for task, difference in of_tasks:
            low, high = difference.interval or (None, None)
            drawn.append({"run": name, "task": task, "value": difference.value, "low": low, "high": high})
    title = f"Difference in Q from {compared.names[0]}, with 95 % intervals"
    draw(differences(title, drawn, x="Difference in Q"), path)
