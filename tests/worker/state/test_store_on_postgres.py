"""The store on both databases: the same methods, results and properties."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from scoring.errors import InfrastructureError, OrganizerError
from scoring.scorecard import TaskScore
from tests.worker.harness.postgres_server import Server, binaries, server
from worker.state import (
    Attempt,
    Deposed,
    OutboxKind,
    Outcome,
    State,
    Store,
    leader_lock,
    lock,
    servers,
)

pytestmark = [
    pytest.mark.xdist_group("postgres"),  # one server
    pytest.mark.skipif(binaries() is None, reason="no PostgreSQL server is installed (tests/setup.sh)"),
]
NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    """One server for this module."""
    with server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'worker.db'}"
    running: Server = request.getfixturevalue("postgres")
    return running.url(running.fresh())


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store on that database."""
    store = Store(url)
    yield store
    store.close()


def cell(task: str, q: float | None = 1.5) -> TaskScore:
    """A score with a failed fold."""
    return TaskScore(
        task=task,
        version="v" * 64,
        type="regr",
        row_set="r" * 64,
        folds=(0.25, float("nan"), 0.1),
        mean=0.2,
        std=0.05,
        q=q,
        failed_folds=1,
        seconds=2.5,
    )


def test_a_submission_is_stored_and_moved(store: Store) -> None:
    """Adding twice adds once; a move is conditional; facts of every type are read back unchanged."""
    with store.write() as tx:
        assert tx.add(7, now=NOW, message_phase=3)
        assert not tx.add(7, now=NOW)
        tx.note(7, team="Ω😀 'team'", public_now=True, q_mean=0.1 + 0.2, submitted_at=NOW)
        assert tx.move(7, State.RECEIVED, State.ACKNOWLEDGED)
        assert not tx.move(7, State.RECEIVED, State.ACKNOWLEDGED)
    with store.read() as tx:
        known = tx.get(7)
        assert known is not None
        assert (known.state, known.team, known.public_now, known.baseline) == (
            State.ACKNOWLEDGED,
            "Ω😀 'team'",
            True,
            False,
        )
        assert known.q_mean == 0.1 + 0.2
        assert known.submitted_at == NOW
        assert tx.counts() == {"acknowledged": 1}


def test_a_time_keeps_its_moment(store: Store) -> None:
    """Another time zone gives the same moment; a naive time is refused."""
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-7)))
    with store.write() as tx:
        tx.add(1, now=elsewhere)
    with store.read() as tx:
        known = tx.get(1)
        assert known is not None
        assert known.first_seen_at == NOW
    with pytest.raises((ValueError, sa.exc.StatementError, InfrastructureError)), store.write() as tx:
        tx.note(1, read_at=NOW.replace(tzinfo=None))


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    """An exception undoes everything on either database."""

    def fail() -> None:
        with store.write() as tx:
            tx.add(1, now=NOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with store.read() as tx:
        assert tx.get(1) is None


def test_order_is_the_same_on_both(store: Store) -> None:
    """Unknown submission times come first, then the oldest; cells are ordered by code point, not by a language."""
    with store.write() as tx:
        for pk, minutes in ((1, 5), (2, None), (3, 1)):
            tx.add(pk, now=NOW)
            if minutes is not None:
                tx.note(pk, submitted_at=NOW + timedelta(minutes=minutes))
        tx.save_cells(
            "c" * 64,
            "p" * 64,
            "dev",
            [cell(name) for name in ("b", "A", "a_b", "aB", "é")],
            provenance={},
            now=NOW,
        )
    with store.read() as tx:
        assert [known.pk for known in tx.submissions()] == [2, 3, 1]
        assert [row.task for row in tx.cells("c" * 64, "p" * 64)] == ["A", "aB", "a_b", "b", "é"]


def test_cells_come_back_to_the_bit(store: Store) -> None:
    """Fold scores are read back exactly, including failed ones, and existing cells are kept."""
    with store.write() as tx:
        tx.save_cells("c" * 64, "p" * 64, "dev", [cell("one")], provenance={"x": 1}, now=NOW)
        tx.save_cells("c" * 64, "p" * 64, "dev", [cell("one", q=9.0)], provenance={}, now=NOW)
    with store.read() as tx:
        (row,) = tx.cells("c" * 64, "p" * 64)
        assert row.folds[0] == 0.25
        assert row.folds[1] != row.folds[1]
        assert row.q == 1.5
        assert tx.seconds_per_fold("dev") == pytest.approx(2.5 / 3)


def test_attempts_outbox_alerts_and_facts(store: Store) -> None:
    """Keys increase, there is one open row per kind, and an alert is new once."""
    with store.write() as tx:
        tx.add(1, now=NOW)
        tx.note(1, team_key=4)
        first = tx.open_attempt(1, Attempt.EVALUATE, worker="w", now=NOW)
        second = tx.open_attempt(1, Attempt.EVALUATE, worker="w", now=NOW + timedelta(seconds=1))
        assert second > first
        tx.close_attempt(first, Outcome.DONE, now=NOW + timedelta(seconds=3))
        tx.close_attempt(first, Outcome.DEAD, now=NOW)
        assert [attempt.id for attempt in tx.attempts(open_only=True)] == [second]
        assert tx.attempt_summary() == [("evaluate", "done", 1, 3.0)]
        assert tx.last_turns() == {4: NOW + timedelta(seconds=1)}
        tx.owe(OutboxKind.DELETE, 1, now=NOW, receipt="old")
        tx.owe(OutboxKind.DELETE, 1, now=NOW, receipt="new")
        (owed,) = tx.owed(OutboxKind.DELETE)
        assert owed.receipt == "new"
        tx.raise_alert("k", "code", "text", now=NOW)
        tx.raise_alert("k", "code", "text", now=NOW)
        assert [alert.count for alert in tx.alerts()] == [2]
        tx.set_fact("mode", "pause")
        tx.set_fact("mode", "drain")
        assert tx.fact("mode") == "drain"
        tx.log("did", actor="me", now=NOW, submission=1, detail_of="é")
        assert tx.trail()[0].detail == {"detail_of": "é"}


def test_writers_wait_for_one_another(url: str) -> None:
    """Two stores that read, compute and write lose no update, because the write lock is held from the start."""
    stores = [Store(url), Store(url)]
    with stores[0].write() as tx:
        tx.set_fact("number", "0")

    def count(store: Store) -> None:
        for _ in range(20):
            with store.write() as tx:
                tx.set_fact("number", str(int(tx.fact("number") or 0) + 1))

    threads = [threading.Thread(target=count, args=(store,)) for store in stores for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with stores[1].read() as tx:
        assert tx.fact("number") == "80"
    for store in stores:
        store.close()


def test_a_writer_that_waited_for_the_lock_sees_earlier_writes(postgres: Server) -> None:
    """This holds even on a server whose transactions use a snapshot by default."""
    url = postgres.url(postgres.fresh())
    name = sa.make_url(url).database
    store = Store(url)
    with store.write() as tx:
        tx._connection.exec_driver_sql(
            f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'repeatable read'"
        )
    store.close()
    store = Store(url)
    began, ends = threading.Event(), threading.Event()

    def first() -> None:
        with store.write() as tx:
            began.set()
            ends.wait(200)
            tx.set_fact("count", "1")

    thread = threading.Thread(target=first)
    thread.start()
    began.wait(200)
    releaser = threading.Timer(0.3, ends.set)
    releaser.start()
    with store.write() as tx:
        seen = tx.fact("count")
    thread.join()
    store.close()
    assert seen == "1"


def test_a_reader_sees_one_moment(url: str) -> None:
    """A commit during a reading transaction is not visible in it."""
    reader, writer = Store(url), Store(url)
    with reader.read() as tx:
        assert tx.fact("a") is None
        with writer.write() as other:
            other.set_fact("a", "1")
        assert tx.fact("a") is None
    with reader.read() as tx:
        assert tx.fact("a") == "1"
    reader.close()
    writer.close()


def test_several_starts_at_once_make_the_tables_once(url: str) -> None:
    """The others find them."""
    stores: list[Store] = []
    failures: list[BaseException] = []

    def start() -> None:
        try:
            stores.append(Store(url))
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for store in stores:
        store.close()


def test_a_reader_on_the_server_cannot_write(postgres: Server) -> None:
    """A reading transaction is read-only to the server, too."""
    store = Store(postgres.url(postgres.fresh()))
    with pytest.raises(InfrastructureError), store.read() as tx:
        tx.set_fact("a", "1")
    store.close()


def test_one_leads_until_its_session_ends(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock has one holder, who can be named; the server releases it with the session, and the holder notices."""
    monkeypatch.setattr(lock, "LOOK_S", 0.0)
    name, other = postgres.fresh(), postgres.fresh()
    here, there, elsewhere = (leader_lock(postgres.url(at), Path("/")) for at in (name, name, other))
    assert there.holder() is None
    assert here.take()
    assert here.take()
    assert not there.take()
    assert elsewhere.take()
    for one in (here, there):
        assert f"process {os.getpid()} " in (one.holder() or "")
    with postgres.connect(name) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory'"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
    assert there.take()
    assert not here.held()
    with pytest.raises(Deposed) as lost:
        here.check()
    assert lost.value.code == "leader.lock_lost"
    assert not here.take()
    there.close()
    assert here.take()
    for one in (here, elsewhere):
        one.close()


def test_a_lost_connection_is_made_again(postgres: Server) -> None:
    """After the server has closed all connections, the next transaction works."""
    name = postgres.fresh()
    store = Store(postgres.url(name))
    with postgres.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
    with store.write() as tx:
        tx.set_fact("a", "1")
    store.close()


def test_errors_get_a_sentence(postgres: Server) -> None:
    """A missing server is an infrastructure error, a wrong URL the organizer's; no message contains a password."""
    cases: list[tuple[str, type[Exception]]] = [
        ("postgresql+psycopg://someone:hunter2@127.0.0.1:1/x", InfrastructureError),
        (f"postgresql+psycopg://postgres:hunter2@127.0.0.1:{postgres.port}/no_such", InfrastructureError),
        ("postgresql+psycopg:/hunter2", OrganizerError),
        ("postgresql+nodriver://postgres:hunter2@127.0.0.1/x", OrganizerError),
    ]
    for url, kind in cases:
        with pytest.raises(kind) as caught:
            Store(url)
        assert "hunter2" not in str(caught.value)


def test_an_old_server_is_refused(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version is checked before a table is made."""
    monkeypatch.setattr(servers, "LEAST_VERSION", 99)
    name = postgres.fresh()
    with pytest.raises(OrganizerError) as caught:
        Store(postgres.url(name))
    assert caught.value.code == "state.server_old"
    with postgres.connect(name) as connection:
        row: Any = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert row == (0,)
