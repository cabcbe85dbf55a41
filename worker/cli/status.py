"""``neuco-worker status``: what needs attention first, then the state of everything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from scoring.printable import count_of, name_some
from worker.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

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
    """Show what needs attention, then worker, submissions, last poll, last push and token expiry.

    Without the EvalAI token, it cannot show when that expires.

    Example: `neuco-worker status --config challenge.yaml`
    """
    from worker.challenge.configuration import load
    from worker.cli.terminal import Console

    configuration = load(config)
    if json_output:
        print(json.dumps(_read(configuration).to_json(), indent=2, sort_keys=True))
    else:
        Console(soft_wrap=True, highlight=False).print(
            _page(configuration.challenge.title, _read(configuration))
        )


@dataclass(frozen=True, kw_only=True)
class View:
    """What is known at one moment.

    Attributes:
        state: The content of the database.
        unknown: Why the token's expiry date is unknown.
        problem: The problem that keeps the state from being written, if any.
        differing: Differences between files and settings and the recorded phases.
        awaited: Public values for which phases wait.
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
        told = None if self.problem is None else {"code": self.problem.code, "text": self.problem.message}
        return self.state.to_json() | {
            "token_expiry_unknown": self.unknown,
            "problem": told,
            "differences": [asdict(found) for found in self.differing],
            "awaited": [
                {"phase": draw.phase, "source": draw.source, "round": draw.round, "at": draw.at.isoformat()}
                for draw in self.awaited
            ],
        }


def _read(configuration: Configuration) -> View:
    """Read everything that is shown."""
    from worker.runtime.files import FileStore
    from worker.runtime.storage import below_reserve, fault
    from worker.state import Store, leader_lock
    from worker.state.status import read_status

    token_expires, unknown = _token_expiry(configuration)
    now = datetime.now(UTC)
    try:
        store = Store(configuration.database_url)
    except InfrastructureError as error:
        raise fault(configuration.state_dir) or error from None
    try:
        with closing(leader_lock(configuration.database_url, configuration.state_dir)) as lock:
            led = lock.held()
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
    return View(state=state, unknown=unknown, problem=problem, differing=differing, awaited=awaited, now=now)


def _token_expiry(configuration: Configuration) -> tuple[datetime | None, str | None]:
    """Return when the EvalAI token expires, or why that is unknown."""
    from worker.evalai import token_expiry

    try:
        token = configuration.secret(configuration.evalai.token, "evalai.token").get_secret_value()
    except OrganizerError as error:
        return None, error.sentence
    expiry = token_expiry(token)
    return expiry, None if expiry is not None else "the token does not say"


def _differing(configuration: Configuration, store: Store) -> list[Difference]:
    """Return the differences between files and settings and the recorded phases; nothing if they cannot be determined."""
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
    except NeucoError:  # reported by the doctor and by the next start
        return []


def _awaited(store: Store) -> list[Draw]:
    """Return the public values for which phases wait; nothing is scored in these phases before."""
    from worker.fairness.draws import waiting

    with store.read() as tx:
        return sorted(waiting(tx.public_commitments()).values(), key=lambda draw: (draw.at, draw.phase))


def _needs(
    state: Status, problem: InfrastructureError | None, differing: Sequence[Difference], now: datetime
) -> list[str]:
    """Return what needs attention, the most urgent first."""
    needs = [] if problem is None else [f"{problem.message} ({problem.code})"]
    needs += [f"{alert.text} ({alert.code}, since {_ago(alert.raised_at, now)})" for alert in state.alerts]
    if state.retried:
        named = name_some([str(pk) for pk in state.retried])
        needs.append(
            f"The last try failed for {count_of(len(state.retried), 'submission')} ({named}). The worker tries again."
        )
    needs += [f"{found.sentence} {found.cure}" for found in differing]
    if state.token_expires is not None and state.token_expires - now < SOON:
        needs.append(
            f"The EvalAI token expires on {state.token_expires:%Y-%m-%d}. Renew it on your EvalAI profile page."
        )
    return needs


def _page(title: str, view: View) -> Group:
    """Return what is shown, the most urgent first."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    state, now = view.state, view.now
    lines: list[RenderableType] = [Text(title, style="bold"), Text()]
    needs = _needs(state, view.problem, view.differing, now)
    if needs:
        lines.append(Text("Needs attention", style="bold red"))
        lines += [Text(f"  • {need}") for need in needs]
    else:
        lines.append(Text("Nothing needs attention.", style="green"))
    table = Table(show_header=False, box=None, padding=(0, 2))
    counts = ", ".join(f"{count} {name}" for name, count in sorted(state.states.items())) or "none yet"
    oldest = (
        ""
        if state.oldest_waiting_s is None
        else f", the oldest for {timedelta(seconds=round(state.oldest_waiting_s))}"
    )
    table.add_row("Worker", _leader(state.leader, now))
    table.add_row("Submissions", counts)
    table.add_row("Waiting for an answer", f"{state.waiting}{oldest}")
    for draw in view.awaited:
        number = "" if draw.round is None else f", round {draw.round}"
        left = f"in {_span(draw.at - now)}" if draw.at > now else "any moment now"
        table.add_row(
            f"Phase {draw.phase} waits",
            f"for the public value of {draw.source}{number}, {left}; until then, submissions are downloaded but not scored",
        )
    table.add_row("On hold", ", ".join(str(pk) for pk in state.held) or "none")
    table.add_row("To send to EvalAI", f"{state.owed} call{'' if state.owed == 1 else 's'}")
    table.add_row("Last poll of the queue", _ago(state.last_poll, now))
    table.add_row("Last comparison with EvalAI", _ago(state.last_reconcile, now))
    table.add_row("Last push", _ago(state.last_push, now))
    table.add_row(
        "Token expires",
        f"{state.token_expires:%Y-%m-%d}" if state.token_expires else f"unknown: {view.unknown}",
    )
    table.add_row("Free disk space", f"{state.free_bytes / 1e9:.1f} GB")
    if state.calls_per_submission is not None:
        table.add_row("EvalAI calls per submission", f"{state.calls_per_submission:.1f}")
    return Group(*lines, Text(), table)


def _leader(leader: Leader | None, now: datetime) -> str:
    if leader is None:
        return "not running"
    since = _ago(datetime.fromisoformat(leader.since), now)
    return f"process {leader.process} on {leader.host}, started {since}"


def _span(length: timedelta) -> timedelta:
    return timedelta(seconds=round(length.total_seconds()))


def _ago(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return "never"
    return f"{timedelta(seconds=round((now - moment).total_seconds()))} ago"
