"""``neuco-worker doctor``: every check that is possible before the launch."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scoring.errors import OrganizerError
from scoring.printable import printable
from worker.cli.options import ConfigOption, JsonOption, configuration_file

if TYPE_CHECKING:
    from rich.console import Console

    from worker.organizer.doctor import CheckOutcome, Level, Report

TEST_TEXT = "This is a test: alerts of this challenge arrive here."
GROUPS = {
    "configuration": "Configuration",
    "secret": "Secret and private files",
    "labels": "Hidden tasks",
    "ids": "Public ids",
    "evalai": "EvalAI",
    "board": "Leaderboard repository",
    "alerts": "Alerts",
    "beacon": "Public random value for the splits",
    "machine": "This machine",
    "records": "Recorded phases",
}


def doctor(
    challenge: Annotated[
        Path | None,
        typer.Argument(help="The same as --config."),
    ] = None,
    *,
    config: ConfigOption,
    offline: Annotated[bool, typer.Option("--offline", help="Only the checks that need no network.")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Show every check, not only problems.")] = False,
    alert: Annotated[
        bool,
        typer.Option("--alert", help="Only send a test alert to the webhook, and print its answer."),
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Check the challenge before launch, and say how to fix each problem.

    Also shows how long a submission to each phase takes on this machine. Changes nothing. The output names hidden tasks, but shows no
    label. Exits with 1 if a check fails or the webhook refuses the test alert, and with 0 if there are only warnings.

    Example: `neuco-worker doctor --config challenge.yaml`
    """
    from worker.organizer.doctor import Level, examine

    config = config if challenge is None else configuration_file(challenge)
    if alert:
        _send_alert(config)
        return

    def now() -> datetime:
        return datetime.now(UTC)

    if json_output:
        report = examine(config, clock=now, offline=offline, wait=_wait)
        typer.echo(json.dumps(report.to_json(), indent=2))
    else:
        report = _watched(
            lambda on_outcome: examine(config, clock=now, offline=offline, on_outcome=on_outcome, wait=_wait)
        )
        _show(report, show_all=show_all)
    if report.level is Level.FAIL:
        raise typer.Exit(1)


def _send_alert(config: Path) -> None:
    """Send a test alert in the same way as the worker does."""
    from worker.challenge.configuration import load
    from worker.daemon import alerts

    configuration = load(config)
    if configuration.alerts.webhook is None:
        raise OrganizerError(
            "alerts.webhook is not set, so alerts appear only in the log and in `status`.",
            cure="Create an incoming webhook (Slack, Mattermost), write its address into webhook.token,"
            " and set alerts.webhook: file:./webhook.token",
            code="alerts.no_webhook",
        )
    answer = alerts.send(configuration, TEST_TEXT, "alerts.test")
    print(f"The webhook answered {printable(answer)}. Check that this alert has arrived:")
    print(f"  [{printable(configuration.challenge.title)}] {TEST_TEXT} (alerts.test)")


def _wait(seconds: float, why: str) -> None:
    """Explain on stderr why nothing happens for a while; stdout is for the findings."""
    print(why, file=sys.stderr, flush=True)
    time.sleep(seconds)


def _watched(look: Callable[[Callable[[CheckOutcome], None]], Report]) -> Report:
    """Show at a terminal what is being checked."""
    from worker.cli.terminal import Console

    console = Console(stderr=True, highlight=False)
    if not sys.stderr.isatty():
        return look(lambda _: None)
    with console.status("Checking …") as status:
        return look(lambda outcome: status.update(f"{GROUPS[outcome.check.group]} …"))


def _show(report: Report, *, show_all: bool) -> None:
    from worker.cli.terminal import Console, table_of
    from worker.organizer.doctor import Level

    console = Console(highlight=False, soft_wrap=True)
    for level, one, several, style in (
        (Level.FAIL, "problem to fix", "problems to fix", "bold red"),
        (Level.WARN, "warning", "warnings", "bold yellow"),
    ):
        number = sum(finding.level is level for outcome in report.outcomes for finding in outcome.findings)
        checks = sum(outcome.level is level for outcome in report.outcomes)
        if number:
            found = "" if number == checks else f", found by {checks} check{'s' * (checks != 1)}"
            console.print(f"{number} {one if number == 1 else several}{found}", style=style)
            for outcome in report.outcomes:
                _tell(console, outcome, level)
            console.print()
    for group, heading in GROUPS.items():
        outcomes = [outcome for outcome in report.outcomes if outcome.check.group == group]
        _group(console, heading, outcomes, show_all=show_all)
    if costs := report.costs.values():
        columns = {
            "Phase": list(report.costs),
            "Tasks": [f"{cost.tasks:,}" for cost in costs],
            "Ids": [f"{cost.rows:,}" for cost in costs],
            "Folds": [f"{cost.folds:,}" for cost in costs],
            "Seconds": [f"{cost.seconds:.1f}" for cost in costs],
            "An hour": [f"{3600 / cost.seconds:,.0f}" for cost in costs],
            "CSV, MB": [f"{cost.csv_bytes / 1e6:.1f}" for cost in costs],
        }
        console.print(table_of(columns, "\nA submission on this machine"))
    more = "" if show_all else " Add --all to list them."
    console.print(f"\n{len(report.outcomes)} checks: {_counts(report.outcomes)}.{more}", style="bold")


def _tell(console: Console, outcome: CheckOutcome, level: Level) -> None:
    """Print a check's findings of one level, each with its cure."""
    from rich.text import Text

    for finding in outcome.findings:
        if finding.level is level:
            console.print(Text(f"  • {finding.sentence}"))
            console.print(Text(f"    {finding.cure}  [{outcome.check.id}]", style="dim"))


def _counts(outcomes: Sequence[CheckOutcome]) -> str:
    """Return how many checks had each result, without results that no check had."""
    from worker.organizer.doctor import Level

    words = {Level.OK: "passed", Level.WARN: "with warnings", Level.FAIL: "failed", Level.SKIPPED: "skipped"}
    counts = Counter(outcome.level for outcome in outcomes)
    return ", ".join(f"{counts[level]} {word}" for level, word in words.items() if counts[level])


def _mark(level: Level) -> tuple[str, str]:
    from worker.organizer.doctor import Level

    return {
        Level.OK: ("✓", "green"),
        Level.SKIPPED: ("-", "dim"),
        Level.WARN: ("!", "yellow"),
        Level.FAIL: ("✗", "red"),
    }[level]


def _group(console: Console, heading: str, outcomes: Sequence[CheckOutcome], *, show_all: bool) -> None:
    """Print a group as one line, with the reason if checks of it were skipped; below it each check on request, and facts."""
    from rich.text import Text

    from worker.organizer.doctor import Level, worst

    mark, style = _mark(worst(outcome.level for outcome in outcomes))
    line = Text(f"{mark} ", style=style).append(f"{heading}: {_counts(outcomes)}", style="default")
    reasons = dict.fromkeys(o.findings[0].sentence for o in outcomes if o.level is Level.SKIPPED)
    if reasons:
        line.append(f" ({'; '.join(reason.rstrip('.') for reason in reasons)})", style="dim")
    console.print(line)
    for outcome in outcomes:
        if show_all:
            mark, style = _mark(outcome.level)
            console.print(Text(f"  {mark} ", style=style).append(outcome.check.question, style="default"))
        for finding in outcome.findings:
            if finding.always or (show_all and finding.level in (Level.OK, Level.SKIPPED)):
                console.print(Text(f"    {finding.sentence}", style="dim"))
