"""How long a submission's process takes from its order to the result, if it is started for the order or kept ready before.

``python -m tests.benchmarks.bench_child`` scores the challenge-size file in the development and the evaluation phase, with both kinds of
process alternately, and compares them pair by pair. The data and the record are made before and are not timed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import yaml

from scoring.warm import warm
from tests.benchmarks.challenge_data import DIM, generate
from worker.challenge.configuration import Configuration, load
from worker.challenge.files import read_phases
from worker.challenge.setups import PhaseSetup
from worker.evaluation.evaluate_child import order_for
from worker.runtime.children import Child, launch
from worker.runtime.process_group import ProcessGroup

MODULE = "worker.evaluation.evaluate_child"
LOOK_S, STILL_LOOKS = 0.25, 8  # a process that used no CPU time in this many looks has loaded its code


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        configuration = challenge(Path(temporary), options.threads)
        file = Path(temporary) / "data" / "submission.csv"
        warm()
        sys.stdout.write(f"{options.rounds} rounds, load average at the start {os.getloadavg()[0]:.1f}\n")
        for name, setup in read_phases(configuration).items():
            pairs = []
            for _ in range(options.rounds):
                cold = seconds(configuration, setup, file, launch(MODULE))
                group = launch(MODULE, ahead=True)
                wait_until_loaded(group.pid)
                pairs.append((cold, seconds(configuration, setup, file, group)))
            cold_s, ready_s = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(ready / cold for cold, ready in pairs)
            sys.stdout.write(
                f"{name}: started on request {cold_s:.2f} s, kept ready {ready_s:.2f} s, ratio {ratio:.2f}\n"
            )


def challenge(folder: Path, threads: int) -> Configuration:
    """Write a challenge with the phases dev (5 tasks, 40 folds) and eval (9 tasks, 200 folds) of 2025."""
    data = generate(folder / "data")
    secret = folder / "challenge.secret"
    secret.write_text("5a" * 32)
    secret.chmod(0o600)
    (folder / "token").write_text("none")
    phases = {
        "dev": {"split": "dev", "tasks": str(data.development_tasks), "ids": str(data.ids), "folds": 40},
        "eval": {"split": "eval", "tasks": str(data.tasks), "ids": str(data.ids), "folds": 200},
    }
    path = folder / "challenge.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "challenge": {"title": "Benchmark"},
                "evalai": {
                    "server": "http://127.0.0.1:9",
                    "challenge": 1,
                    "queue": "q",
                    "token": "file:token",
                },
                "phases": phases,
                "submission": {"embedding_dim": DIM},
                "scoring": {"threads": threads},
                "leaderboard": {"repository": "./board.git"},
            }
        )
    )
    return load(path)


def seconds(configuration: Configuration, setup: PhaseSetup, file: Path, group: ProcessGroup) -> float:
    """Give a process its order, and return the seconds until its result."""
    woken = threading.Event()
    folder = file.parent / "child"
    begun = time.perf_counter()
    order = order_for(setup, configuration, file, folder=folder, tasks=tuple(setup.tasks))
    child = Child(group, order, folder=folder, wake=woken.set)
    try:
        while True:
            woken.wait()
            woken.clear()
            kinds = {message["kind"] for message in child.messages()}
            if "done" in kinds:
                return time.perf_counter() - begun
            if "error" in kinds or child.ended() is not None:
                raise RuntimeError(child.errors())
    finally:
        child.close()


def wait_until_loaded(pid: int) -> None:
    """Wait until a process has loaded its code and is idle."""
    process, used, still = psutil.Process(pid), 0.0, 0
    while still < STILL_LOOKS:
        time.sleep(LOOK_S)
        now = sum(process.cpu_times()[:2])
        still, used = (still + 1 if now == used and used > 0 else 0), now


if __name__ == "__main__":
    main()
