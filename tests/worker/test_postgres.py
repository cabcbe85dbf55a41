"""What is peculiar to a state on PostgreSQL: locks, snapshots, lost connections, and a daemon on another machine that takes over.

That the store's methods give the same results on both databases is tested in ``state/``.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import LiteralString

import psutil
import pytest
from psycopg.sql import SQL, Identifier

from scoring.errors import InfrastructureError, OrganizerError
from tests.worker.daemon.test_running import ended
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.gate import NEVER_SCORES, interpreter
from tests.worker.harness.harness import NEW, Harness, embeddings, evaluating
from tests.worker.harness.postgres_server import ON_POSTGRES, Server
from worker.challenge.configuration import load
from worker.sandbox import ManualClock
from worker.state import LOG_UNSEEN, RESTORED, Deposed, Outcome, Store, leader_lock

pytestmark = ON_POSTGRES
LINKS = ("ids.txt", "tasks", "challenge.secret", "signing.key", "token", "board.git")
END_OF_LEADERS = (
    "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@pytest.fixture
def address(postgres: Server) -> str:
    """The address of an empty database."""
    return postgres.url(postgres.fresh())


@pytest.fixture
def shared(tmp_path: Path, address: str, fork_server: ForkServer) -> Iterator[Harness]:
    """A challenge whose state is on the server, with a clock that only the test moves."""
    changes = {"state": address}
    with Harness(tmp_path, clock=ManualClock(), changes=changes, fork_server=fork_server) as harness:
        yield harness


@pytest.fixture
def live_shared(tmp_path: Path, address: str, fork_server: ForkServer) -> Iterator[Harness]:
    """The same in real time, for processes."""
    (tmp_path / "one").mkdir()
    with Harness(tmp_path / "one", changes={"state": address}, fork_server=fork_server) as harness:
        yield harness


def on_another_machine(harness: Harness, folder: Path) -> Path:
    """Make another folder with the same challenge, whose stored files are its own; return its configuration file."""
    folder.mkdir()
    for name in LINKS:
        (folder / name).symlink_to(harness.folder / name)
    path = folder / "challenge.yaml"
    path.write_text(harness.path.read_text())
    return path


def counts(store: Store) -> dict[str, int]:
    """Return how many submissions are in each state."""
    with store.read() as tx:
        return tx.counts()


def test_a_server_that_refuses_the_connection_has_its_own_hint() -> None:
    """The hint is about the server, not about a file."""
    with closing(leader_lock("postgresql+psycopg://nobody@127.0.0.1:1/none", Path("/"))) as lock:
        with pytest.raises(InfrastructureError) as refused:
            lock.take()
        assert "PostgreSQL server" in refused.value.hint


def test_one_leads_until_its_session_ends(postgres: Server) -> None:
    """The lock has one holder; the server releases it with the session, and the holder notices."""
    name, other = postgres.fresh(), postgres.fresh()
    here, there, elsewhere = (leader_lock(postgres.url(at), Path("/")) for at in (name, name, other))
    assert not there.held()
    assert here.take()
    here.check()
    assert not there.take()
    assert elsewhere.take()
    for lock in (here, there):
        assert lock.held()
    with postgres.connect(name) as connection:
        connection.execute(END_OF_LEADERS)
    assert there.take()
    for _ in range(2):
        with pytest.raises(Deposed) as lost:
            here.check()
        assert lost.value.code == "leader.lock_lost"
    assert not here.take()
    there.close()
    assert here.take()
    for lock in (here, elsewhere):
        lock.close()


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


def test_a_role_that_may_make_no_tables_is_told_what_the_server_says(postgres: Server) -> None:
    """Since version 15, only the owner of a database may make tables in it."""
    name = postgres.fresh()
    with postgres.connect(name) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(InfrastructureError, match="permission denied for schema public"):
        Store(postgres.url(name).replace("//postgres@", "//guest@"))


@pytest.mark.parametrize(
    ("encoding", "setting", "works"),
    [("SQL_ASCII", "", True), ("UTF8", "SET client_encoding = 'LATIN1'", True), ("LATIN1", "", False)],
)
def test_every_name_can_be_stored(
    postgres: Server, encoding: LiteralString, setting: LiteralString, works: bool
) -> None:
    """A server without a locale makes databases without an encoding; one that lacks characters is refused at the start."""
    name = postgres.fresh(f"ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    if setting:
        with postgres.connect() as connection:
            connection.execute(SQL(f"ALTER DATABASE {{}} {setting}").format(Identifier(name)))
    if not works:
        with pytest.raises(OrganizerError, match=f"has the encoding {encoding}"):
            Store(postgres.url(name))
        return
    with closing(Store(postgres.url(name))) as store:
        with store.write() as tx:
            tx.set_fact("team", "Łódź 東京 \N{ROCKET}")
        with store.read() as tx:
            assert tx.fact("team") == "Łódź 東京 \N{ROCKET}"


def test_a_second_daemon_waits_and_takes_over(live_shared: Harness, tmp_path: Path) -> None:
    """The leader is killed while it scores: the daemon of another machine fetches the file again and does everything else, once."""
    harness = live_shared
    leader = harness.run(interpreter=interpreter(harness.folder, NEVER_SCORES))
    harness.until(lambda: "run.start" in harness.log)
    second = harness.run(config=on_another_machine(harness, tmp_path / "two"))
    harness.until(lambda: "run.wait" in harness.log)
    assert json.loads(harness.command("status", "--json").stdout)["leader"]["process"] == leader.pid
    pks = [harness.submit(f"team {number}", embeddings(NEW + number)) for number in range(2)]
    harness.until(lambda: bool(evaluating(leader.pid)))
    leader.send_signal(signal.SIGKILL)
    leader.wait()
    with closing(harness.store()) as store:
        harness.until(lambda: counts(store) == {"published": len(pks)})
        with store.read() as tx:
            ends = {pk: [row.outcome for row in tx.attempts(pk=pk)] for pk in pks}
    assert sorted(ends.values()) == [[Outcome.DEAD, Outcome.DONE], [Outcome.DONE]]
    assert len([*(tmp_path / "two").rglob("files/??/*")]) == len(pks)
    assert {pk: len(harness.posts(pk)) for pk in pks} == dict.fromkeys(pks, 1)
    assert len(harness.teams()) == len(pks)
    assert json.loads(harness.command("status", "--json").stdout)["leader"]["process"] == second.pid
    ended(second)
    assert json.loads(harness.command("status", "--json").stdout)["leader"] is None


def test_a_daemon_that_waits_ends_when_it_is_told_to(shared: Harness, address: str) -> None:
    """SIGTERM ends it at once, and without a fault."""
    with closing(leader_lock(address, shared.folder)) as held:
        assert held.take()
        waiting = shared.run()
        shared.until(lambda: "run.wait" in shared.log)
        ended(waiting)


def test_a_leader_that_loses_its_lock_ends(live_shared: Harness, postgres: Server) -> None:
    """If its connection is closed while it scores, it ends with 1, so that systemd restarts it, and the rest is done then."""
    harness = live_shared
    leader = harness.run(interpreter=interpreter(harness.folder, NEVER_SCORES))
    harness.until(lambda: "run.start" in harness.log)
    pk = harness.submit("A", embeddings(NEW))
    harness.until(lambda: bool(evaluating(leader.pid)))
    children = evaluating(leader.pid)
    with postgres.connect(load(harness.path).database_url.rpartition("/")[2]) as connection:
        connection.execute(END_OF_LEADERS)
    assert leader.wait() == 1
    assert "makes this worker the leader was lost" in harness.log
    psutil.wait_procs(children)
    again = harness.run()
    with closing(harness.store()) as store:
        harness.until(lambda: counts(store) == {"published": 1})
    assert len(harness.posts(pk)) == 1
    ended(again)


def test_a_state_that_no_worker_has_used_is_no_dump(shared: Harness) -> None:
    """The wrong database, or a dump that was not restored yet; an archive beside --dump is not ignored either."""
    refused = shared.command("challenge", "restore", "--dump")
    assert refused.returncode == 2
    assert "First run pg_restore" in refused.stderr
    both = shared.command("challenge", "restore", "backup.zip", "restored", "--dump")
    assert both.returncode == 2
    assert "or --dump alone" in both.stderr


def test_a_state_restored_from_a_dump_looks_for_what_it_lacks(shared: Harness) -> None:
    """After the organizer's command, later answers at EvalAI are named, and the public log is continued."""
    shared.submit("A", embeddings(0))
    with shared.worker() as first:
        first.drive()
        with first.store.read() as tx:
            known_until = tx.fact("reconciled_at")
    assert shared.command("challenge", "restore", "--dump").returncode == 0
    lost = shared.submit("B", embeddings(1))
    shared.evalai.edit(lost, status="finished")
    with shared.worker() as second:
        with second.store.read() as tx:
            assert (tx.fact(RESTORED), tx.fact(LOG_UNSEEN)) == (known_until, "true")
        second.drive(lambda: "restore.answered_since" in second.alerts())
        second.drive(lambda: not second.daemon.publishing.behind() and not second.busy)
        with second.store.read() as tx:
            assert tx.fact(LOG_UNSEEN) is None
