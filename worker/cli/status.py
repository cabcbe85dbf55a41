"""``neuco-worker status``: what needs attention first, then the state of everything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from worker.challenge.configuration import Configuration
    from worker.challenge.differences import Difference
    from worker.fairness.draws import Draw
    from worker.state import Leader, Store
    from worker.state.status import Status

SOON = timedelta(days=30)


def status(
    *,
    config: ConfigOption,
    json_output: JsonOption = False,
) -> None:
    """Show the queue, states, last poll, last push and token expiry; what needs attention comes first.

    It only reads the state, so it needs no token; without one it cannot say when the token ends.

    Example: neuco-worker status --config challenge.yaml --json
    """
    from worker.challenge.configuration import load
    from worker.runtime.files import FileStore
    from worker.runtime.storage import below_reserve, fault
    from worker.state import Store, leader_lock
    from worker.state.status import read_status

    configuration = load(config)
    token_expires, unknown = _token_expiry(configuration)
    now = datetime.now(UTC)
    try:
        store = Store(configuration.database_url)
    except InfrastructureError as error:
        raise fault(configuration.state_dir) or error from None
    try:
        with closing(leader_lock(configuration.database_url, configuration.state_dir)) as lock:
            led = lock.holder() is not None
        state = read_status(
            store,
            now=now,
            led=led,
            token_expires=token_expires,
            free_bytes=FileStore(configuration.state_dir).free_bytes(),
        )
        differing = _differing(configuration, store)
        awaited = _awaited(store)
    finally:
        store.close()
    problem = fault(configuration.state_dir)
    if not any(alert.code == "disk.reserve" for alert in state.alerts):
        reserve = configuration.submission.disk_reserve_gigabytes
        problem = problem or below_reserve(state.free_bytes, reserve)
    if json_output:
        told = None if problem is None else {"code": problem.code, "text": problem.message}
        document = state.to_json() | {
            "token_expiry_unknown": unknown,
            "problem": told,
            "differences": [asdict(found) for found in differing],
            "awaited": [
                {"phase": draw.phase, "source": draw.source, "round": draw.round, "at": draw.at.isoformat()}
                for draw in awaited
            ],
        }
        print(json.dumps(document, indent=2, sort_keys=True))
        return
    _show(
        configuration.challenge.title,
        state,
        unknown,
        _needs(state, problem, differing, now),
        awaited=awaited,
        now=now,
    )


def _token_expiry(configuration: Configuration) -> tuple[datetime | None, str | None]:
    """Return when the EvalAI token ends, or why that is unknown here."""
    from worker.evalai import token_expiry

    try:
        token = configuration.secret(configuration.evalai.token, "evalai.token").get_secret_value()
    except OrganizerError as error:
        return None, error.sentence
    expiry = token_expiry(token)
    return expiry, None if expiry is not None else "The token does not say when it ends."


def _differing(configuration: Configuration, store: Store) -> list[Difference]:
    """Return what files and settings say otherwise than the phases on record; nothing where that cannot be told."""
    from worker.challenge.differences import differences
    from worker.challenge.files import read_secret

    try:
        secret = read_secret(configuration)
        with store.read() as tx:
            return [
                found
                for name in configuration.phases
                for found in differences(tx, configuration, name, secret)
            ]
    except NeucoError:  # the doctor and the next start tell of it
        return []


def _awaited(store: Store) -> list[Draw]:
    """Return the public values that phases wait for; nothing is scored in these before."""
    from worker.fairness.draws import waiting

    with store.read() as tx:
        return sorted(waiting(tx.public_commitments()).values(), key=lambda draw: (draw.at, draw.phase))


def _needs(
    state: Status, problem: InfrastructureError | None, differing: Sequence[Difference], now: datetime
) -> list[str]:
    """Say what needs attention, the most urgent first."""
    needs = [] if problem is None else [f"{problem.message} ({problem.code})"]
    needs += [f"{alert.text} ({alert.code}, since {_ago(alert.raised_at, now)})" for alert in state.alerts]
    needs += [f"{found.sentence} {found.cure}" for found in differing]
    if state.token_expires is not None and state.token_expires - now < SOON:
        needs.append(
            f"The EvalAI token ends on {state.token_expires:%Y-%m-%d}; renew it in EvalAI's profile page."
        )
    return needs


def _show(
    title: str,
    state: Status,
    unknown: str | None,
    needs: Sequence[str],
    *,
    awaited: Sequence[Draw],
    now: datetime,
) -> None:
    from rich.table import Table

    from worker.cli.terminal import Console

    console = Console(soft_wrap=True, highlight=False)
    console.print(f"[bold]{title}[/bold]", markup=True)
    if needs:
        console.print("\nNeeds attention", style="bold red")
        for need in needs:
            console.print(f"  • {need}", markup=False)
    else:
        console.print("\nNothing needs attention.", style="green")
    table = Table(show_header=False, box=None, padding=(0, 2))
    counts = ", ".join(f"{count} {name}" for name, count in sorted(state.states.items())) or "none yet"
    oldest = (
        ""
        if state.oldest_waiting_s is None
        else f", the oldest since {timedelta(seconds=round(state.oldest_waiting_s))}"
    )
    table.add_row("Leader", _leader(state.leader, now))
    table.add_row("Submissions", counts)
    table.add_row("Waiting", f"{state.waiting}{oldest}")
    for draw in awaited:
        number = "" if draw.round is None else f", round {draw.round}"
        left = f"in {_span(draw.at - now)}" if draw.at > now else "any moment now"
        table.add_row(f"Phase {draw.phase} waits", f"for {draw.source}{number}, {left}; files are fetched")
    table.add_row("Held", ", ".join(str(pk) for pk in state.held) or "none")
    table.add_row("Outbox", f"{state.owed} thing{'' if state.owed == 1 else 's'} owed to EvalAI")
    table.add_row("Last look at the queue", _ago(state.last_poll, now))
    table.add_row("Last comparison with EvalAI", _ago(state.last_reconcile, now))
    table.add_row("Last push", _ago(state.last_push, now))
    table.add_row(
        "Token ends", f"{state.token_expires:%Y-%m-%d}" if state.token_expires else f"unknown: {unknown}"
    )
    table.add_row("Free disk", f"{state.free_bytes / 1e9:.1f} GB")
    if state.calls_per_submission is not None:
        table.add_row("EvalAI calls per submission", f"{state.calls_per_submission:.1f}")
    console.print()
    console.print(table)


def _leader(leader: Leader | None, now: datetime) -> str:
    if leader is None:
        return "none: no worker runs"
    since = _ago(datetime.fromisoformat(leader.since), now)
    return f"process {leader.process} on {leader.host}, since {since}"


def _span(length: timedelta) -> timedelta:
    return timedelta(seconds=round(length.total_seconds()))


def _ago(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return "never"
    return f"{timedelta(seconds=round((now - moment).total_seconds()))} ago"
