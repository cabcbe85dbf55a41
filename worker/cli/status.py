"""``neuco-worker status`` and ``submissions``: what needs attention first, and every submission with its state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from scoring.printable import count_of, name_some
from worker.cli.terminal import ConfigOption, Console, JsonOption, open_session

if TYPE_CHECKING:
    from worker.challenge.configuration import Configuration
    from worker.challenge.files import Difference
    from worker.fairness.draws import Draw
    from worker.organizer.listing import ListedSubmission
    from worker.organizer.session import OrganizerSession
    from worker.state.status import Status


SOON = timedelta(days=30)


def status(
    *,
    config: ConfigOption,
    json_output: JsonOption = False,
) -> None:
    """Show what needs attention, then worker, submissions, last poll, last push and token expiry.

    Without the EvalAI token, it cannot show when that expires.

    Next: `neuco-worker submissions` lists the submissions; the runbook says what to do about each alert.

    Example: `neuco-worker status --config challenge.yaml`
    """
    with open_session(config) as session:
        view = _view(session)
    if json_output:
        print(json.dumps(view.to_json(), indent=2, sort_keys=True))
        return
    console = Console(soft_wrap=True, highlight=False)
    for part in _page(session.configuration.challenge.title, view):
        console.print(part)


@dataclass(frozen=True, kw_only=True)
class View:
    """What is known at one moment.

    Attributes:
        state: The content of the database.
        unknown: Why the token's expiry date is unknown.
        problem: The problem that keeps the state from being written, if any.
        differing: Differences between files and settings and the recorded phases.
        awaited: Public values for which phases wait; nothing is scored in these phases before.
        now: The time.
    """

    state: Status
    unknown: str | None
    problem: InfrastructureError | None
    differing: Sequence[Difference]
    awaited: Sequence[Draw]
    now: datetime

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        problem = self.problem
        return self.state.to_json() | {
            "token_expiry_unknown": self.unknown,
            "problem": None if problem is None else {"code": problem.code, "text": problem.message},
            "differences": [asdict(difference) for difference in self.differing],
            "awaited": [
                {"phase": draw.phase, "source": draw.source, "round": draw.round, "at": draw.at.isoformat()}
                for draw in self.awaited
            ],
        }


def _view(session: OrganizerSession) -> View:
    """Read everything that is shown."""
    from worker.fairness import commitments
    from worker.fairness.draws import waiting
    from worker.runtime.storage import below_reserve, fault
    from worker.state.status import read_status

    configuration = session.configuration
    token_expires, unknown = _token_expiry(configuration)
    with closing(session.leader_lock()) as lock:
        led = lock.held()
    state = read_status(
        session.store,
        now=session.now,
        led=led,
        token_expires=token_expires,
        free_bytes=session.files.free_bytes(),
    )
    with session.store.read() as tx:
        awaited = waiting(commitments.public(tx)).values()
    problem = fault(configuration.state_dir)
    if not any(alert.code == "disk.reserve" for alert in state.alerts):
        problem = problem or below_reserve(state.free_bytes, configuration.submission.disk_reserve_gigabytes)
    return View(
        state=state,
        unknown=unknown,
        problem=problem,
        differing=_differing(session),
        awaited=sorted(awaited, key=lambda draw: (draw.at, draw.phase)),
        now=session.now,
    )


def _token_expiry(configuration: Configuration) -> tuple[datetime | None, str | None]:
    """Return when the EvalAI token expires, or why that is unknown."""
    from worker.evalai import token_expiry

    try:
        token = configuration.secret(configuration.evalai.token, "evalai.token").get_secret_value()
    except OrganizerError as error:
        return None, error.sentence
    expiry = token_expiry(token)
    return expiry, None if expiry is not None else "the token does not say"


def _differing(session: OrganizerSession) -> list[Difference]:
    """Return the differences between files and settings and the recorded phases; nothing if they cannot be determined."""
    from worker.challenge.files import differences, read_secret

    configuration = session.configuration
    try:
        secret = read_secret(configuration)
        with session.store.read() as tx:
            return [
                difference
                for name in configuration.phases
                for difference in differences(tx, configuration, name, secret)
            ]
    except NeucoError:  # reported by the doctor and by the next start
        return []


def _needs(view: View) -> list[str]:
    """Return what needs attention, the most urgent first."""
    state, now = view.state, view.now
    needs = [] if view.problem is None else [f"{view.problem.message} ({view.problem.code})"]
    needs += [f"{alert.text} ({alert.code}, since {_ago(alert.raised_at, now)})" for alert in state.alerts]
    if state.retried:
        named = name_some([str(pk) for pk in state.retried])
        needs.append(
            f"The last try failed for {count_of(len(state.retried), 'submission')} ({named}). The worker tries again."
        )
    needs += [f"{difference.sentence} {difference.cure}" for difference in view.differing]
    if state.token_expires is not None and state.token_expires - now < SOON:
        needs.append(
            f"The EvalAI token expires on {state.token_expires:%Y-%m-%d}. Renew it on your EvalAI profile page."
        )
    return needs


def _page(title: str, view: View) -> list[RenderableType]:
    """Return what is shown, the most urgent first."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    for name, text in _rows(view):
        table.add_row(name, Text(text))
    needs = _needs(view)
    heading = ("Needs attention", "bold red") if needs else ("Nothing needs attention.", "green")
    lines = [Text(title, style="bold"), Text(), Text(*heading), *(Text(f"  • {need}") for need in needs)]
    return [*lines, Text(), table]


def _rows(view: View) -> list[tuple[str, str]]:
    """Return the names and values of the table."""
    state, now = view.state, view.now
    leader, expires, oldest_s = state.leader, state.token_expires, state.oldest_waiting_s
    oldest = "" if oldest_s is None else f", the oldest for {timedelta(seconds=round(oldest_s))}"
    worker = "not running"
    if leader is not None:
        since = _ago(datetime.fromisoformat(leader.since), now)
        worker = f"process {leader.process} on {leader.host}, started {since}"
    awaited = [
        (
            f"Phase {draw.phase} waits",
            f"for the public value of {draw.source}{'' if draw.round is None else f', round {draw.round}'},"
            f" {f'in {_span(draw.at - now)}' if draw.at > now else 'any moment now'};"
            " until then, submissions are downloaded but not scored",
        )
        for draw in view.awaited
    ]
    return [
        ("Worker", worker),
        (
            "Submissions",
            ", ".join(f"{count} {name}" for name, count in sorted(state.states.items())) or "none yet",
        ),
        ("Waiting for an answer", f"{state.waiting}{oldest}"),
        *awaited,
        ("On hold", ", ".join(str(pk) for pk in state.held) or "none"),
        ("To send to EvalAI", count_of(state.owed, "call")),
        ("Last poll of the queue", _ago(state.last_poll, now)),
        ("Last comparison with EvalAI", _ago(state.last_reconcile, now)),
        ("Last push", _ago(state.last_push, now)),
        ("Token expires", f"{expires:%Y-%m-%d}" if expires else f"unknown: {view.unknown}"),
        ("Free disk space", f"{state.free_bytes / 1e9:.1f} GB"),
    ]


def _span(length: timedelta) -> timedelta:
    return timedelta(seconds=round(length.total_seconds()))


def _ago(moment: datetime | None, now: datetime) -> str:
    return "never" if moment is None else f"{_span(now - moment)} ago"


def submissions(
    *,
    config: ConfigOption,
    phase: Annotated[str | None, typer.Option(help="Only this phase.", metavar="NAME")] = None,
    team: Annotated[
        str | None,
        typer.Option(help="Only this team: its number at EvalAI, or all or part of its name."),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(help="Only this state, such as `fetched`; or `held`: only those on hold."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """List submissions with number, team, phase, state, mean Q, and what they are waiting for.

    The numbers are EvalAI's. A star marks the submissions that count on the latest board.

    Next: `neuco-worker challenge retry` for a submission on hold.

    Example: `neuco-worker submissions --phase dev --state held --config challenge.yaml`
    """
    from worker.organizer import listing

    with open_session(config) as session:
        rows = listing.submissions(session, phase=phase, team=team, state=state)
    if json_output:
        print(json.dumps({"submissions": [row.to_json() for row in rows]}, indent=2))
        return

    console = Console(highlight=False)
    if not rows:
        asked = phase or team or state
        console.print("No submission matches." if asked else "There are no submissions yet.", markup=False)
        return
    console.print(_table(rows))
    for listed in rows:
        for note in listed.notes:
            console.print(f"{listed.row.pk}: {note}", markup=False, soft_wrap=True)
    console.print(f"{len(rows)} submission{'s' * (len(rows) != 1)}", style="dim", markup=False)


def _table(rows: Sequence[ListedSubmission]) -> Table:
    """Return a table with a row for each submission that fits a terminal of 80 columns."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("Number", "Phase", "Submitted (UTC)", "State", "Mean Q", "Team, method"):
        right = name in {"Number", "Mean Q"}
        long = name.startswith("Team")
        table.add_column(
            name,
            justify="right" if right else "left",
            overflow="fold" if long else "ellipsis",
            no_wrap=not long,
        )
    for listed in rows:
        row = listed.row
        table.add_row(
            str(row.pk),
            Text(row.phase or "–"),
            "–" if row.submitted_at is None else f"{row.submitted_at:%Y-%m-%d %H:%M}",
            str(row.state),
            f"{listed.shown}{' *' if listed.counts else '  '}",
            Text("\n".join(text for text in (row.team or "–", row.method, listed.kind) if text)),
        )
    return table
