"""A worker that is killed at any transition or effect loses no submission and posts no second, different result."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
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
from tests.worker.harness.harness import LIMIT_S, Harness

QUICK = {"evalai": {"poll_every": 0.3, "reconcile_every": 600}}
SANDBOX = {"visibility_timeout_s": 1.0}
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
    """Runs and kills workers in a challenge."""

    def __init__(self, harness: Harness, fork_server: ForkServer) -> None:
        self.harness = harness
        self._nursery = fork_server
        self.kills = 0

    def live(
        self,
        *,
        at: str | None = None,
        until: Callable[[], bool] | None = None,
        meanwhile: Callable[[], Any] | str | None = None,
        when: Callable[[], bool] = lambda: True,
    ) -> None:
        """Start a worker, and either check that it is killed at a point, or stop it in good order when a condition holds."""
        begun = self._began()
        pid = self._nursery.start(self.harness.path, at=at)
        try:
            if meanwhile is not None:
                self._wait(lambda: when() or _gone(pid))
                if meanwhile == "reload":
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGHUP)
                elif callable(meanwhile):
                    meanwhile()
            if until is not None:
                self._wait(lambda: self._began() > begun and until())
        finally:
            if at is None:
                os.kill(pid, signal.SIGTERM)
            status = self._nursery.end()
        if at is None:
            assert status == 0, self.harness.log[-3000:]
        else:
            assert status == -signal.SIGKILL, f"not killed {at!r}:\n{self.harness.log[-3000:]}"
            self.kills += 1

    def _wait(self, condition: Callable[[], bool]) -> None:
        ends = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < ends, f"it did not come: {self.states()}\n{self.harness.log[-3000:]}"
            threading.Event().wait(0.02)

    def _began(self) -> int:
        path = self.harness.folder / "daemon.log"
        return path.read_text().count("run.start") if path.exists() else 0

    def states(self) -> dict[int, str]:
        """Return the worker's state of every submission."""
        return self.harness.states()

    def finish(self, *, at_any_rate: bool = False) -> None:
        """Run a worker without kills until all work is done."""

        def done() -> bool:
            evalai = self.harness.evalai
            wanted = [
                s["id"]
                for s in evalai.submissions()
                if not s["ignore_submission"] and s["status"] != "cancelled"
            ]
            states = self.states()
            return (
                evalai.queue_length() == 0
                and set(wanted) <= set(states)
                and set(states.values()) <= ENDED
                and not any(s["status"] in ("submitted", "running", "resuming") for s in evalai.submissions())
            )

        if at_any_rate or not done():
            self.live(until=lambda: done() and self.harness.commits() > 0)  # even an empty board is pushed


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def expected_rows(harness: Harness) -> set[tuple[str, int]]:
    """Return the rows that the board must have: each team's last public finished submission."""
    names = {team.pk: team.name for team in harness.evalai.world.teams.values()}
    rows: dict[str, tuple[str, int]] = {}
    for submission in sorted(harness.evalai.submissions(), key=lambda s: (s["submitted_at"], s["id"])):
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


@pytest.mark.parametrize(
    "story",
    STORIES,
    ids=lambda story: f"{story.__qualname__.split('.')[0]}-{STORIES[story][0].split(' ', 1)[1]}",
)
def test_a_kill_at_any_point_loses_and_repeats_nothing(
    story: Story, tmp_path: Path, cells: Path, fork_server: ForkServer
) -> None:
    """After kills at every point of a story, every submission has exactly one distinct result, and the board is correct."""
    with Harness(tmp_path, cells=cells, settings=SANDBOX, changes=QUICK) as harness:
        theatre = Theatre(harness, fork_server)
        plot = Plot(harness, theatre.live, theatre.finish)
        for point in STORIES[story]:
            story(plot, point)
        theatre.finish(at_any_rate=True)
        check(harness)


def test_after_many_kills_the_board_equals_an_undisturbed_one(
    tmp_path: Path, cells: Path, fork_server: ForkServer
) -> None:
    """Submissions that are processed despite several kills give the same board, rank by rank, as without any kill."""
    boards = []
    for name, points in (
        ("killed", [f"after {what}" for what in ("call post", "scoring>scored", "call push", "call poll")]),
        ("calm", []),
    ):
        (tmp_path / name).mkdir()
        with Harness(tmp_path / name, cells=cells, settings=SANDBOX, changes=QUICK) as harness:
            theatre = Theatre(harness, fork_server)
            plot = Plot(harness, theatre.live, theatre.finish)
            for _ in range(6):
                plot.submit()
            for point in points:
                theatre.live(at=point)
            theatre.finish(at_any_rate=True)
            check(harness)
            keys = ("position", "rank", "rank_by_mean", "team", "q_mean", "submission", "group")
            boards.append([{key: row[key] for key in keys} for row in harness.boards()])
    assert boards[0] == boards[1]
    assert len(boards[0]) == 4
