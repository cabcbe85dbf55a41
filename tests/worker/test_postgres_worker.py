"""The worker on PostgreSQL: one daemon leads, another one stands by and takes over, even on another machine."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
import requests

from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import (
    LIMIT_S,
    NEW,
    ROOT,
    Harness,
    clean_environment,
    embeddings,
    evaluating,
)
from tests.worker.harness.postgres_server import Server, binaries, server
from worker.challenge.configuration import load
from worker.sandbox import ManualClock
from worker.state import LOG_UNSEEN, RESTORED, Deposed, Outcome, State, Store

pytestmark = [
    pytest.mark.xdist_group("postgres"),  # one server
    pytest.mark.skipif(binaries() is None, reason="no PostgreSQL server is installed (tests/setup.sh)"),
]
LINKS = ("ids.txt", "tasks", "challenge.secret", "token", "board.git")
LASTING = {"phases": {"dev": {"folds": 3_000}}}  # lasts long enough to be met, and can be waited for
END_OF_LEADERS = (
    "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    """One server for this module."""
    with server() as running:
        yield running


@pytest.fixture
def shared(tmp_path: Path, postgres: Server, cells: Path) -> Iterator[Harness]:
    """A challenge whose state is on the server, with a clock that only the test moves."""
    url = postgres.url(postgres.fresh())
    (tmp_path / "one").mkdir()
    with Harness(tmp_path / "one", clock=ManualClock(), changes={"state": url}) as harness:
        know_cells(harness, cells)
        yield harness


@pytest.fixture
def live_shared(tmp_path: Path, postgres: Server, cells: Path) -> Iterator[Harness]:
    """The same in real time, for child processes."""
    url = postgres.url(postgres.fresh())
    (tmp_path / "one").mkdir()
    with Harness(tmp_path / "one", changes={"state": url}) as harness:
        know_cells(harness, cells)
        yield harness


def know_cells(harness: Harness, cells: Path) -> None:
    """Store the scores of what most tests submit in the database."""
    store = harness.store()
    with store.write() as tx:
        for row in json.loads(cells.read_text()):
            tx._connection.exec_driver_sql(
                f"INSERT INTO cells VALUES ({','.join(['%s'] * len(row))})", tuple(row)
            )
    store.close()


class Machine:
    """Another machine with the same challenge: a folder with a state directory of its own, and a daemon.

    Args:
        harness: The challenge.
        folder: The folder.
        missing: What it lacks of the challenge.
    """

    def __init__(self, harness: Harness, folder: Path, *, missing: str | None = None) -> None:
        folder.mkdir()
        for name in LINKS:
            if name != missing:
                (folder / name).symlink_to(harness.folder / name)
        self._stage = harness
        self.folder = folder
        self.path = folder / "challenge.yaml"
        self.path.write_text(harness.path.read_text())

    def run(self) -> subprocess.Popen[str]:
        """Start ``neuco-worker run``; it is ended with the harness at the latest."""
        with (self.folder / "daemon.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "worker.cli", "run", "--config", str(self.path)],
                env=clean_environment(),
                cwd=ROOT,
                text=True,
                stdout=log,
                stderr=log,
            )
        self._stage._processes.append(process)
        return process

    def events(self) -> list[str]:
        """Return the keys of what its daemon logged."""
        path = self.folder / "daemon.log"
        return re.findall(r"event_key=([\w.]+)", path.read_text()) if path.exists() else []


def counts(store: Store) -> dict[str, int]:
    """Return how many submissions are in each state."""
    with store.read() as tx:
        return tx.counts()


def test_a_worker_runs_on_postgresql(shared: Harness) -> None:
    """From queue to board, including a refused file and a large upload, as on SQLite."""
    good, other = shared.submit("A"), shared.submit("B", embeddings(1))
    bad = shared.submit("C", b"id,0\nimg_000,1\n")
    large = shared.evalai.begin_upload("D", "dev")
    with shared.worker() as worker:
        worker.drive(
            lambda: sorted(worker.states().values()) == ["failed", "published", "published", "uploading"]
        )
        shared.evalai.finish_upload(large, embeddings(2))
        worker.drive(lambda: sorted(worker.states().values()) == ["failed", *["published"] * 3])
    pks = (good, other, bad, large)
    assert [shared.status(pk) for pk in pks] == ["finished", "finished", "failed", "finished"]
    assert sorted(shared.teams()) == ["A", "B", "D"]
    assert all(len(shared.posts(pk)) == 1 for pk in pks)


def test_a_standby_takes_over_from_another_folder(live_shared: Harness, tmp_path: Path) -> None:
    """The leader is killed while it scores: the standby fetches the file again and does everything else, once."""
    harness = live_shared
    harness.configure(LASTING)
    other = Machine(harness, tmp_path / "two")
    leader = harness.run()
    harness.until(lambda: "run.start" in harness.log)
    standby = other.run()
    harness.until(lambda: "standby.begin" in other.events())
    told = json.loads(harness.command("status", "--json").stdout)["leader"]
    assert told["process"] == leader.pid
    pks = [harness.submit(f"team {number}", embeddings(NEW + number)) for number in range(2)]
    harness.until(lambda: bool(evaluating(leader.pid)))
    assert other.events() == ["standby.begin"]
    leader.send_signal(signal.SIGKILL)
    leader.wait(timeout=LIMIT_S)
    with closing(harness.store()) as store:
        harness.until(lambda: counts(store) == {"published": len(pks)})
        with store.read() as tx:
            ends = {pk: [row.outcome for row in tx.attempts(pk=pk) if row.kind == "evaluate"] for pk in pks}
            scored_by = {row.worker.split(":")[1] for row in tx.attempts() if row.outcome == Outcome.DONE}
            fetched = [row for row in tx.attempts() if row.kind == "fetch" and str(standby.pid) in row.worker]
    assert sorted(ends.values()) == [[Outcome.DEAD, Outcome.DONE], [Outcome.DONE]]
    assert str(standby.pid) in scored_by
    assert len(fetched) == len(pks)
    events = other.events()
    assert events.index("standby.begin") < events.index("standby.end") < events.index("run.start")
    assert {pk: len(harness.posts(pk)) for pk in pks} == dict.fromkeys(pks, 1)
    assert len(harness.teams()) == len(pks)
    told = json.loads(harness.command("status", "--json").stdout)["leader"]
    assert told["process"] == standby.pid
    standby.terminate()
    assert standby.wait(timeout=LIMIT_S) == 0
    assert json.loads(harness.command("status", "--json").stdout)["leader"] is None


def test_an_answer_on_its_way_stays_the_same(
    live_shared: Harness, tmp_path: Path, fork_server: ForkServer
) -> None:
    """The leader dies after EvalAI accepted the answer and before that is recorded: the next leader posts the same."""
    harness = live_shared
    other = Machine(harness, tmp_path / "two")
    fork_server.start(harness.path, at="after call post")
    harness.until(lambda: (harness.folder / "daemon.log").exists() and "run.start" in harness.log)
    standby = other.run()
    harness.until(lambda: "standby.begin" in other.events())
    pk = harness.submit("A", embeddings(1))
    assert fork_server.end() == -signal.SIGKILL
    with closing(harness.store()) as store:
        harness.until(lambda: counts(store) == {"published": 1})
        with store.read() as tx:
            assert tx.alerts() == []
    posts = harness.posts(pk)
    assert all(post == posts[0] for post in posts)
    assert harness.teams() == ["A"]
    standby.terminate()
    assert standby.wait(timeout=LIMIT_S) == 0


def test_a_leader_that_loses_its_lock_ends(live_shared: Harness, postgres: Server, tmp_path: Path) -> None:
    """If its connection is closed while it scores, it ends with 1, so that systemd restarts it, and another worker does the rest."""
    harness = live_shared
    harness.configure(LASTING)
    other = Machine(harness, tmp_path / "two")
    leader = harness.run()
    harness.until(lambda: "run.start" in harness.log)
    standby = other.run()
    harness.until(lambda: "standby.begin" in other.events())
    pk = harness.submit("A", embeddings(NEW))
    harness.until(lambda: bool(evaluating(leader.pid)))
    children = evaluating(leader.pid)
    with postgres.connect(load(harness.path).database_url.rpartition("/")[2]) as connection:
        connection.execute(END_OF_LEADERS)
    assert leader.wait(timeout=LIMIT_S) == 1
    assert "makes this worker the leader was lost" in harness.log
    psutil.wait_procs(children, timeout=LIMIT_S)
    again = harness.run()
    harness.until(lambda: "standby.begin" in harness.log)
    with closing(harness.store()) as store:
        harness.until(lambda: counts(store) == {"published": 1})
    # The leader asks for its lock once a second, so it may have posted the result without recording that.
    posts = harness.posts(pk)
    assert posts
    assert all(post == posts[0] for post in posts)
    for process in (again, standby):
        process.terminate()
        assert process.wait(timeout=LIMIT_S) == 0


def test_a_deposed_leader_writes_nothing(shared: Harness) -> None:
    """It was suspended while another took over: its first step ends it, and its results are not stored."""
    pk = shared.submit("A", embeddings(NEW))
    with shared.worker() as slept:
        slept.drive(lambda: slept.daemon.evaluation.busy)
        with shared.worker() as leads:
            leads.drive()
            answer = leads.row(pk).answer
            with pytest.raises(Deposed):
                slept.drive(lambda: not slept.daemon.evaluation.busy)
            assert leads.outcomes(pk) == [Outcome.DEAD, Outcome.DONE]
            assert leads.row(pk).answer == answer
            assert leads.state(pk) is State.PUBLISHED
    assert len(shared.posts(pk)) == 1


def test_a_standby_reports_what_it_lacks(live_shared: Harness, tmp_path: Path) -> None:
    """Without a token, or with another secret, it could not take over: the organizer has an alert until it can."""
    harness = live_shared
    other = Machine(harness, tmp_path / "two", missing="token")
    leader = harness.run()
    harness.until(lambda: "run.start" in harness.log)
    standby = other.run()

    def lacks() -> str | None:
        with store.read() as tx:
            return next((alert.text for alert in tx.alerts() if alert.code == "standby.unfit"), None)

    def read_again() -> None:
        standby.send_signal(signal.SIGHUP)

    with closing(harness.store()) as store:
        harness.until(lambda: "evalai.token" in (lacks() or ""))
        (other.folder / "token").symlink_to(harness.folder / "token")
        read_again()
        harness.until(lambda: lacks() is None)
        secret = other.folder / "challenge.secret"
        secret.unlink()
        secret.write_text("ab" * 32)
        secret.chmod(0o600)
        read_again()
        harness.until(lambda: "secret" in (lacks() or ""))
        standby.terminate()
        assert standby.wait(timeout=LIMIT_S) == 0
        assert lacks() is None
    assert leader.poll() is None


def test_leader_and_standby_can_be_told_apart(live_shared: Harness, tmp_path: Path) -> None:
    """Health and metrics show the role; a drain while a leader runs ends at once and names it."""
    harness = live_shared
    leader = harness.run()
    harness.until(lambda: "run.start" in harness.log)
    refused = harness.once()
    assert refused.returncode == 1
    assert f"process {leader.pid} " in refused.stderr
    other = Machine(harness, tmp_path / "two")
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        other.path.write_text(other.path.read_text() + f"metrics: {{listen: '127.0.0.1:{port}'}}\n")
    standby = other.run()
    harness.until(lambda: "standby.begin" in other.events())
    health = requests.get(f"http://127.0.0.1:{port}/healthz", timeout=60).json()
    assert (health["healthy"], health["role"]) == (True, "standby")
    assert "neuco_worker_leader 0.0" in requests.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
    leader.kill()
    leader.wait(timeout=LIMIT_S)
    harness.until(lambda: "run.start" in other.events())
    harness.until(
        lambda: "neuco_worker_leader 1.0" in requests.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
    )
    health = requests.get(f"http://127.0.0.1:{port}/healthz", timeout=60).json()
    assert health["role"] == "leader"
    standby.terminate()
    assert standby.wait(timeout=LIMIT_S) == 0


def test_a_state_restored_from_a_dump_looks_for_what_it_lacks(shared: Harness) -> None:
    """After the organizer's command, later answers at EvalAI are named, and the public log is continued."""
    shared.submit("A", embeddings(0))
    with shared.worker() as first:
        first.drive()
        with first.store.read() as tx:
            known_until = tx.fact("reconciled_at")
    assert shared.command("challenge", "mark-restored").returncode == 0
    lost = shared.submit("B", embeddings(1))
    shared.evalai.edit(lost, status="finished")
    with shared.worker() as second:
        with second.store.read() as tx:
            assert (tx.fact(RESTORED), tx.fact(LOG_UNSEEN)) == (known_until, "true")
        second.drive(lambda: "restore.answered_since" in second.alerts())
        second.drive(lambda: not second.daemon.publishing.due() and not second.busy)
        with second.store.read() as tx:
            assert tx.fact(LOG_UNSEEN) is None
