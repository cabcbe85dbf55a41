"""A worker that is killed at any transition or effect loses no submission and posts no second, different result."""

from __future__ import annotations

import signal
from datetime import datetime
from pathlib import Path

import pytest

from tests.acceptance.crash_stories import STORIES, Theatre, kill_points
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import Harness, clean_environment, embeddings
from worker.sandbox import ManualClock

QUICK = {"evalai": {"poll_every": 0.3, "reconcile_every": 600}}
REDELIVERED = {"visibility_timeout_s": 1.0}


def check(harness: Harness, disqualified: str = "") -> None:
    """Check the invariants against the sandbox's journal and the repository.

    The board has the last public finished submission of each team that is not disqualified.
    """
    names = {team.pk: team.name for team in harness.evalai.world.teams.values()}
    rows: dict[str, int] = {}
    for row in sorted(
        harness.evalai.submissions(), key=lambda row: (datetime.fromisoformat(row["submitted_at"]), row["id"])
    ):
        assert row["status"] in ("finished", "failed", "cancelled"), row
        if row["status"] == "finished" and row["is_public"] and not row["is_flagged"]:
            rows[names[row["participant_team"]]] = row["id"]
    assert not disqualified or rows.pop(disqualified)
    assert {row["team"]: row["submission"] for row in harness.boards()} == rows
    for pk in harness.evalai.journal.posts():
        posts = harness.posts(pk)
        assert all(post == posts[0] for post in posts), f"{pk} was told different things"
    assert harness.evalai.queue_length() == 0
    assert harness.leftovers == []


def test_every_kill_point_has_a_story() -> None:
    """The stories cover exactly the kill points that are generated from transitions, acts and checkpoints."""
    assert {
        point for stories in STORIES.values() for story in stories for point in story.points
    } == kill_points()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # threads are killed, too
@pytest.mark.slow
@pytest.mark.parametrize("name", STORIES)
def test_a_kill_at_any_point_loses_and_repeats_nothing(name: str, tmp_path: Path, cells: Path) -> None:
    """After kills at every point of the stories, every submission has exactly one distinct result, and the board is correct."""
    points = {point for story in STORIES[name] for point in story.points}
    with Harness(tmp_path, clock=ManualClock(), cells=cells, settings=REDELIVERED, changes=QUICK) as harness:
        theatre = Theatre(harness, points)
        for story in STORIES[name]:
            for _ in story.points:  # each time, it comes to one more at least
                if theatre.ahead.intersection(story.points):
                    story.play(theatre)
            assert not theatre.ahead.intersection(story.points)
        theatre.leave()
        check(harness, disqualified=theatre.disqualified)


@pytest.mark.processes
def test_real_kills_lose_and_repeat_nothing(tmp_path: Path, cells: Path, fork_server: ForkServer) -> None:
    """The same is true of processes that are killed with SIGKILL."""
    with Harness(tmp_path, cells=cells, settings=REDELIVERED, changes=QUICK) as harness:
        for number in range(6):
            harness.submit("ABCD"[number % 4], embeddings(number))
        for point in ("call post", "scoring>scored", "call push", "call poll"):
            fork_server.start(harness.path, at=f"after {point}")
            assert fork_server.end() == -signal.SIGKILL
        arguments = ("once", "--config", str(harness.path))
        done = fork_server.command(arguments, environment=clean_environment(), folder=tmp_path)
        assert done.returncode == 0
        check(harness)
        assert len(harness.boards()) == 4
