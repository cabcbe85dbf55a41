"""Measure what the worker needs with 100, 1,000 and 10,000 submissions of 300 teams on 9 tasks of 40 folds.

Run with ``python -m tests.benchmarks.bench_growth``; ``--sizes 100 1000`` is quicker. The earlier submissions have made-up scores, which
the worker's own functions register; there is a board for every tenth one. The measured ones go through sandbox, kernels and git. Times are
processor time: of the loop's thread, of the daemon without its children, or of a command. The daemon allocates memory as in a service.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import structlog

from leaderboard import Board
from leaderboard.ranking import append_board, following_board, order, to_json
from scoring.metrics import quality
from scoring.scorecard import TaskScore
from tests.benchmarks.bench_verify import measured
from tests.worker.harness.harness import DIM, ROOT, Harness, StepWorker
from worker.answers import answers
from worker.challenge.configuration import load
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import recorded
from worker.challenge.signing import Signer, signer
from worker.evaluation.act import ScoreSubmission
from worker.fairness.receipts import close_batch
from worker.fairness.register import LATEST, RegisterReplay, register
from worker.sandbox.state import Team
from worker.state import State, Transaction, schema

PHASE, TEAMS, TASKS, FOLDS, ROW_SETS, ROWS = "dev", 300, 9, 40, 5, 2600
FIRST = 1_000_000  # number of the first earlier submission
BOARD_EVERY = 10  # submissions
MEASURED = 5  # submissions
IDLE_STEPS = 200
UNIT = ROOT / "deploy/systemd/neuco-worker@.service"
ALLOCATOR = re.compile(r"Environment=(MALLOC_\w+)=(\d+)")  # how memory is allocated in a service


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000])
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            for name, figure in figures(Path(folder), size):
                sys.stdout.write(f"{size} submissions, {name}: {figure}\n")
                sys.stdout.flush()


def figures(folder: Path, size: int) -> Iterator[tuple[str, str]]:
    """Fill a challenge, and yield the name and the value of each figure."""
    (folder / "large").mkdir()
    ids = write_tasks(folder / "large")
    (folder / "large.txt").write_text("".join(f"{name}\n" for name in ids))
    files = {"tasks": "./large", "ids": "./large.txt", "folds": FOLDS}
    with Harness(folder, changes={"phases": {PHASE: files}}) as harness:
        teams = [harness.evalai.add_team(f"Team {number}") for number in range(TEAMS)]
        with harness.worker():
            fill(harness, teams, size)
        yield from in_process(harness, ids)
        yield from as_daemon(harness, ids)
        config = ("--config", str(harness.path))
        commands = {
            "status": ("status",),
            "submissions": ("submissions",),
            "submissions --limit 20": ("submissions", "--limit", "20"),
            "board report": ("board", "report", "--phase", PHASE, "--out", str(folder / "report")),
        }
        for name, arguments in commands.items():
            _, megabytes, seconds = measured(*arguments, *config)
            yield name, f"{seconds:.1f} s, {megabytes:.0f} MB"


def write_tasks(folder: Path) -> list[str]:
    """Write the tasks, and return all ids."""
    random = np.random.default_rng(0)
    ids = [f"image_{number:05d}" for number in range(ROW_SETS * ROWS)]
    for number in range(TASKS):
        start = number % ROW_SETS * ROWS
        labels = random.standard_normal(ROWS)
        rows = zip(ids[start : start + ROWS], labels, strict=True)
        text = "id,label\n" + "".join(f"{name},{label:.6f}\n" for name, label in rows)
        (folder / f"task{number}__regr.csv").write_text(text)
    return ids


def submission(ids: list[str], seed: int) -> bytes:
    """Return the file of a submission."""
    values = np.random.default_rng(seed).standard_normal((len(ids), DIM))
    rows = (
        f"{name}," + ",".join(f"{value:.4f}" for value in row) for name, row in zip(ids, values, strict=True)
    )
    return ("id," + ",".join(map(str, range(DIM))) + "\n" + "\n".join(rows) + "\n").encode()


def fill(harness: Harness, teams: list[Team], size: int) -> None:
    """Write earlier submissions, one per minute until now, as if they had been scored and answered, with their boards."""
    random, replay, boards = np.random.default_rng(1), RegisterReplay(), list[Board]()
    skills = random.random(TEAMS)
    now = datetime.now(UTC)
    with closing(harness.store()) as store:
        with store.write() as tx:
            record, key = recorded(tx, PHASE), signer(tx, load(harness.path))
            phase_pk = harness.evalai.phase_pk(PHASE)
        for first in range(0, size, BOARD_EVERY):
            with store.write() as tx:
                numbers = range(first, min(first + BOARD_EVERY, size))
                for number in numbers:
                    team = teams[number % TEAMS]
                    at = now - timedelta(minutes=size - number)
                    level = 0.3 + 0.2 * skills[number % TEAMS]
                    folds = (level + 0.05 * random.standard_normal((TASKS, FOLDS))).clip(0, 1)
                    _receive(tx, FIRST + number, team, at, phase_pk)
                    _score(tx, key, replay, record, FIRST + number, folds, now)
                register(tx, now)
                close_batch(tx, key, made_at=tx.attestation_time(now))
                _make_board(tx, replay, boards, now)


def _receive(tx: Transaction, pk: int, team: Team, at: datetime, phase_pk: int) -> None:
    tx._connection.execute(
        schema.submissions.insert().values(
            pk=pk,
            state=State.SCORING,
            first_seen_at=at,
            message_phase=phase_pk,
            phase_pk=phase_pk,
            phase=PHASE,
            team_key=team.pk,
            team=team.name,
            submitted_at=at,
            public_at_first=True,
            public=True,
            created_by=team.members[0],
            by_host=False,
            by_member=True,
            method="a method",
            evalai_shows='{"deleted": true}',  # so that it is not looked for there
            read_at=at,
            running_at=at,
            file_hash=f"{pk:064x}",
            content_hash=f"{pk:064x}",
        )
    )


def _score(
    tx: Transaction,
    key: Signer,
    replay: RegisterReplay,
    record: PhaseRecord,
    pk: int,
    folds: np.ndarray,
    now: datetime,
) -> None:
    epsilon = record.protocol.recipe.epsilon
    scores = [
        TaskScore(
            task=task.name,
            version=task.version,
            type=task.type.value,
            row_set=task.row_set,
            test_parts=(),
            folds=tuple(row.tolist()),
            mean=float(row.mean()),
            std=float(row.std()),
            q=quality(row.tolist(), epsilon).q,
            failed_folds=0,
            seconds=1.0,
        )
        for task, row in zip(record.tasks, folds, strict=True)
    ]
    tx.save_cells(f"{pk:064x}", record.protocol.hash, PHASE, scores, provenance={})
    row = tx.get(pk)
    assert row is not None
    registered = answers.register_row(tx, key, replay, row, record, now=now)
    assert registered is not None
    q_mean, value, receipt = registered
    answer = answers.finished(
        value,
        rules=record.rules,
        public=True,
        board=None,
        notes=(),
        zarr_suffix_removed=False,
        receipt=receipt,
    ).to_json()
    tx.note(pk, state=State.PUBLISHED, answer=answer, posted=answer, q_mean=q_mean)


def _make_board(tx: Transaction, replay: RegisterReplay, boards: list[Board], now: datetime) -> None:
    """Store a board; only its figures are left out, because computing them takes two seconds."""
    snapshot = replay.at(tx)[PHASE].snapshot(LATEST)
    assert snapshot is not None
    before = boards[-1] if boards else None
    board = following_board(snapshot, order(snapshot), before, at=tx.attestation_time(now))
    tx.save_board(PHASE, board.sequence, to_json(board))
    append_board(boards, board)


def in_process(harness: Harness, ids: list[str]) -> Iterator[tuple[str, str]]:
    """Measure steps that find nothing, and the transactions that store scores, on the thread of the loop."""
    taken_s: list[float] = []
    outcome = ScoreSubmission.outcome

    def timed(*arguments: Any) -> None:
        begun = time.thread_time()
        outcome(*arguments)
        taken_s.append(time.thread_time() - begun)

    with pytest.MonkeyPatch.context() as patch, harness.worker() as worker:
        patch.setattr(ScoreSubmission, "outcome", timed)
        for seed in range(MEASURED):
            harness.submit(f"Team {seed}", submission(ids, seed))
            worker.drive()
        idle_s = list(idle(worker))
    yield "a step that finds nothing", f"{1e3 * statistics.median(idle_s):.1f} ms"
    yield "scoring's transaction", f"{1e3 * statistics.median(taken_s):.1f} ms"


def idle(worker: StepWorker) -> Iterator[float]:
    """Yield the seconds of steps that find nothing."""
    for _ in range(IDLE_STEPS):
        worker.clock.advance(0.001)
        begun, busy = time.thread_time(), worker.busy
        moved = worker.daemon.step(worker.clock.now())
        if not (moved or busy or worker.busy):
            yield time.thread_time() - begun


def as_daemon(harness: Harness, ids: list[str]) -> Iterator[tuple[str, str]]:
    """Measure the daemon's processor time and memory while submissions are scored, answered and published one by one."""
    os.environ |= dict(ALLOCATOR.findall(UNIT.read_text()))
    daemon = psutil.Process(harness.run().pid)
    taken_s = []
    for seed in range(MEASURED + 1):
        begun = _spent_s(daemon)
        pk = harness.submit(f"Team {seed}", submission(ids, 100 + seed))
        harness.until(partial(_is_published, harness, pk))
        taken_s.append(_spent_s(daemon) - begun)
    status = Path(f"/proc/{daemon.pid}/status").read_text()
    kilobytes = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
    daemon.terminate()
    daemon.wait()
    # The first one also pays for the start.
    yield "a published submission", f"{statistics.median(taken_s[1:]):.1f} s; the first {taken_s[0]:.1f} s"
    yield "memory of the daemon", f"{kilobytes * 1024 / 1e6:.0f} MB"


def _is_published(harness: Harness, pk: int) -> bool:
    return harness.states().get(pk) == State.PUBLISHED


def _spent_s(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return float(spent.user + spent.system)


if __name__ == "__main__":
    main()
