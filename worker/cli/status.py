"""``neuco-worker status`` and ``submissions``: what needs attention first, and every submission with its state."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from scoring.errors import NeucoError, OrganizerError
from scoring.printable import count_of, name_some
from worker.cli.terminal import ConfigOption, Console, JsonOption, open_session

if TYPE_CHECKING:
    from worker.challenge.configuration import Configuration
    from worker.challenge.setups import RecordDifference
    from worker.fairness.commitments import Draw
    from worker.organizer.listing import ListedSubmission
    from worker.organizer.session import OrganizerSession
    from worker.state import Alert, Leader, Pause


SOON = timedelta(days=30)
UNKNOWN = "unknown: "


def status(
    *,
    config: ConfigOption,
    json_output: JsonOption = False,
) -> None:
    """Show a pause, what needs attention, then worker, submissions, last poll, last push and token expiry.

    Without the EvalAI token, it cannot show when that expires.

    Next: `neuco-worker submissions` lists the submissions; the runbook says what to do about each alert.

    Example: `neuco-worker status --config challenge.yaml`
    """
    with open_session(config) as session:
        state = _read_status(session)
    if json_output:
        from pydantic import TypeAdapter

        print(json.dumps(TypeAdapter(Any).dump_python(state, mode="json"), indent=2, sort_keys=True))
        return
    console = Console(soft_wrap=True, highlight=False)
    for part in _page(session.configuration.challenge.title, state):
        console.print(part)


@dataclass(frozen=True, kw_only=True)
class ChallengeStatus:
    """What an organizer wants to know at one moment.

    Attributes:
        now: The time.
        paused: What the organizers have stopped; None if nothing.
        leader: The daemon or command that leads; None if nobody does.
        states: How many submissions are in each state.
        waiting: Submissions whose participants wait for an answer; a new answer after a rescore is none of them.
        oldest_waiting_s: Age of the oldest of them in seconds, by its submission time.
        waiting_for: What they wait for: pk to reason, the oldest first.
        held: Submissions on hold for a person: pk to reason.
        holds: How many submissions are on hold for each kind of reason: its code to their number.
        retried: Submissions that wait for the next try after a failed call, download or evaluation.
        pending: Answers that are decided, and that EvalAI does not have yet.
        alerts: What needs a person.
        last_poll: When the queue was last polled.
        last_reconcile: When the listing was last compared.
        last_push: When the board was last pushed.
        token_expires: When the EvalAI token expires; None for tokens without an expiry date.
        token_expiry_unknown: Why that is unknown.
        free_bytes: Free disk space for stored files.
        problem: Code and text of the problem that keeps the state from being written, if any.
        differences: Between files and settings and the recorded phases.
        awaited: Public values for which phases wait; nothing is scored in these phases before.
        fingerprint: The fingerprint of the challenge's key, or why that is unknown.
    """

    now: datetime
    paused: Pause | None
    leader: Leader | None
    states: dict[str, int]
    waiting: int
    oldest_waiting_s: float | None
    waiting_for: dict[int, str]
    held: dict[int, str | None]
    holds: dict[str, int]
    retried: Sequence[int]
    pending: int
    alerts: Sequence[Alert]
    last_poll: datetime | None
    last_reconcile: datetime | None
    last_push: datetime | None
    token_expires: datetime | None
    token_expiry_unknown: str | None
    free_bytes: int
    problem: Mapping[str, str] | None
    differences: Sequence[RecordDifference]
    awaited: Sequence[Draw]
    fingerprint: str


def _read_status(session: OrganizerSession) -> ChallengeStatus:
    """Read everything that is shown."""
    from worker.fairness import commitments
    from worker.fetching.housekeeping import below_reserve
    from worker.intake.waiting import reasons
    from worker.runtime.storage import fault
    from worker.state import ACTIVE, DECIDED

    configuration, now = session.configuration, session.now
    token_expires, unknown = _token_expiry(configuration)
    with closing(session.leader_lock()) as lock:
        led = lock.held()
    with session.store.read() as tx:
        active, alerts = tx.submissions(ACTIVE), tx.alerts()
        leader, states = tx.last_leader() if led else None, tx.counts()
        awaited, paused = commitments.waiting(tx).values(), tx.pause()
        polled_at, reconciled_at, pushed_at = (
            None if (text := tx.fact(name)) is None else datetime.fromisoformat(text)
            for name in ("polled_at", "reconciled_at", "pushed_at")
        )
        waiting = [row for row in active if row.posted is None]
        waits = reasons(tx, configuration, waiting, now)
    since = [row.submitted_at or row.first_seen_at for row in waiting]
    free_bytes, problem = session.files.free_bytes(), fault(configuration.state_dir)
    if not any(alert.code == "disk.reserve" for alert in alerts):
        problem = problem or below_reserve(free_bytes, configuration.submission.disk_reserve_gigabytes)
    return ChallengeStatus(
        now=now,
        paused=paused,
        leader=leader,
        states=states,
        waiting=len(waiting),
        oldest_waiting_s=(now - min(since)).total_seconds() if since else None,
        waiting_for=waits,
        held={row.pk: row.hold_reason or row.hold for row in active if row.hold is not None},
        holds=dict(sorted(Counter(row.hold for row in active if row.hold is not None).items())),
        retried=sorted(row.pk for row in active if row.tries > 0 and row.hold is None),
        pending=sum(row.state in DECIDED for row in active),
        alerts=alerts,
        last_poll=polled_at,
        last_reconcile=reconciled_at,
        last_push=pushed_at,
        token_expires=token_expires,
        token_expiry_unknown=unknown,
        free_bytes=free_bytes,
        problem=None if problem is None else {"code": problem.code, "text": problem.message},
        differences=_differences(session),
        awaited=sorted(awaited, key=lambda draw: (draw.at, draw.phase)),
        fingerprint=_fingerprint(session),
    )


def _fingerprint(session: OrganizerSession) -> str:
    """Return the fingerprint of the challenge's key, or why that is unknown."""
    from worker.challenge.signing import fingerprint, first_signer

    try:
        with session.store.read() as tx:
            return fingerprint(first_signer(tx, session.configuration).public)
    except OrganizerError as error:
        return f"{UNKNOWN}{error.message}"


def _token_expiry(configuration: Configuration) -> tuple[datetime | None, str | None]:
    """Return when the EvalAI token expires, or why that is unknown."""
    from worker.daemon import make_client

    try:
        with closing(make_client(configuration)) as client:
            expiry = client.expiry
    except OrganizerError as error:
        return None, error.message
    return expiry, None if expiry is not None else "the token does not say"


def _differences(session: OrganizerSession) -> list[RecordDifference]:
    """Return the differences between files and settings and the recorded phases; nothing if they cannot be determined."""
    from worker.challenge.setups import all_differences, read_secret

    configuration = session.configuration
    try:
        secret = read_secret(configuration)
        with session.store.read() as tx:
            return list(all_differences(tx, configuration, secret))
    except NeucoError:  # reported by the doctor and by the next start
        return []


def _needs(state: ChallengeStatus) -> list[str]:
    """Return what needs attention, the most urgent first; a pause is said before."""
    from worker.state import PAUSE

    needs = [] if state.problem is None else ["{text} ({code})".format(**state.problem)]
    needs += [
        f"{alert.text} ({alert.code}, since {_ago(alert.raised_at, state.now)})"
        for alert in state.alerts
        if alert.key != PAUSE
    ]
    if state.retried:
        named = name_some([str(pk) for pk in state.retried])
        needs.append(
            f"The last try failed for {count_of(len(state.retried), 'submission')} ({named}). The worker tries again."
        )
    needs += [f"{difference.sentence} {difference.hint}" for difference in state.differences]
    if state.fingerprint.startswith(UNKNOWN):
        needs.append(state.fingerprint.removeprefix(UNKNOWN))
    if state.token_expires is not None and state.token_expires - state.now < SOON:
        expires = "expires" if state.now < state.token_expires else "expired"
        needs.append(
            f"The EvalAI token {expires} on {state.token_expires:%Y-%m-%d}. Renew it on your EvalAI profile page."
        )
    return needs


def _page(title: str, state: ChallengeStatus) -> list[RenderableType]:
    """Return what is shown, the most urgent first."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _rows(state):
        table.add_row(name, Text(text))
    needs = _needs(state)
    heading = ("Needs attention", "bold red") if needs else ("Nothing needs attention.", "green")
    lines = [Text(title, style="bold"), Text(), Text(*heading), *(Text(f"  • {need}") for need in needs)]
    paused = [Text(state.paused.sentence, style="bold red"), Text()] if state.paused else []
    return [*paused, *lines, Text(), table]


def _rows(state: ChallengeStatus) -> list[tuple[str, str]]:
    """Return the names and values of the table."""
    from worker.intake.waiting import summary

    now, leader = state.now, state.leader
    expires, oldest_s = state.token_expires, state.oldest_waiting_s
    oldest = "" if oldest_s is None else f", the oldest for {timedelta(seconds=round(oldest_s))}"
    worker = "not running"
    if leader is not None:
        since = _ago(datetime.fromisoformat(leader.since), now)
        worker = f"process {leader.process} on {leader.host}, started {since}"
    awaited = [
        (
            f"Phase {draw.phase} waits",
            f"for round {draw.round} of {draw.chain.name},"
            f" {f'in {_span(draw.at - now)}' if draw.at > now else 'any moment now'};"
            " until then, submissions are downloaded but not scored",
        )
        for draw in state.awaited
    ]
    waits = [("They wait", summary(state.waiting_for))] if state.waiting_for else []
    reasons = ", ".join(f"{code}: {number}" for code, number in state.holds.items())
    on_hold = f"{name_some([str(pk) for pk in state.held], 20)} ({reasons})" if state.held else "none"
    return [
        ("Worker", worker),
        (
            "Submissions",
            ", ".join(f"{count} {name}" for name, count in sorted(state.states.items())) or "none yet",
        ),
        ("Waiting for an answer", f"{state.waiting}{oldest}"),
        *waits,
        *awaited,
        ("On hold", on_hold),
        ("To send to EvalAI", count_of(state.pending, "answer")),
        ("Last poll of the queue", _ago(state.last_poll, now)),
        ("Last comparison with EvalAI", _ago(state.last_reconcile, now)),
        ("Last push", _ago(state.last_push, now)),
        ("Fingerprint of the key", state.fingerprint.partition(": ")[0]),
        ("Token expires", f"{expires:%Y-%m-%d}" if expires else f"unknown: {state.token_expiry_unknown}"),
        ("Free disk space", f"{state.free_bytes / 1e9:.1f} GB"),
    ]


def _span(length: timedelta) -> timedelta:
    """Return a span for people; never a negative one, even if the clock was set back."""
    return timedelta(seconds=max(0, round(length.total_seconds())))


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
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the newest so many, the newest first.", metavar="N")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """List submissions with number, team, phase, state, mean Q, and what they are waiting for.

    The numbers are EvalAI's. A star marks the submissions that count; the last column says what became of the others.

    Next: `neuco-worker challenge retry` for a submission on hold.

    Example: `neuco-worker submissions --phase dev --state held --config challenge.yaml`
    """
    from worker.organizer import listing

    with open_session(config) as session:
        rows = listing.submissions(session, phase=phase, team=team, state=state, limit=limit)
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
    console.print(count_of(len(rows), "submission"), style="dim", markup=False)


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
        team = "–" if row.team_key is None else f"{row.team or '–'} (team {row.team_key})"
        table.add_row(
            str(row.pk),
            Text(row.phase or "–"),
            "–" if row.submitted_at is None else f"{row.submitted_at:%Y-%m-%d %H:%M}",
            str(row.state),
            f"{listed.shown}{' *' if listed.counts else '  '}",
            Text("\n".join(text for text in (team, row.method, listed.kind) if text)),
        )
    return table
