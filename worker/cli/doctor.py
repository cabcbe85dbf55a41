"""``neuco-worker doctor``: every check that is possible before the launch."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scoring.errors import OrganizerError
from scoring.printable import count_of, printable
from worker.cli.terminal import ConfigOption, Console, JsonOption, configuration_file

if TYPE_CHECKING:
    from worker.organizer.doctor import CheckOutcome, Examination

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

MARKS = {"ok": ("✓", "green"), "skipped": ("-", "dim"), "warn": ("!", "yellow"), "fail": ("✗", "red")}


def doctor(
    challenge: Annotated[
        Path | None,
        typer.Argument(help="The same as --config."),
    ] = None,
    *,
    config: ConfigOption,
    offline: Annotated[bool, typer.Option("--offline", help="Only the checks that need no network.")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Show every check, not only problems.")] = False,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="Embeddings whose scores with and without groups of samples are compared.",
            metavar="FILE",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    alert: Annotated[
        bool,
        typer.Option("--alert", help="Only send a test alert to the webhook, and print its answer."),
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Check the challenge before launch, and say how to fix each problem.

    Also shows how long a submission to each phase takes on this machine. Changes nothing. The output names hidden tasks, but shows no
    label. Exits with 1 if a check fails or the webhook refuses the test alert, and with 0 if there are only warnings.

    Next: `neuco-worker run`, when nothing is left to fix.

    Example: `neuco-worker doctor --config challenge.yaml`
    """
    from worker.organizer.doctor import Level, examine

    config = config if challenge is None else configuration_file(challenge)
    if alert:
        _send_alert(config)
        return

    with Console(stderr=True).status("Checking …") as status:
        report = examine(
            config,
            clock=lambda: datetime.now(UTC),
            offline=offline,
            on_check=lambda check, number, of: status.update(f"{number} of {of}: {check.question}"),
            wait=_wait,
            baseline=baseline,
        )
    if json_output:
        typer.echo(json.dumps(report.to_json(), indent=2))
    else:
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
            hint="Create an incoming webhook (Slack, Mattermost), write its address into webhook.token,"
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


def _show(report: Examination, *, show_all: bool) -> None:
    """Print the problems with their hints, and a line for each group."""
    from worker.organizer.doctor import Level

    console = Console(highlight=False, soft_wrap=True)
    for level, singular, plural, style in (
        (Level.FAIL, "problem to fix", "problems to fix", "bold red"),
        (Level.WARN, "warning", "warnings", "bold yellow"),
    ):
        findings = [(o.check.id, f) for o in report.outcomes for f in o.findings if f.level is level]
        if findings:
            console.print(count_of(len(findings), singular, plural), style=style)
            for identifier, finding in findings:
                console.print(f"  • {finding.sentence}", markup=False)
                console.print(f"    {finding.hint}  [{identifier}]", markup=False, style="dim")
            console.print()
    for group, heading in GROUPS.items():
        outcomes = [outcome for outcome in report.outcomes if outcome.check.group == group]
        _group(console, heading, outcomes, show_all=show_all)
    more = "" if show_all else " Add --all to list them."
    console.print(f"\n{len(report.outcomes)} checks: {_counts(report.outcomes)}.{more}", style="bold")


def _counts(outcomes: Sequence[CheckOutcome]) -> str:
    """Return how many checks had each result, without results that no check had."""
    words = {"ok": "passed", "warn": "with warnings", "fail": "failed", "skipped": "skipped"}
    counts = Counter(outcome.level.value for outcome in outcomes)
    return ", ".join(f"{counts[level]} {word}" for level, word in words.items() if level in counts)


def _group(console: Console, heading: str, outcomes: Sequence[CheckOutcome], *, show_all: bool) -> None:
    """Print a group as one line, with the reason if checks of it were skipped; below it each check on request, and facts."""
    from worker.organizer.doctor import Level, worst

    skipped = dict.fromkeys(o.findings[0].sentence for o in outcomes if o.level is Level.SKIPPED)
    reasons = f" ({'; '.join(reason.rstrip('.') for reason in skipped)})" if skipped else ""
    mark, style = MARKS[worst(outcome.level for outcome in outcomes)]
    console.print(f"[{style}]{mark}[/] {heading}: {_counts(outcomes)}", end="")
    console.print(reasons, style="dim", markup=False)
    for outcome in outcomes:
        if show_all:
            mark, style = MARKS[outcome.level]
            console.print(f"  [{style}]{mark}[/] {outcome.check.question}")
        for finding in outcome.findings:
            if finding.level is Level.OK or (show_all and finding.level is Level.SKIPPED):
                console.print(f"    {finding.sentence}", style="dim", markup=False)
