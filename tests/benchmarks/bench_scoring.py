"""The benchmark of the scoring core: jobs in cold processes, their parts, the plain loop, the machine's limits, scaling.

``python -m tests.benchmarks`` prints everything; ``--write`` puts it into docs/performance.md. Jobs and the plain loop take turns, so that
a busy machine slows both, and ratios are taken pair by pair. Still, run it on an idle machine, because absolute seconds mean little on a
busy one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from scoring.engines import Unit
from tests.benchmarks import challenge_data, limits

ROOT = Path(__file__).parents[2]
FOLDS, DEVELOPMENT_FOLDS, EPOCHS, BATCH = 200, 40, 20, 64
BEGIN, END = "<!-- scoring benchmark: begin -->", "<!-- scoring benchmark: end -->"


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; with ``--write`` also into docs/performance.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder for the generated files; kept, and used again")
    parser.add_argument("--rounds", type=int, default=3, help="turns of jobs and plain loop")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write the figures into docs/performance.md")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.data or Path(temporary) / "data"
        sections = list(report(folder, options))
    if options.write:
        _write(ROOT / "docs" / "performance.md", "\n".join(sections))


def report(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """Yield the report section by section, each printed as soon as it is measured."""
    from scoring.engines.registry import warm

    _say("Generating data and compiling (not timed)")
    challenge_data.generate(folder)
    warm()
    yield _say(_heading())
    jobs, plain = _take_turns(folder, options)
    yield _say(_jobs(jobs, plain, options))
    yield _say(_limits(jobs["challenge"], options.threads))


def _heading() -> str:
    from scoring.scorecard import machine, versions

    about, found = machine(), versions("local")
    load = os.getloadavg()[0]
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} with `python -m tests.benchmarks` on {about['processor']},"
        f" {about['cores']} cores, {platform.system()}; Python {found['python']}, numpy {found['numpy']}, numba {found['numba']};"
        f" load average at the start {load:.1f}.\n"
    )


# Jobs against the plain loop


def _take_turns(
    folder: Path, options: argparse.Namespace
) -> tuple[dict[str, list[dict]], list[dict[str, float]]]:
    jobs: dict[str, list[dict]] = {"challenge": [], "replay": [], "development": []}
    plain: list[dict[str, float]] = []
    for turn in range(options.rounds):
        for mode, runs in jobs.items():
            folds = DEVELOPMENT_FOLDS if mode == "development" else FOLDS
            runs.append(_cold(mode, folder, folds, options.threads))
            _say(f"turn {turn + 1}: {mode} {runs[-1]['wall']:.2f} s")
        plain.append(_plain_seconds_per_fold(folder))
        _say(f"turn {turn + 1}: plain loop {sum(plain[-1].values()):.2f} s for one fold of each task")
    return jobs, plain


def _jobs(jobs: dict[str, list[dict]], plain: list[dict[str, float]], options: argparse.Namespace) -> str:
    walls = {mode: statistics.median(run["wall"] for run in runs) for mode, runs in jobs.items()}
    peak = max(run["peak"] for run in jobs["challenge"] + jobs["replay"]) / 1e6
    full = [FOLDS * sum(seconds.values()) for seconds in plain]
    ratios = {
        mode: statistics.median(slow / run["wall"] for slow, run in zip(full, jobs[mode], strict=True))
        for mode in ("challenge", "replay")
    }
    golden, oracle = _golden_agreement(), _oracle_agreement()
    spread = {
        mode: f"{min(run['wall'] for run in runs):.2f}–{max(run['wall'] for run in runs):.2f} s"
        for mode, runs in jobs.items()
    }
    rows = [
        (
            "evaluation job in a challenge (9 tasks, K = 200), CSV to JSON",
            f"{walls['challenge']:.2f} s, {ratios['challenge']:.0f}×",
            spread["challenge"],
        ),
        (
            "the same with `neuco-worker score` (*replay* of NeuCo-Bench's random numbers, seed 42)",
            f"{walls['replay']:.2f} s, {ratios['replay']:.0f}×",
            spread["replay"],
        ),
        ("development job (5 tasks, K = 40)", f"{walls['development']:.2f} s", spread["development"]),
        ("peak memory of the process", f"{peak:.0f} MB", ""),
        ("largest difference from NeuCo-Bench's results, fold / Q", f"{golden[0]:.1e} / {golden[1]:.1e}", ""),
        ("largest difference from the plain loop with the same seeds, fold", f"{oracle:.1e}", ""),
    ]
    parts = _table(
        ("part", *jobs),
        [
            (part, *(_median_part(runs, part) for runs in jobs.values()))
            for part in ("reading", "probes", "total")
        ],
    )
    slow = statistics.median(full)
    return (
        _table((f"on {options.threads} threads", "measured", "range over the rounds"), rows)
        + "\nEach job runs in a new process. × says how many times longer the plain PyTorch loop takes (DataLoader, torchmetrics, one"
        " process, one thread): the median of this ratio over the rounds. The loop takes"
        f" {slow:.0f} s for the evaluation job, extrapolated from {options.rounds} folds of each task."
        f" The jobs and the loop ran alternately.\n\nParts of each job, median seconds:\n\n{parts}"
    )


def _cold(mode: str, folder: Path, folds: int, threads: int) -> dict:
    output = folder / f"scores_{mode}.json"
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.scoring_job",
        mode,
        str(folder),
        str(folds),
        str(threads),
        str(output),
    ]
    begun = time.perf_counter()
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - begun
    found = json.loads(answer.stdout)
    times = found["times"]
    known = sum(times.get(part, 0.0) for part in ("reading", "labels", "probes", "other scoring"))
    return {
        "wall": wall,
        "peak": found["peak"],
        "parts": {**times, "interpreter and imports": wall - known, "total": wall},
    }


def _median_part(runs: list[dict], part: str) -> str:
    seconds = [run["parts"].get(part) for run in runs]
    return "" if seconds[0] is None else f"{statistics.median(seconds):.2f}"


def _plain_seconds_per_fold(folder: Path) -> dict[str, float]:
    """Measure one fold of each task in the usual PyTorch loop, with one torch thread, which is the fastest setting."""
    import torch

    from tests.scoring.harness.usual_loop import usual_loop

    torch.set_num_threads(1)
    seconds = {}
    for name, kind, row_set in challenge_data.TASKS:
        unit = _unit(
            challenge_data.ROW_SETS[row_set],
            challenge_data.DIM,
            tasks=1,
            folds=1,
            classification=kind == "cls",
        )
        begun = time.perf_counter()
        usual_loop(unit, 0, 0)
        seconds[name] = time.perf_counter() - begun
    return seconds


def _golden_agreement() -> tuple[float, float]:
    from scoring.neuco_bench.run import score_run
    from tests.scoring.test_replay import GOLDEN, load

    worst_fold, worst_q = 0.0, 0.0
    for folder in sorted(GOLDEN.iterdir()):
        expected = json.loads((folder / "expected.json").read_text())["tasks"]
        for task in score_run(*load(folder)).tasks:
            golden = expected[task.data.name]
            scores = np.array([fold.score for fold in task.training.folds])
            worst_fold = max(worst_fold, float(np.max(np.abs(scores - golden["folds"]))))
            worst_q = max(worst_q, abs(task.quality.q - golden["q"]))
    return worst_fold, worst_q


def _oracle_agreement() -> float:
    from scoring.engines import LocalEngine
    from tests.scoring.harness.usual_loop import usual_scores

    worst = 0.0
    for samples in challenge_data.ROW_SETS:
        for classification in (False, True):
            unit = _unit(samples, challenge_data.DIM, tasks=1, folds=1, classification=classification)
            difference = LocalEngine(threads=1).score(unit) - usual_scores(unit)
            worst = max(worst, float(np.max(np.abs(difference))))
    return worst


# The machine


def _limits(jobs: list[dict], threads: int) -> str:
    dim, samples = challenge_data.DIM, max(challenge_data.ROW_SETS)
    multiply = limits.multiply_add_rate(threads)
    shuffled = limits.read_rate(threads, samples, dim)
    trained = sum(challenge_data.ROW_SETS[row_set] for _, _, row_set in challenge_data.TASKS)
    work = FOLDS * EPOCHS * trained * dim * (0.9 * 4 + 0.1 * 2)
    traffic = FOLDS * EPOCHS * sum(challenge_data.ROW_SETS) * dim * 4
    unit = _unit(samples, dim, tasks=2, folds=8 * threads)
    seconds = min(_time(unit, threads) for _ in range(3))
    reached = len(unit.split_seeds) * EPOCHS * samples * dim * 2 * (0.9 * 4 + 0.1 * 2) / seconds
    job, reading = (statistics.median(run["parts"][part] for run in jobs) for part in ("total", "reading"))
    least = traffic / shuffled + reading
    table = _table(
        ("limit", "rate", "evaluation job at that rate"),
        [
            (
                "float32 multiply-adds in registers",
                f"{multiply / 1e9:.0f} GFLOP/s",
                f"{work / multiply:.2f} s",
            ),
            (
                "rows read in random order (19 MB)",
                f"{shuffled / 1e9:.0f} GB/s",
                f"{traffic / shuffled:.2f} s",
            ),
        ],
    )
    return (
        f"Limits of the machine, measured in the same run on all threads together:\n\n{table}\n"
        f"The evaluation job in a challenge takes {job / least:.2f} times as long as reading the rows at this rate and the CSV."
        f" The kernel reaches {reached / 1e9:.0f} GFLOP/s with two"
        " tasks on the largest row set.\n"
    )


def _unit(
    samples: int, dim: int, *, tasks: int, folds: int, epochs: int = EPOCHS, classification: bool = False
) -> Unit:
    from scoring.kernel import aligned
    from scoring.protocol import Recipe

    random = np.random.default_rng(samples)
    rows = aligned((samples, dim))
    rows[:] = random.standard_normal((samples, dim), dtype=np.float32)
    labels = rows[:, :tasks].T + 0.3 * random.standard_normal((tasks, samples), dtype=np.float32)
    low, high = labels.min(axis=1, keepdims=True), labels.max(axis=1, keepdims=True)
    return Unit(
        rows=rows,
        targets=np.ascontiguousarray(
            (labels > 0) if classification else (labels - low) / (high - low), dtype=np.float32
        ),
        classification=np.full(tasks, classification),
        split_seeds=np.arange(folds, dtype=np.uint32),
        training_seeds=np.arange(folds, dtype=np.uint32),
        recipe=Recipe(epochs=epochs),
    )


def _time(unit: Unit, threads: int) -> float:
    from scoring.engines import LocalEngine

    begun = time.perf_counter()
    LocalEngine(threads=threads).score(unit)
    return time.perf_counter() - begun


# Output


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _say(text: str) -> str:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
    return text


def _write(path: Path, text: str) -> None:
    """Replace the text between the markers."""
    before, rest = path.read_text().split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n\n{text.strip()}\n\n{END}{after}")


if __name__ == "__main__":
    main()
