"""The durable state: every fact that must survive a crash, and the only code that writes it.

Work happens in transactions: ``with store.write() as tx`` takes the write lock at once (BEGIN IMMEDIATE), so a conditional update inside
it is decided by what is there, not by what was read a moment ago.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, OperationalError

from scoring.errors import InfrastructureError
from scoring.scorecard import TaskScore, folds_from_json, folds_to_json
from worker import schema
from worker.states import TRANSITIONS, Attempt, Errand, Outcome, State

BUSY_TIMEOUT_S = 15


@dataclass(frozen=True, kw_only=True)
class Tracked:
    """A submission as we know it: a row of ``submissions``; the columns are described there."""

    pk: int
    state: State
    first_seen_at: datetime
    message_phase: int | None
    phase_pk: int | None
    phase: str | None
    team_key: int | None
    submitted_at: datetime | None
    input_file: str | None
    public_at_first: bool | None
    team: str | None
    method: str | None
    public_now: bool | None
    baseline: bool
    flagged: bool
    deleted: bool
    remote_status: str | None
    read_at: datetime | None
    not_before: datetime | None
    tries: int
    hold: str | None
    hold_reason: str | None
    running_at: datetime | None
    file_hash: str | None
    file_bytes: int | None
    content_hash: str | None
    q_mean: float | None
    answer: str | None
    posted: str | None
    reposts: int
    scored_at: datetime | None
    answered_at: datetime | None
    superseded_by: int | None
    excluded: str | None
    calls: int

    def waits(self, now: datetime) -> bool:
        """Tell whether it must not be touched yet."""
        return self.not_before is not None and self.not_before > now


@dataclass(frozen=True, kw_only=True)
class Owed:
    """A row of the outbox."""

    id: int
    kind: Errand
    submission: int
    receipt: str | None
    created_at: datetime
    not_before: datetime
    tries: int
    sent_at: datetime | None
    done_at: datetime | None
    last_error: str | None


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A row of ``alerts``: something a person should know, raised until it is resolved."""

    key: str
    code: str
    text: str
    raised_at: datetime
    seen_at: datetime
    count: int
    sent_at: datetime | None
    resolved_at: datetime | None


class Transaction:
    """The verbs of the store, inside one transaction."""

    def __init__(self, connection: sa.Connection, checkpoint: Callable[[str], None]) -> None:
        self._connection = connection
        self._checkpoint = checkpoint
        self.moves: list[str] = []

    # submissions

    def add(self, pk: int, *, now: datetime, message_phase: int | None = None) -> bool:
        """Make a submission durable; tell whether it was unknown."""
        if self.get(pk) is not None:
            return False
        table = schema.submissions
        self._connection.execute(
            table.insert().values(
                pk=pk, state=State.RECEIVED.value, first_seen_at=now, message_phase=message_phase
            )
        )
        self.moves.append(f"new>{State.RECEIVED}")
        return True

    def get(self, pk: int) -> Tracked | None:
        """Return one submission."""
        row = self._connection.execute(
            sa.select(schema.submissions).where(schema.submissions.c.pk == pk)
        ).first()
        return None if row is None else _tracked(row)

    def submissions(self, states: Iterable[State] | None = None) -> list[Tracked]:
        """Return the submissions in some states, oldest first."""
        table = schema.submissions
        query = sa.select(table).order_by(table.c.submitted_at, table.c.pk)
        if states is not None:
            query = query.where(table.c.state.in_([state.value for state in states]))
        return [_tracked(row) for row in self._connection.execute(query)]

    def move(self, pk: int, source: State, target: State, **values: Any) -> bool:
        """Move a submission from one state to another, if it still is where the caller thinks.

        A move clears the back-off and the hold: what held it is over.

        Raises:
            ValueError: If the table of transitions does not know the step; that is a defect.
        """
        if target not in TRANSITIONS[source]:
            raise ValueError(f"no transition {source} -> {target}")
        table = schema.submissions
        cleared = {"not_before": None, "tries": 0, "hold": None, "hold_reason": None}
        result = self._connection.execute(
            table.update()
            .where(table.c.pk == pk, table.c.state == source.value)
            .values({**cleared, **values, "state": target.value})
        )
        if result.rowcount == 1:
            self.moves.append(f"{source}>{target}")
            return True
        return False

    def note(self, pk: int, **values: Any) -> None:
        """Record facts of a submission that are not its state."""
        self._connection.execute(
            schema.submissions.update().where(schema.submissions.c.pk == pk).values(values)
        )

    def count_call(self, pk: int) -> None:
        """Count one EvalAI call spent on this submission alone."""
        table = schema.submissions
        self._connection.execute(table.update().where(table.c.pk == pk).values(calls=table.c.calls + 1))

    def release_all(self) -> None:
        """Let everything that waited for a retry go at once (a restart retries at once); the answer grid stays."""
        table = schema.submissions
        self._connection.execute(table.update().where(table.c.tries > 0).values(not_before=None))
        box = schema.outbox
        self._connection.execute(
            box.update().where(box.c.done_at.is_(None), box.c.tries > 0).values(not_before=box.c.created_at)
        )

    # attempts

    def open_attempt(self, pk: int, kind: Attempt, *, worker: str, now: datetime) -> int:
        """Open an attempt and return its id."""
        result = self._connection.execute(
            schema.attempts.insert().values(submission=pk, kind=kind.value, worker=worker, opened_at=now)
        )
        key = result.inserted_primary_key
        if key is None:
            raise ValueError("the database returned no key")
        return int(key[0])

    def close_attempt(
        self,
        attempt: int,
        outcome: Outcome,
        *,
        now: datetime,
        reason: str = "",
        peak_memory_bytes: int | None = None,
    ) -> None:
        """Close an attempt that is still open with how it ended."""
        table = schema.attempts
        self._connection.execute(
            table.update()
            .where(table.c.id == attempt, table.c.closed_at.is_(None))
            .values(closed_at=now, outcome=outcome.value, reason=reason, peak_memory_bytes=peak_memory_bytes)
        )

    def attempts(self, *, pk: int | None = None, open_only: bool = False) -> list[dict[str, Any]]:
        """Return attempts, oldest first."""
        table = schema.attempts
        query = sa.select(table).order_by(table.c.id)
        if pk is not None:
            query = query.where(table.c.submission == pk)
        if open_only:
            query = query.where(table.c.closed_at.is_(None))
        return [dict(row._mapping) for row in self._connection.execute(query)]

    def attempt_summary(self) -> list[tuple[str, str, int, float]]:
        """Return closed attempts as (kind, outcome, how many, seconds in all)."""
        totals: dict[tuple[str, str], tuple[int, float]] = {}
        table = schema.attempts
        query = sa.select(table).where(table.c.closed_at.is_not(None))
        for row in self._connection.execute(query):
            number, spent = totals.get((row.kind, row.outcome), (0, 0.0))
            totals[row.kind, row.outcome] = (
                number + 1,
                spent + (row.closed_at - row.opened_at).total_seconds(),
            )
        return [(kind, outcome, number, spent) for (kind, outcome), (number, spent) in sorted(totals.items())]

    def last_turns(self) -> dict[int, datetime]:
        """Return for each team when one of its submissions was last taken up for evaluation."""
        table, attempts = schema.submissions, schema.attempts
        query = (
            sa.select(table.c.team_key, sa.func.max(attempts.c.opened_at, type_=schema.Instant()))
            .join(table, table.c.pk == attempts.c.submission)
            .where(attempts.c.kind == Attempt.EVALUATE.value, table.c.team_key.is_not(None))
            .group_by(table.c.team_key)
        )
        return {row[0]: row[1] for row in self._connection.execute(query)}

    # cells

    def save_cells(
        self,
        content_hash: str,
        protocol_hash: str,
        phase: str,
        scores: Iterable[TaskScore],
        *,
        provenance: Mapping[str, Any],
        now: datetime,
    ) -> None:
        """Write score cells; one that is there already stays, since equal keys mean equal scores."""
        known = {(row["task"], row["version"]) for row in self.cells(content_hash, protocol_hash)}
        for score in scores:
            if (score.task, score.version) in known:
                continue
            self._connection.execute(
                schema.cells.insert().values(
                    content_hash=content_hash,
                    task=score.task,
                    version=score.version,
                    protocol_hash=protocol_hash,
                    phase=phase,
                    type=score.type,
                    row_set=score.row_set,
                    folds=json.dumps(folds_to_json(score.folds)),
                    mean=score.mean,
                    std=score.std,
                    q=score.q,
                    failed_folds=score.failed_folds,
                    seconds=score.seconds,
                    scored_at=now,
                    provenance=json.dumps(dict(provenance), sort_keys=True),
                )
            )

    def cells(self, content_hash: str, protocol_hash: str) -> list[dict[str, Any]]:
        """Return one row of the score matrix."""
        table = schema.cells
        query = (
            sa.select(table)
            .where(table.c.content_hash == content_hash, table.c.protocol_hash == protocol_hash)
            .order_by(table.c.task)
        )
        return [_cell(row) for row in self._connection.execute(query)]

    def all_cells(self) -> list[dict[str, Any]]:
        """Return the whole score matrix, oldest cells first."""
        return [
            _cell(row)
            for row in self._connection.execute(sa.select(schema.cells).order_by(schema.cells.c.scored_at))
        ]

    def matrix(self, protocol_hash: str) -> dict[str, dict[tuple[str, str], dict[str, Any]]]:
        """Return all cells of a protocol: content hash to (task, version) to cell."""
        table = schema.cells
        rows: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
        for row in self._connection.execute(sa.select(table).where(table.c.protocol_hash == protocol_hash)):
            cell = _cell(row)
            rows.setdefault(cell["content_hash"], {})[cell["task"], cell["version"]] = cell
        return rows

    def seconds_per_fold(self, phase: str) -> float | None:
        """Return what one fold of one task has cost on average, None before anything was scored."""
        table = schema.cells
        query = sa.select(table.c.seconds, table.c.folds).where(table.c.phase == phase)
        costs = [row.seconds / max(1, len(json.loads(row.folds))) for row in self._connection.execute(query)]
        return sum(costs) / len(costs) if costs else None

    # outbox

    def owe(
        self,
        kind: Errand,
        pk: int,
        *,
        now: datetime,
        not_before: datetime | None = None,
        receipt: str | None = None,
    ) -> None:
        """Put something into the outbox; one open row per submission and kind, a delete takes the newest receipt."""
        table = schema.outbox
        values = {"not_before": not_before or now, "receipt": receipt, "tries": 0, "created_at": now}
        result = self._connection.execute(
            table.update()
            .where(table.c.kind == kind.value, table.c.submission == pk, table.c.done_at.is_(None))
            .values(values)
        )
        if result.rowcount == 0:
            self._connection.execute(table.insert().values(kind=kind.value, submission=pk, **values))

    def owed(self, kind: Errand | None = None, pk: int | None = None) -> list[Owed]:
        """Return what is still owed, the earliest due first."""
        table = schema.outbox
        query = sa.select(table).where(table.c.done_at.is_(None)).order_by(table.c.not_before, table.c.id)
        if kind is not None:
            query = query.where(table.c.kind == kind.value)
        if pk is not None:
            query = query.where(table.c.submission == pk)
        return [Owed(**{**row._mapping, "kind": Errand(row.kind)}) for row in self._connection.execute(query)]

    def sending(self, owed: int, *, now: datetime) -> None:
        """Record that the first byte is about to leave."""
        self._connection.execute(schema.outbox.update().where(schema.outbox.c.id == owed).values(sent_at=now))

    def settled(self, owed: int, *, now: datetime) -> None:
        """Record that the other side has it."""
        self._connection.execute(schema.outbox.update().where(schema.outbox.c.id == owed).values(done_at=now))

    def settle_all(self, kind: Errand, pk: int, *, now: datetime) -> None:
        """Close whatever is owed of this kind: it is no longer wanted."""
        table = schema.outbox
        self._connection.execute(
            table.update()
            .where(table.c.kind == kind.value, table.c.submission == pk, table.c.done_at.is_(None))
            .values(done_at=now)
        )

    def postpone(self, owed: int, *, not_before: datetime, error: str) -> None:
        """Count a failed try and wait."""
        table = schema.outbox
        self._connection.execute(
            table.update()
            .where(table.c.id == owed)
            .values(not_before=not_before, tries=table.c.tries + 1, last_error=error)
        )

    # boards and phases

    def boards(self, phase: str) -> list[str]:
        """Return the JSON documents of a phase's boards in sequence."""
        table = schema.boards
        query = sa.select(table.c.document).where(table.c.phase == phase).order_by(table.c.sequence)
        return [row[0] for row in self._connection.execute(query)]

    def add_board(self, phase: str, sequence: int, document: str, *, made_at: datetime) -> None:
        """Append a board to the history."""
        self._connection.execute(
            schema.boards.insert().values(phase=phase, sequence=sequence, document=document, made_at=made_at)
        )

    def phase_record(self, phase: str) -> dict[str, Any] | None:
        """Return what a phase's scores stand on: protocol hash, {task: version}, frozen_at."""
        row = self._connection.execute(sa.select(schema.phases).where(schema.phases.c.phase == phase)).first()
        return None if row is None else {**row._mapping, "tasks": json.loads(row.tasks)}

    def record_phase(self, phase: str, *, protocol_hash: str, tasks: Mapping[str, str]) -> None:
        """Say what a phase's scores stand on from now on."""
        values = {"protocol_hash": protocol_hash, "tasks": json.dumps(dict(tasks), sort_keys=True)}
        table = schema.phases
        if (
            self._connection.execute(table.update().where(table.c.phase == phase).values(values)).rowcount
            == 0
        ):
            self._connection.execute(table.insert().values(phase=phase, **values))

    def freeze_phase(self, phase: str, *, at: datetime | None) -> None:
        """Freeze a phase's board, or thaw it with None."""
        self._connection.execute(
            schema.phases.update().where(schema.phases.c.phase == phase).values(frozen_at=at)
        )

    def has_cells(self, phase: str) -> bool:
        """Tell whether anything of a phase was ever scored."""
        query = sa.select(sa.exists().where(schema.cells.c.phase == phase))
        return bool(self._connection.execute(query).scalar())

    def choices(self, phase: str) -> dict[int, int]:
        """Return the organizer's choices: team key to submission."""
        query = sa.select(schema.choices).where(schema.choices.c.phase == phase)
        return {row.team_key: row.submission for row in self._connection.execute(query)}

    def choose(self, phase: str, team_key: int, submission: int, reason: str) -> None:
        """Let a submission count for a team, whatever the rule says."""
        table = schema.choices
        self._connection.execute(table.delete().where(table.c.phase == phase, table.c.team_key == team_key))
        self._connection.execute(
            table.insert().values(phase=phase, team_key=team_key, submission=submission, reason=reason)
        )

    # alerts, audit, facts

    def raise_alert(self, key: str, code: str, text: str, *, now: datetime) -> bool:
        """Record something that needs a person; tell whether it is news."""
        table = schema.alerts
        row = self._connection.execute(sa.select(table).where(table.c.key == key)).first()
        if row is None:
            self._connection.execute(
                table.insert().values(key=key, code=code, text=text, raised_at=now, seen_at=now, count=1)
            )
            return True
        again = row.resolved_at is not None
        values: dict[str, Any] = {"code": code, "text": text, "seen_at": now, "count": table.c["count"] + 1}
        if again:
            values |= {"raised_at": now, "sent_at": None, "resolved_at": None, "count": 1}
        self._connection.execute(table.update().where(table.c.key == key).values(values))
        return again

    def resolve_alert(self, key: str, *, now: datetime) -> None:
        """Record that it is over."""
        table = schema.alerts
        self._connection.execute(
            table.update().where(table.c.key == key, table.c.resolved_at.is_(None)).values(resolved_at=now)
        )

    def alerts(self, *, unsent_only: bool = False) -> list[Alert]:
        """Return unresolved alerts, the oldest first."""
        table = schema.alerts
        query = sa.select(table).where(table.c.resolved_at.is_(None)).order_by(table.c.raised_at)
        if unsent_only:
            query = query.where(table.c.sent_at.is_(None))
        return [Alert(**row._mapping) for row in self._connection.execute(query)]

    def alert_sent(self, key: str, *, now: datetime) -> None:
        """Record that the organizer was told."""
        self._connection.execute(schema.alerts.update().where(schema.alerts.c.key == key).values(sent_at=now))

    def log(
        self, action: str, *, actor: str, now: datetime, submission: int | None = None, **detail: Any
    ) -> None:
        """Append to the audit trail."""
        self._connection.execute(
            schema.audit.insert().values(
                at=now,
                actor=actor,
                action=action,
                submission=submission,
                detail=json.dumps(detail, sort_keys=True, default=str),
            )
        )

    def trail(self) -> list[dict[str, Any]]:
        """Return the audit trail, oldest first."""
        rows = self._connection.execute(sa.select(schema.audit).order_by(schema.audit.c.id))
        return [{**row._mapping, "detail": json.loads(row.detail)} for row in rows]

    def fact(self, name: str) -> str | None:
        """Return a named fact."""
        return self._connection.execute(
            sa.select(schema.facts.c.value).where(schema.facts.c.name == name)
        ).scalar()

    def set_fact(self, name: str, value: str | None) -> None:
        """Set or remove a named fact."""
        table = schema.facts
        self._connection.execute(table.delete().where(table.c.name == name))
        if value is not None:
            self._connection.execute(table.insert().values(name=name, value=value))

    def counts(self) -> dict[str, int]:
        """Return how many submissions are in each state."""
        table = schema.submissions
        rows = self._connection.execute(sa.select(table.c.state, sa.func.count()).group_by(table.c.state))
        return {row[0]: row[1] for row in rows}


class Store:
    """The database.

    Args:
        url: SQLAlchemy URL.
        checkpoint: Called with the name of every transition before and after it is committed; tests kill the process there.
    """

    def __init__(self, url: str, *, checkpoint: Callable[[str], None] = lambda _: None) -> None:
        prefix = "sqlite:///"
        if url.startswith(prefix):
            Path(url.removeprefix(prefix)).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._engine = sa.create_engine(
            url, connect_args={"timeout": BUSY_TIMEOUT_S} if url.startswith("sqlite") else {}
        )
        self._checkpoint = checkpoint
        if url.startswith("sqlite"):
            event.listen(self._engine, "connect", _prepare_sqlite)
            event.listen(self._engine, "begin", _begin_sqlite)
        with _typed():
            schema.metadata.create_all(self._engine)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open a transaction that holds the write lock from its first moment and commits at the end.

        Raises:
            InfrastructureError: If the database is locked, full or damaged.
        """
        with (
            _typed(),
            self._engine.connect().execution_options(neuco_write=True) as connection,
            connection.begin(),
        ):
            transaction = Transaction(connection, self._checkpoint)
            yield transaction
            for move in transaction.moves:
                self._checkpoint(f"before {move}")
        for move in transaction.moves:
            self._checkpoint(f"after {move}")

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a transaction that sees one state of the database and changes nothing."""
        with _typed(), self._engine.connect() as connection, connection.begin():
            yield Transaction(connection, self._checkpoint)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


@contextmanager
def _typed() -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        raise InfrastructureError(
            f"The state database failed: {error.orig}.",
            cure="Look at disk space and permissions.",
            code="state.database",
        ) from error
    except DBAPIError as error:
        raise InfrastructureError(
            f"The state database failed: {type(error).__name__}.", code="state.database"
        ) from error


def _prepare_sqlite(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # we begin transactions ourselves, see _begin_sqlite
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("neuco_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _tracked(row: Any) -> Tracked:
    return Tracked(**{**row._mapping, "state": State(row.state)})


def _cell(row: Any) -> dict[str, Any]:
    return {**row._mapping, "folds": folds_from_json(json.loads(row.folds))}
