"""Chaos test: random kills and corrupted answers while many teams submit, and figures of the outcome."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import AHEAD, Harness, embeddings
from worker.sandbox import FaultPlan

BAD = b"id,0,1\nimg_000,1,2\n"
TICK_S = 0.02
EARLY = 50  # answers of the last worker after which its memory is measured for the first time
QUICK = {"evalai": {"poll_every": 0.3, "reconcile_every": 5}, "leaderboard": {"publish_every": 1}}
SANDBOX = {"visibility_timeout_s": 3.0}
SPOILT = FaultPlan(probability=0.2, slow_s=0.1, storm_s=0.3, duplicate=0.2, reorder=0.5, empty=0.2)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Figures of the outcome.

    Attributes:
        submissions: How many were sent.
        faults: Number of corrupted answers.
        lost: Submissions without an answer.
        differing: Submissions with different answers, or equal contents with different results.
        wait_s: 95th percentile of the wait from submission to the first answer.
        memory_begin: Resident bytes of the last worker after its first 50 answers.
        memory_end: The same at its end.
    """

    submissions: int
    faults: int
    lost: int
    differing: int
    wait_s: float
    memory_begin: int
    memory_end: int


class Crowd:
    """Teams that submit, a few files at a time."""

    def __init__(
        self, harness: Harness, *, submissions: int, teams: int, rng: random.Random, waiting: int
    ) -> None:
        self._stage, self._rng, self._waiting = harness, rng, waiting
        self._left = submissions
        self._teams = [f"Team {number}" for number in range(teams)]
        self.content: dict[int, int] = {}  # submission to the seed of its content; -1 for a malformed file

    @property
    def all_sent(self) -> bool:
        """Whether all submissions were sent."""
        return self._left == 0

    def act(self) -> None:
        """Submit, if not too many submissions are waiting."""
        while self._left and self.open < self._waiting:
            self._left -= 1
            seed = -1 if self._rng.random() < 0.1 else self._rng.randrange(AHEAD)
            content = BAD if seed < 0 else embeddings(seed, shuffled=self._rng.random() < 0.3)
            pk = self._stage.submit(
                self._rng.choice(self._teams), content, is_public=self._rng.random() < 0.8
            )
            self.content[pk] = seed

    @property
    def open(self) -> int:
        """How many wait for an answer."""
        with self._stage.evalai.world.lock:
            submissions = self._stage.evalai.world.submissions.values()
            return sum(submission["status"] not in ("finished", "failed") for submission in submissions)


def worker(
    harness: Harness,
    fork_server: ForkServer,
    *,
    submissions: int,
    teams: int,
    kills: int,
    seed: int,
    waiting: int,
    limit_s: float,
) -> Figures:
    """Let a crowd submit while workers are killed at random and answers are corrupted; then let the last one finish.

    The last worker is a separate process, whose memory is measured; answers are corrupted until all submissions are answered.

    Raises:
        TimeoutError: If it does not come to an end.
    """
    rng = random.Random(seed)
    crowd = Crowd(harness, submissions=submissions, teams=teams, rng=rng, waiting=waiting)
    begun = time.monotonic()
    harness.evalai.set_faults(SPOILT)
    for _ in range(kills):
        pid = fork_server.start(harness.path, after_s=rng.uniform(0.3, 2.0))
        while alive(pid):
            crowd.act()
            threading.Event().wait(TICK_S)
        if fork_server.end() != -signal.SIGKILL:
            raise RuntimeError(f"a worker ended by itself:\n{harness.log[-2000:]}")
    daemon = harness.run()
    process = psutil.Process(daemon.pid)
    early, memory_begin = len(crowd.content) - crowd.open + EARLY, 0
    while not (crowd.all_sent and crowd.open == 0):
        crowd.act()
        if not memory_begin and (len(crowd.content) - crowd.open >= early or crowd.all_sent):
            memory_begin = process.memory_info().rss
        if time.monotonic() - begun > limit_s:
            raise TimeoutError(f"{crowd.open} still wait:\n{harness.log[-3000:]}")
        if daemon.poll() is not None:
            raise RuntimeError(f"the worker ended:\n{harness.log[-3000:]}")
        threading.Event().wait(TICK_S)
    harness.evalai.set_faults(FaultPlan())
    while harness.evalai.queue_length() or set(harness.states().values()) - {"published", "failed"}:
        if time.monotonic() - begun > limit_s:
            raise TimeoutError(f"{harness.evalai.queue_length()} messages, {harness.log[-3000:]}")
        threading.Event().wait(TICK_S)
    memory_end = process.memory_info().rss
    daemon.terminate()
    if daemon.wait(timeout=60) != 0:
        raise RuntimeError(f"the worker did not end well:\n{harness.log[-3000:]}")
    return figures(harness, crowd, memory_begin, memory_end)


def alive(pid: int) -> bool:
    """Return whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def figures(harness: Harness, crowd: Crowd, memory_begin: int, memory_end: int) -> Figures:
    """Count, from the sandbox's journal alone."""
    journal = harness.evalai.journal
    posts = {pk: harness.posts(pk) for pk in crowd.content}
    sent = {entry.submission: entry.at for entry in journal.effects("submitted")}
    waits: dict[int, float] = {}
    for entry in journal.effects("posted"):
        if entry.submission is not None:
            waits.setdefault(entry.submission, (entry.at - sent[entry.submission]).total_seconds())
    results: dict[int, set[str]] = {}
    for pk, seed in crowd.content.items():
        results.setdefault(seed, set()).update(str(post["result"]) for post in posts[pk])
    return Figures(
        submissions=len(crowd.content),
        faults=sum(entry.kind == "fault" for entry in journal),
        lost=sum(harness.status(pk) not in ("finished", "failed") or not posts[pk] for pk in crowd.content),
        differing=sum(any(post != answers[0] for post in answers) for answers in posts.values())
        + sum(len(values) != 1 for values in results.values()),
        wait_s=sorted(waits.values())[int(0.95 * (len(waits) - 1))],
        memory_begin=memory_begin,
        memory_end=memory_end,
    )


def prepared(folder: Path, cells: Path) -> Harness:
    """Return a challenge for chaos."""
    return Harness(folder, cells=cells, settings=SANDBOX, changes=QUICK)
