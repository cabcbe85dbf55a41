"""Only one process leads: its lock, its epoch, and the publish cycles that others request."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scoring.errors import InfrastructureError, OrganizerError
from tests.worker.harness.harness import LIMIT_S, NEW, Harness, StepWorker, embeddings, git
from worker.state import Completed, Deposed, Store, leader_lock

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
HOLD = """
import sys
from pathlib import Path
from worker.state import leader_lock
lock = leader_lock("sqlite://", Path(sys.argv[1]))
print(lock.take(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a new state."""
    return f"sqlite:///{tmp_path / 'worker.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A new state."""
    with closing(Store(url)) as opened:
        yield opened


def test_a_files_lock_is_released_with_its_process_however_it_ends(tmp_path: Path) -> None:
    """While one process holds it, a second one is refused; a kill releases it at once."""
    lock = leader_lock("sqlite://", tmp_path)
    assert not lock.held()
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        assert not lock.take()
        assert lock.held()
        holder.kill()
        holder.wait()
        assert not lock.held()
        assert lock.take()
        lock.check()
    lock.close()
    assert not lock.held()


def test_a_deposed_leader_writes_nothing(url: str, store: Store) -> None:
    """A new leader raises the epoch; the old leader's next write is refused, but a command's is not."""
    with closing(Store(url)) as successor, closing(Store(url)) as command:
        with store.lead(NOW) as tx:
            tx.set_fact("a", "1")
        with store.write() as tx:
            tx.set_fact("a", "2")
        with successor.lead(NOW) as tx:
            tx.set_fact("a", "3")
        with pytest.raises(Deposed) as refused, store.write() as tx:
            tx.set_fact("a", "4")
        assert refused.value.code == "leader.deposed"
        with store.read() as tx:
            assert tx.fact("a") == "3"
        for other in (successor, command):
            with other.write() as tx:
                tx.set_fact("a", "5")
        store.resign()
        with store.write() as tx:
            leader = tx.last_leader()
    assert leader is not None
    assert (leader.epoch, leader.since) == (2, NOW.isoformat())


def test_a_deposed_leaders_work_is_lost(harness: Harness, worker: StepWorker) -> None:
    """It was suspended while another took over: its first step ends it, its results are not stored, and it leaves no child behind."""
    pk = harness.submit("A", embeddings(NEW))
    worker.drive(lambda: worker.daemon.evaluation.busy)
    folders = harness.state / "tmp"
    assert list(folders.iterdir())
    with closing(harness.store()) as successor, successor.lead(worker.clock.now()):
        pass
    with pytest.raises(Deposed):
        worker.drive(lambda: not worker.daemon.evaluation.busy)
    assert worker.row(pk).answer is None
    worker.daemon.stop(worker.clock.now())
    assert not list(folders.iterdir())


def test_a_failed_takeover_leaves_the_leader_in_place(url: str, store: Store) -> None:
    """The epoch is raised together with everything else that a takeover records, or not at all."""
    with store.lead(NOW):
        pass
    with closing(Store(url)) as successor:
        with pytest.raises(OrganizerError), successor.lead(NOW):
            raise OrganizerError("The labels changed.", code="tasks.changed")
        with successor.write() as tx:
            tx.set_fact("a", "1")
    with store.write() as tx:
        assert tx.fact("a") == "1"


def test_a_publish_cycle_covers_requests_from_before_its_beginning(store: Store) -> None:
    """A later request is left for the next cycle; each caller is told only why its own cycle failed."""
    with store.write() as tx:
        assert tx.completed_publish() == Completed()
        running = tx.request_publish()
        awaited = tx.request_publish(awaited=True)
        assert (running, awaited) == (1, 2)
        tx.complete_publish(Completed(generation=running, commit="c", changed=True))
        assert tx.publish_awaited()
        assert tx.completed_publish().generation < tx.requested_publish()
        tx.fail_publish(running, InfrastructureError("An older cycle failed.", code="leaderboard.timeout"))
        assert tx.publish_failure(awaited) is None
        assert tx.publish_awaited()
        tx.fail_publish(
            awaited, OrganizerError("Refused.", cure="Renew it.", code="leaderboard.push_refused")
        )
        failure = tx.publish_failure(awaited)
        assert isinstance(failure, OrganizerError)
        assert (failure.sentence, failure.cure, failure.code) == (
            "Refused.",
            "Renew it.",
            "leaderboard.push_refused",
        )
        assert not tx.publish_awaited()
        tx.complete_publish(Completed(generation=awaited, commit="d", changed=False))
        assert tx.publish_failure(awaited) is None
        assert tx.completed_publish().generation == tx.requested_publish()


def test_a_command_lets_the_leader_push(live: Harness) -> None:
    """The answer is on the board when the command ends, whatever the leader's interval; two pushes never run at once."""
    live.configure({"leaderboard": {"publish_every": 3600}})
    daemon = live.run()
    live.until(lambda: "event_key=board.pushed" in live.log)
    pk = live.submit("A", embeddings(1))
    live.until(lambda: live.states().get(pk) == "posted")
    done = live.command("board", "publish")
    assert done.returncode == 0, done.stderr
    assert "Waiting for the running worker to publish the boards." in done.stdout
    assert live.teams() == ["A"]
    assert live.log.count("event_key=board.pushed") == 2
    assert git(live.board, "rev-parse", "main").strip() in done.stdout
    daemon.terminate()
    assert daemon.wait(timeout=LIMIT_S) == 0
    again = live.command("board", "publish")
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("Nothing has changed")


def test_a_command_reports_why_the_leader_could_not_push(live: Harness) -> None:
    """It shows the leader's message with its cure; the board is pushed when the cause is fixed."""
    live.configure({"leaderboard": {"publish_every": 3600}})
    live.run()
    live.until(lambda: "event_key=board.pushed" in live.log)
    pk = live.submit("A", embeddings(1))
    live.until(lambda: live.states().get(pk) == "posted")
    away = live.board.rename(live.folder / "away.git")
    refused = live.command("board", "publish")
    assert refused.returncode != 0
    assert "repository" in refused.stderr
    away.rename(live.board)
    done = live.command("board", "publish")
    assert done.returncode == 0, done.stderr
    assert live.teams() == ["A"]
