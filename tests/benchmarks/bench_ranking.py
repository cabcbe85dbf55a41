"""Time the bootstrap at full size, and a whole board of 1,000 entries.

Run with ``python -m tests.benchmarks.bench_ranking``. Bootstrap: 2,000 replicates, 100 teams x 20 tasks x 200 folds; seconds and peak
memory for tasks on 1, 5 and 20 row sets. The target is less than 5 s on 2 cores. Board: 1,000 scored submissions of 100 teams on the nine
tasks of 2025's evaluation phase, recomputed after the last submission and rendered. The target is less than 2 s. ``--teams 1000`` gives
each submission its own row.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from leaderboard import Entry, PhaseSite, PhaseSnapshot, Rules, Site
from leaderboard.ranking import next_board
from leaderboard.ranking.uncertainty import FoldTable, bootstrap
from leaderboard.rendering import render
from tests.benchmarks.challenge_data import TASKS

START = datetime(2026, 1, 1, tzinfo=UTC)
ENTRIES = 1000
FOLDS = 200


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teams", type=int, default=100)
    teams = parser.parse_args().teams
    _bootstrap()
    _board(teams)


def _bootstrap() -> None:
    random = np.random.default_rng(0)
    folds = tuple(
        0.5 + 0.2 * random.random((100, 1)) + 0.03 * random.standard_normal((100, FOLDS)) for _ in range(20)
    )
    everyone = np.ones(100, bool)
    for row_sets in (1, 5, 20):
        table = FoldTable(row_sets=tuple(f"rows {i % row_sets}" for i in range(20)), folds=folds, seed="dev")
        start = time.perf_counter()
        bootstrap(table, epsilon=0.02, weighs=everyone, numbered=everyone)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        sys.stdout.write(f"{row_sets:2d} row sets: {seconds:.2f} s, peak {peak} MiB\n")


def _board(teams: int) -> None:
    random = np.random.default_rng(0)
    entries = tuple(
        Entry(
            submission=number + 1,
            team_key=number % teams + 1,
            team=f"team {number % teams}",
            method="",
            submitted_at=START + timedelta(minutes=number),
            public=True,
            baseline=False,
            scores={
                task: tuple((0.5 + 0.2 * random.random() + 0.03 * random.standard_normal(FOLDS)).tolist())
                for task, _, _ in TASKS
            },
        )
        for number in range(ENTRIES)
    )
    phase = PhaseSnapshot(
        codename="eval",
        title="eval",
        rules=Rules(),
        row_sets={task: f"rows {row_set}" for task, _, row_set in TASKS},
        entries=entries,
    )
    before = next_board(replace(phase, entries=entries[:-1]), (), at=START)
    assert before is not None
    wall, used = time.perf_counter(), time.process_time()
    after = next_board(phase, (before,), at=START + timedelta(days=1))
    assert after is not None
    computed, used_computing = time.perf_counter(), time.process_time()
    site = PhaseSite(codename="eval", title="eval", rules=phase.rules, history=(before, after))
    render(Site(title="benchmark", phases=(site,)), readme=None)
    sys.stdout.write(
        f"{ENTRIES} entries of {teams} teams: board {computed - wall:.2f} s (of the processor {used_computing - used:.2f}), "
        f"files {time.perf_counter() - computed:.2f} s ({time.process_time() - used_computing:.2f})\n"
    )


if __name__ == "__main__":
    main()
