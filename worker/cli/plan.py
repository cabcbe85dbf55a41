"""``neuco-worker plan``: machines, hours, disk, calls and waits for a challenge of a given size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.options import JsonOption

if TYPE_CHECKING:
    from worker.organizer.planning import Plan


def plan(
    *,
    submissions: Annotated[int, typer.Option(min=1, help="Submissions in the whole period.")] = 400,
    days: Annotated[float, typer.Option(min=0.05, help="Length of the period in days.")] = 3,
    tasks: Annotated[int, typer.Option(min=1, help="Hidden tasks.")] = 9,
    folds: Annotated[int, typer.Option(min=1, help="Splits per task.")] = 200,
    dim: Annotated[int, typer.Option(min=1, help="Dimension of an embedding.")] = 1024,
    samples: Annotated[int, typer.Option(min=20, help="Public ids.")] = 13260,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs per fold.")] = 20,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Cores of one machine; by default those of this one.")
    ] = None,
    last_hour: Annotated[
        float, typer.Option(min=0, max=1, help="Share of all submissions that arrive in the last hour.")
    ] = 0.25,
    patience: Annotated[
        float, typer.Option(min=1, help="Minutes that the last hour's participants may wait.")
    ] = 60,
    requests_per_minute: Annotated[
        int, typer.Option(min=6, max=60, help="Our share of EvalAI's 60 calls a minute.")
    ] = 50,
    megabits: Annotated[float, typer.Option(min=1, help="Download speed in Mbit/s.")] = 200,
    json_output: JsonOption = False,
) -> None:
    """Say what a challenge needs: machines, hours, disk, EvalAI calls, and the wait before the deadline.

    Measures this machine for a few seconds first.

    Example: neuco-worker plan --submissions 400 --days 3 --tasks 9 --folds 200 --dim 1024 --cores 8
    """
    from scoring.engines import available_cores
    from worker.organizer.planning import Load, make_plan, measure

    load = Load(
        submissions=submissions,
        days=days,
        tasks=tasks,
        folds=folds,
        dim=dim,
        samples=samples,
        epochs=epochs,
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
        _show(made)


def _show(made: Plan) -> None:
    from rich.table import Table

    from worker.cli.terminal import Console

    load, pace = made.load, made.pace
    facts = Table(show_header=False, box=None, padding=(0, 2))
    needed = "no number is enough" if made.machines is None else str(made.machines)
    average = load.submissions / (load.days * 24)
    facts.add_row("Machines", f"{needed}, of {load.cores} cores each")
    facts.add_row(
        "One submission",
        f"{made.evaluation_s:.1f} s on one machine ({pace.probe_core_s * 1000:.1f} core ms a probe, {pace.read_s:.1f} s reading,"
        f" {pace.start_s:.1f} s start)",
    )
    facts.add_row("All of them", f"{made.machine_hours:.1f} machine hours; a complete rescore as much")
    facts.add_row(
        "Disk", f"{made.disk_bytes / 1e9:.1f} GB ({pace.csv_bytes / 1e6:.0f} MB a plain CSV, kept compressed)"
    )
    facts.add_row("Memory", f"{made.memory_bytes / 1e9:.1f} GB for one evaluation, besides the process")
    facts.add_row(
        "EvalAI calls",
        f"{made.calls_per_minute:.1f} a minute in the last hour of {load.calls_per_minute:g} ({made.calls_in_all:,} in all;"
        f" {made.calls_limit_submissions:.0f} submissions an hour is the ceiling)",
    )
    facts.add_row("Arrivals", f"{average:.1f} an hour on average; the last hour is bound by {made.bound_by}")
    waits = Table(title="Wait for an answer in the last hour", title_justify="left", box=None, padding=(0, 2))
    for column in ("machines", "half wait at most", "95 of 100", "the last one"):
        waits.add_column(column, justify="right")
    for row in made.waits:
        waits.add_row(
            str(row.machines), _minutes(row.median_s), _minutes(row.most_s), _minutes(row.longest_s)
        )
    console = Console(soft_wrap=True, highlight=False)
    console.print(facts)
    console.print()
    console.print(waits)
    console.print("\nTaken for granted:")
    for sentence in made.assumptions:
        console.print(f"  • {sentence}", markup=False)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
