"""``neuco-worker plan``: machines, hours, disk, calls and waits for a challenge of a given size."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.options import JsonOption, OptionalConfig, find_config


@dataclass(frozen=True, kw_only=True)
class Size:
    """The size of a phase.

    Attributes:
        phase: Its codename; empty for invented sizes.
        tasks: Hidden tasks.
        folds: Splits per task.
        dim: Values in one embedding.
        samples: Public ids.
        epochs: Epochs per fold.
    """

    phase: str = ""
    tasks: int
    folds: int
    dim: int
    samples: int
    epochs: int


USUAL = Size(tasks=9, folds=200, dim=1024, samples=13260, epochs=20)
"""The last phase of the Embed2Scale challenge of 2025."""

if TYPE_CHECKING:
    from worker.organizer.planning import Plan


def plan(
    *,
    config: OptionalConfig = None,
    submissions: Annotated[int, typer.Option(min=1, help="Number of submissions to expect.")] = 400,
    days: Annotated[float, typer.Option(min=0.05, help="Days in which they arrive.")] = 3,
    tasks: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of hidden tasks.", show_default=f"the challenge's, or {USUAL.tasks}"
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of random splits per task.", show_default=f"the challenge's, or {USUAL.folds}"
        ),
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of values in one embedding.", show_default=f"the challenge's, or {USUAL.dim}"
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=20, help="Number of public ids.", show_default=f"the challenge's, or {USUAL.samples}"
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Training epochs per fold.", show_default=f"the challenge's, or {USUAL.epochs}"
        ),
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Cores of one machine; by default, as many as this one has.")
    ] = None,
    last_hour: Annotated[
        float, typer.Option(min=0, max=1, help="Share of all submissions that arrive in the last hour.")
    ] = 0.25,
    patience: Annotated[
        float, typer.Option(min=1, help="Minutes that a participant may wait for an answer in the last hour.")
    ] = 60,
    requests_per_minute: Annotated[
        int,
        typer.Option(
            min=6, max=60, help="Calls to EvalAI that the worker may make in a minute; EvalAI allows 60."
        ),
    ] = 50,
    megabits: Annotated[float, typer.Option(min=1, help="Download speed, in Mbit/s.")] = 200,
    json_output: JsonOption = False,
) -> None:
    """Estimate what a challenge needs: machines, hours, disk, EvalAI calls, and how long answers take before the deadline.

    If there is a configuration, the defaults are those of its most expensive phase. The command first measures the speed of this machine
    for a few seconds.

    Example: neuco-worker plan --submissions 400 --days 3 --tasks 9 --folds 200 --dim 1024 --cores 8
    """
    from scoring.engines import available_cores
    from worker.organizer.planning import Load, make_plan, measure

    size = size_of(config)
    load = Load(
        submissions=submissions,
        days=days,
        tasks=tasks or size.tasks,
        folds=folds or size.folds,
        dim=dim or size.dim,
        samples=samples or size.samples,
        epochs=epochs or size.epochs,
        last_hour=last_hour,
        patience_s=patience * 60,
        calls_per_minute=requests_per_minute,
        megabits=megabits,
        cores=cores or available_cores(),
    )
    made = make_plan(load, measure(load))
    if json_output:
        print(json.dumps(made.to_json(), indent=2))
    else:
        _show(made, size.phase)


def size_of(config: Path | None) -> Size:
    """Return the size of the challenge in the given or found configuration; without one, a usual size."""
    found = config or find_config()
    if found is None:
        return USUAL
    from worker.challenge.configuration import load
    from worker.challenge.files import read_phases

    configuration = load(found)
    recipe, dim = configuration.scoring, configuration.submission.embedding_dim
    sizes = [
        Size(
            phase=name,
            tasks=len(setup.record.tasks),
            folds=configuration.phases[name].folds,
            dim=dim,
            samples=len(setup.ids),
            epochs=recipe.epochs,
        )
        for name, setup in read_phases(configuration).items()
    ]
    return max(sizes, key=lambda size: size.tasks * size.folds * size.samples)


def _show(made: Plan, phase: str) -> None:
    from rich.table import Table

    from worker.cli.terminal import Console

    load, pace = made.load, made.pace
    facts = Table(show_header=False, box=None, padding=(0, 2))
    needed = (
        "no number of machines is enough"
        if made.machines is None
        else f"{made.machines}, each with {load.cores} cores"
    )
    average = load.submissions / (load.days * 24)
    what = f"phase {phase} of your challenge: " if phase else ""
    facts.add_row(
        "Planned for",
        f"{what}{load.submissions:,} submissions in {load.days:g} days, {load.tasks} tasks, {load.folds} folds, {load.samples:,} ids,"
        f" {load.dim:,} values each",
    )
    facts.add_row("Machines", needed)
    facts.add_row(
        "One submission",
        f"{made.evaluation_s:.1f} s on one machine ({pace.probe_core_s * 1000:.1f} ms of one core per probe, {pace.read_s:.1f}"
        f" s to read the file, {pace.start_s:.1f} s to start)",
    )
    facts.add_row(
        "All submissions", f"{made.machine_hours:.1f} machine hours; rescoring all of them takes as long"
    )
    facts.add_row(
        "Disk",
        (
            f"{_gigabytes(made.disk_bytes)} (a plain CSV is about {pace.csv_bytes / 1000000.0:.0f} MB; the worker"
            " stores files compressed)"
        ),
    )
    facts.add_row("Memory", f"{_gigabytes(made.memory_bytes)} for one evaluation, in addition to the worker")
    facts.add_row(
        "EvalAI calls",
        f"{made.calls_per_minute:.1f} a minute in the last hour; the worker may make {load.calls_per_minute:g} a minute, enough for"
        f" {made.calls_limit_submissions:.0f} submissions an hour; {made.calls_in_all:,} in all",
    )
    facts.add_row("Arrivals", f"{average:.1f} an hour on average; in the last hour, {_BOUND[made.bound_by]}")
    waits = Table(
        title="How long participants wait for an answer in the last hour",
        title_justify="left",
        box=None,
        padding=(0, 2),
    )
    for column in ("machines", "median", "95 % of answers", "longest"):
        waits.add_column(column, justify="right")
    for row in made.waits:
        waits.add_row(
            str(row.machines), _minutes(row.median_s), _minutes(row.most_s), _minutes(row.longest_s)
        )
    console = Console(soft_wrap=True, highlight=False)
    console.print(facts)
    console.print()
    console.print(waits)
    console.print("\nAssumptions:")
    for sentence in made.assumptions:
        console.print(f"  • {sentence}", markup=False)


_BOUND = {
    "arrivals": "scoring and calls keep up with them",
    "scoring": "scoring cannot keep up with them",
    "calls": "EvalAI's rate limit is too low for them",
}


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else "less than 0.1 GB"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
