"""``python -m tests.benchmarks.bench_scaling_workers``: many submissions through two workers on PostgreSQL, with chaos.

The sandbox spoils answers, and every few submissions one of the workers vanishes without a word and a new one comes. Time is the
sandbox's, moved by the workers' steps. What counts: nothing lost, nothing answered twice with different words, calls within the budget.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from datetime import datetime, timedelta
from pathlib import Path

from tests.worker.postgres_server import server
from tests.worker.stage import AHEAD, FaultPlan, Stage, embeddings, score_ahead
from tests.worker.test_postgres_worker import Colleague, know_cells, second_machine
from worker.sandbox import ManualClock
from worker.states import State

BUDGET = 50  # calls a minute
SPOILT = 0.02  # share of answers


def main() -> None:
    """Play, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=60, help="1,000 take an hour or more on two cores")
    parser.add_argument("--teams", type=int, default=20)
    parser.add_argument("--deaths", type=int, default=3)
    options = parser.parse_args()
    with server() as postgres, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "ahead").mkdir()
        (folder / "one").mkdir()
        score_ahead(folder / "ahead", folder / "cells.json")
        stage = Stage(
            folder / "one",
            clock=ManualClock(),
            settings={"throttle_per_minute": 60, "faults": FaultPlan(probability=SPOILT)},
            changes={
                "state": postgres.url(postgres.fresh()),
                "evalai": {"requests_per_minute": BUDGET, "poll_every": 10, "reconcile_every": 60},
                "leaderboard": {"publish_every": 600},
            },
            rng=random.Random(1),
        )
        with stage:
            know_cells(stage, folder / "cells.json")
            play(stage, folder, options.submissions, options.teams, options.deaths)


def play(stage: Stage, folder: Path, submissions: int, teams: int, deaths: int) -> None:
    """Submit everything, let two workers work it off while they die now and then, and count."""
    pks = [
        stage.submit(f"team {number % teams}", embeddings(number % AHEAD)) for number in range(submissions)
    ]
    elsewhere = second_machine(stage, folder / "two")
    crew = [Colleague(stage, "one-0"), Colleague(stage, "two-0", path=elsewhere)]
    clock, began, died = crew[0].clock, time.perf_counter(), 0
    first_moment = clock.now()
    done = 0
    while done < submissions:
        moved = False
        for one in crew:
            moved |= one.step()
        if not moved:
            if any(one.busy for one in crew):
                threading.Event().wait(0.01)
                clock.advance(0.01)
            else:
                clock.advance(1)
        states = crew[0].states().values()
        done = sum(state == State.PUBLISHED for state in states)
        answered = sum(state in (State.POSTED, State.PUBLISHED) for state in states)
        if answered >= (died + 1) * submissions / (deaths + 1) and died < deaths:
            died += 1
            which = died % 2
            crew[which].die()
            path = elsewhere if which else stage.path
            crew[which] = Colleague(stage, f"{('one', 'two')[which]}-{died}", path=path)
    report(stage, crew, pks, died, time.perf_counter() - began, clock.now() - first_moment)
    for one in crew:
        one.stop()


def report(
    stage: Stage, crew: list[Colleague], pks: list[int], died: int, wall_s: float, span: timedelta
) -> None:
    """Print the count."""
    posts = {pk: stage.posts(pk) for pk in pks}
    lost = sum(stage.status(pk) != "finished" for pk in pks)
    repeated = sum(len(found) > 1 for found in posts.values())
    differing = sum(len({str(sorted(post.items())) for post in found}) > 1 for found in posts.values())
    requests = [entry for entry in stage.evalai.journal.requests() if entry.origin == "api"]
    errands = [entry.at for entry in requests if "/challenges/" not in entry.path]
    everything = [entry.at for entry in requests]
    throttled = sum(entry.status == 429 for entry in requests)
    with crew[0].store.read() as tx:
        tried = [attempt for attempt in tx.attempts() if attempt["kind"] == "evaluate"]
    outcomes = {str(row["outcome"]): 0 for row in tried}
    for row in tried:
        outcomes[str(row["outcome"])] += 1
    lines = [
        f"{len(pks)} submissions, {died} workers killed: {wall_s:.0f} s here, {span.total_seconds() / 3600:.1f} h of EvalAI's time",
        f"lost {lost}, posted more than once {repeated} (with different words {differing})",
        f"calls in the fullest minute {fullest(errands)} of {BUDGET} (with what is read at starts {fullest(everything)} of 60), "
        f"{throttled} refused, {len(everything) / len(pks):.1f} a submission",
        f"evaluations by outcome {outcomes}, by {len({row['worker'] for row in tried})} workers",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def fullest(calls: list[datetime]) -> int:
    """Return the most calls in any minute."""
    times = sorted(call.timestamp() for call in calls)
    return max(bisect_left(times, begin + 60) - index for index, begin in enumerate(times))


if __name__ == "__main__":
    main()
