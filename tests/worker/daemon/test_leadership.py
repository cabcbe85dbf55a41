"""Only one process leads, and pushes for the commands of others."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime

import pytest

from tests.worker.harness.harness import LIMIT_S, Harness, embeddings, git
from worker.state import Deposed, Store

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


def test_a_deposed_leader_writes_nothing(url: str) -> None:
    """A new leader raises the epoch; the old leader's next write is refused, but a command's is not."""
    with closing(Store(url)) as leader, closing(Store(url)) as successor, closing(Store(url)) as command:
        with leader.lead(NOW) as tx:
            tx.set_fact("a", "1")
        with successor.lead(NOW) as tx:
            tx.set_fact("a", "2")
        with pytest.raises(Deposed), leader.write() as tx:
            tx.set_fact("a", "3")
        with command.read() as tx:
            assert tx.fact("a") == "2"
        leader.resign()
        for other in (successor, command, leader):
            with other.write() as tx:
                tx.set_fact("a", "4")


def test_a_command_lets_the_leader_push(live: Harness) -> None:
    """The answer is on the board when the command ends, whatever the leader's interval, or the command says why the leader could not."""
    live.configure({"leaderboard": {"publish_every": 3600}})
    daemon = live.run()
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
    assert "Waiting for the running worker to publish the boards." in done.stdout
    assert live.teams() == ["A"]
    assert git(live.board, "rev-parse", "main").strip() in done.stdout
    daemon.terminate()
    assert daemon.wait(timeout=LIMIT_S) == 0
    again = live.command("board", "publish")
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("Nothing has changed")
