"""``neuco-worker doctor``: every check that can be made before launch."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from worker.commands.run import ConfigOption

if TYPE_CHECKING:
    from rich.console import Console

    from worker.doctor import Outcome, Report

GROUPS = {
    "configuration": "Configuration",
    "secret": "Secret and private files",
    "ids": "Public ids",
    "labels": "Hidden tasks",
    "evalai": "EvalAI",
    "board": "Leaderboard repository",
    "alerts": "Alerts",
    "machine": "This machine",
    "cost": "Cost of a submission, measured here",
}


def doctor(
    *,
    config: ConfigOption,
    offline: Annotated[
        bool, typer.Option("--offline", help="Make only the checks that need no other machine.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check everything that can be checked before launch, and say how to mend what is wrong.

    Nothing is changed anywhere: no message is received, nothing is pushed, nothing is posted. For the organizer's eyes: it names hidden
    tasks, but never a label. Ends with 1 if a check fails, with 0 if there are warnings only.

    Example: neuco-worker doctor --config challenge.yaml
    """
    from worker.doctor import Level, examine

    def now() -> datetime:
        return datetime.now(UTC)

    if json_output:
        report = examine(config, clock=now, offline=offline)
        typer.echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        report = _watched(lambda told: examine(config, clock=now, offline=offline, told=told))
        _show(report)
    if report.level is Level.FAIL:
        raise typer.Exit(1)


def _watched(look: Callable[[Callable[[Outcome], None]], Report]) -> Report:
    """Show what is being looked at, where somebody watches."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if not sys.stderr.isatty():
        return look(lambda _: None)
    with console.status("Looking …") as status:
        return look(lambda outcome: status.update(f"{GROUPS[outcome.check.group]} …"))


def _show(report: Report) -> None:
    from rich.console import Console

    from worker.doctor import Level

    console = Console(highlight=False, soft_wrap=True)
    for level, heading, style in (
        (Level.FAIL, "Must be mended", "bold red"),
        (Level.WARN, "Worth a look", "bold yellow"),
    ):
        outcomes = report.at(level)
        if outcomes:
            console.print(f"{heading} ({len(outcomes)})", style=style)
            for outcome in outcomes:
                _tell(console, outcome)
            console.print()
    for group, heading in GROUPS.items():
        _summarize(console, heading, [outcome for outcome in report.outcomes if outcome.check.group == group])
    counts = {level: len(report.at(level)) for level in Level}
    console.print(
        f"\n{len(report.outcomes)} checks: {counts[Level.OK]} passed, {counts[Level.WARN]} warnings,"
        f" {counts[Level.FAIL]} failed, {counts[Level.SKIPPED]} skipped.",
        style="bold",
    )


def _tell(console: Console, outcome: Outcome) -> None:
    from rich.text import Text

    from worker.doctor import Level

    for finding in outcome.findings:
        if finding.level in (Level.FAIL, Level.WARN):
            console.print(Text(f"  • {finding.sentence}"))
            console.print(Text(f"    {finding.cure}  [{outcome.check.id}]", style="dim"))


def _summarize(console: Console, heading: str, outcomes: list[Outcome]) -> None:
    from rich.text import Text

    from worker.doctor import Level

    marks = {
        Level.OK: ("✓", "green"),
        Level.SKIPPED: ("-", "dim"),
        Level.WARN: ("!", "yellow"),
        Level.FAIL: ("✗", "red"),
    }
    console.print(Text(heading, style="bold"))
    chained = Counter(
        finding.sentence
        for outcome in outcomes
        for finding in outcome.findings
        if outcome.level is Level.SKIPPED
    )
    for outcome in outcomes:
        if outcome.level is Level.SKIPPED and chained[outcome.findings[0].sentence] > 1:
            continue  # told together below
        mark, style = marks[outcome.level]
        line = Text(f"  {mark} ", style=style).append(outcome.check.title, style="default")
        facts = [
            finding.sentence for finding in outcome.findings if finding.level in (Level.OK, Level.SKIPPED)
        ]
        if facts:
            line.append(f"\n      {' '.join(facts)}", style="dim")
        console.print(line)
