"""A worker that is killed at any transition or effect loses no submission and posts no second, different result."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.crash_stories import (
    ACTS,
    MORE_ACTS,
    NOT_CALLED,
    STORIES,
    Plot,
    Story,
    client_methods,
    daemon_acts,
    kill_points,
)
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import LIMIT_S, Harness, Killed, StepWorker, clean_environment, embeddings
from worker.sandbox import ManualClock

QUICK = {"evalai": {"poll_every": 0.3, "reconcile_every": 600}}
ENDED = {"published", "failed", "cancelled", "superseded"}


def test_every_kill_point_has_a_row() -> None:
    """The stories cover exactly the kill points that are generated from transitions, acts and checkpoints."""
    rows = {point for points in STORIES.values() for point in points}
    assert sorted(rows) == kill_points()


def test_every_client_method_has_an_act() -> None:
    """Every method of the client belongs to an act with a kill point, or is listed as not used by the daemon."""
    assert client_methods() == set(ACTS) | NOT_CALLED
    assert daemon_acts() == set(ACTS.values()) | MORE_ACTS


class Theatre:
    """Runs and kills workers in a challenge, in this process."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness

    def live(
        self,
        *,
        at: str | None = None,
        until: Callable[[], bool] = lambda: False,
        meanwhile: Callable[[], Any] | str | None = None,
        when: Callable[[], bool] = lambda: True,
    ) -> None:
        """Start a worker, and either check that it is killed at a point, or stop it in good order when a condition holds."""
        killed = threading.Event()

        def checkpoint(here: str) -> None:
            if here == at or killed.is_set():
                killed.set()
                raise Killed(here)

        ends = time.monotonic() + LIMIT_S
        worker: StepWorker | None = None
        with contextlib.suppress(Killed):
            worker = StepWorker(self.harness, checkpoint=checkpoint)
            while not (killed.is_set() or until()):
                if meanwhile is not None and when():
                    worker.reload() if meanwhile == "reload" else meanwhile()
                    meanwhile = None
                if not worker.step():
                    worker.clock.advance(0.1 if worker.busy else 0.5)
                    worker.wake.wait(0.02 if worker.busy else 0)
                assert time.monotonic() < ends, f"it did not come to {at}: {self.harness.states()}"
        assert killed.is_set() == (at is not None)
        if worker is not None:
            worker.abandon() if killed.is_set() else worker.stop()

    def finish(self, *, at_any_rate: bool = False) -> None:
        """Run a worker without kills until all work is done."""

        def done() -> bool:
            evalai = self.harness.evalai
            wanted = [
                s["id"]
                for s in evalai.submissions()
                if not s["ignore_submission"] and s["status"] != "cancelled"
            ]
            states = self.harness.states()
            return (
                evalai.queue_length() == 0
                and set(wanted) <= set(states)
                and set(states.values()) <= ENDED
                and not any(s["status"] in ("submitted", "running", "resuming") for s in evalai.submissions())
            )

        if at_any_rate or not done():
            self.live(until=lambda: done() and self.harness.commits() > 0)  # even an empty board is pushed


@pytest.fixture
def silent_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a thread be killed without a report."""
    report = threading.excepthook
    monkeypatch.setattr(
        threading, "excepthook", lambda ended: None if ended.exc_type is Killed else report(ended)
    )


def expected_rows(harness: Harness) -> set[tuple[str, int]]:
    """Return the rows that the board must have: each team's last public finished submission."""
    names = {team.pk: team.name for team in harness.evalai.world.teams.values()}
    rows: dict[str, tuple[str, int]] = {}
    for submission in sorted(
        harness.evalai.submissions(), key=lambda s: (datetime.fromisoformat(s["submitted_at"]), s["id"])
    ):
        shown = (
            submission["status"] == "finished" and submission["is_public"] and not submission["is_flagged"]
        )
        if shown and not submission["ignore_submission"]:
            team = names[submission["participant_team"]]
            rows[team] = (team, submission["id"])
    return set(rows.values())


def check(harness: Harness) -> None:
    """Check the invariants against the sandbox's journal and the repository."""
    for submission in harness.evalai.submissions():
        assert submission["status"] in ("finished", "failed", "cancelled"), submission
    for pk in harness.evalai.journal.posts():
        posts = harness.posts(pk)
        assert all(post == posts[0] for post in posts), f"{pk} was told different things"
    assert harness.evalai.queue_length() == 0
    assert {(row["team"], row["submission"]) for row in harness.boards()} == expected_rows(harness)
    assert harness.leftovers == []


@pytest.mark.usefixtures("silent_threads")
@pytest.mark.parametrize(
    "story",
    STORIES,
    ids=lambda story: f"{story.__qualname__.split('.')[0]}-{STORIES[story][0].split(' ', 1)[1]}",
)
def test_a_kill_at_any_point_loses_and_repeats_nothing(story: Story, tmp_path: Path, cells: Path) -> None:
    """After kills at every point of a story, every submission has exactly one distinct result, and the board is correct."""
    with Harness(
        tmp_path, clock=ManualClock(), cells=cells, settings={"visibility_timeout_s": 1.0}, changes=QUICK
    ) as harness:
        theatre = Theatre(harness)
        plot = Plot(harness, theatre.live, theatre.finish)
        for point in STORIES[story]:
            story(plot, point)
        theatre.finish(at_any_rate=True)
        check(harness)


def test_after_real_kills_the_board_equals_an_undisturbed_one(
    tmp_path: Path, cells: Path, fork_server: ForkServer
) -> None:
    """Processes that are killed with SIGKILL lose nothing either: the board has the same rows as without any kill."""
    boards = []
    for points in ("call post", "scoring>scored", "call push", "call poll"), ():
        folder = tmp_path / str(len(points))
        folder.mkdir()
        with Harness(folder, cells=cells, settings={"visibility_timeout_s": 1.0}, changes=QUICK) as harness:
            for number in range(6):
                harness.submit("ABCD"[number % 4], embeddings(number))
            for point in points:
                fork_server.start(harness.path, at=f"after {point}")
                assert fork_server.end() == -signal.SIGKILL
            assert (
                fork_server.command(
                    ("once", "--config", str(harness.path)), environment=clean_environment(), folder=folder
                ).returncode
                == 0
            )
            check(harness)
            keys = ("position", "rank", "rank_by_mean", "team", "q_mean", "submission", "group")
            boards.append([{key: row[key] for key in keys} for row in harness.boards()])
    assert boards[0] == boards[1]
    assert len(boards[0]) == 4
