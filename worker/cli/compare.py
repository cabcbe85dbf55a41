"""``neuco-worker compare``: compare runs, with intervals of their differences."""

from __future__ import annotations

import json
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
LETTERS = 26


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
    from worker.cli.terminal import Console, table_of

    console = Console(highlight=False)
    letters = [
        chr(ord("A") + place) if place < LETTERS else str(place + 1) for place in range(len(compared.names))
    ]
    for letter, name in zip(letters, compared.names, strict=True):
        console.print(f"{letter}: {name}", markup=False, soft_wrap=True)
    cells = {"Task": [*compared.tasks, OVERALL]}
    for place, letter in enumerate(letters):
        q = [compared.q[place][task] for task in compared.tasks]
        cells[letter] = [f"{value:.3f}" for value in [*q, compared.means[place]]]
        if place:
            found = compared.comparisons[place - 1]
            cells[f"{letter} − {letters[0]}"] = [_interval(one) for one in [*found.tasks, found.overall]]
    title = f"Q, and its difference from {letters[0]} [95 % interval]"
    console.print(table_of(cells, title, total=True))
    for line in _remarks(compared, letters):
        console.print(line, markup=False, soft_wrap=True)


def _interval(difference: Difference) -> str:
    if difference.interval is None:
        return f"{difference.value:+.3f} (too few folds)"
    low, high = difference.interval
    return f"{difference.value:+.3f} [{low:+.3f}, {high:+.3f}]{' *' if difference.is_certain else '  '}"


def _remarks(compared: Compared, letters: list[str]) -> list[str]:
    """Explain the intervals, and which runs were compared fold by fold."""
    found = [one for each in compared.comparisons for one in (*each.tasks, each.overall)]
    remarks = ["* The interval does not contain 0. Intervals reflect the random splits, not new data."]
    if not any(one.is_certain for one in found):
        remarks = ["Every interval contains 0. Intervals reflect the random splits, not new data."]
    for letter, unpaired in zip(letters[1:], compared.unpaired, strict=True):
        if unpaired:
            remarks.append(
                f"{letter} and {letters[0]} were not compared fold by fold in {', '.join(unpaired)}, because labels or splits"
                " differ or were not recorded. This makes the intervals wider."
            )
        else:
            remarks.append(f"{letter} and {letters[0]} were compared fold by fold: same labels, same splits.")
    if compared.left_out:
        remarks.append(f"Left out, because some run has no score: {', '.join(compared.left_out)}.")
    return remarks


def _draw(compared: Compared, path: Path) -> None:
    from scoring.neuco_bench.charts import Difference as Drawn
    from scoring.neuco_bench.charts import differences, draw

    found: list[Drawn] = []
    for name, comparison in zip(compared.names[1:], compared.comparisons, strict=True):
        told = [*zip(compared.tasks, comparison.tasks, strict=True), (OVERALL, comparison.overall)]
        for task, one in told:
            low, high = one.interval or (None, None)
            found.append({"run": name, "task": task, "value": one.value, "low": low, "high": high})
    title = f"Difference in Q from {compared.names[0]}, with 95 % intervals"
    draw(differences(title, found, x="Difference in Q"), path)
