"""The benchmark of the torch engine: the evaluation job of 2025 on a GPU, against the compiled kernel on the same machine.

``python -m tests.benchmarks.bench_gpu`` prints the probes' time in a warm process, the time of the whole job in new processes and of its
parts, the device's memory, and how well both engines agree fold by fold. Without a CUDA device it compares them on the CPU with a small
job.
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
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from scoring.engines import Unit, available_cores, fold_block, make_engine
from scoring.engines.base import Engine
from scoring.engines.fold_memory import footprint
from scoring.engines.torch import TOLERANCE, TorchEngine
from scoring.protocol import Recipe
from scoring.provenance import machine
from scoring.randomness import held_out
from scoring.randomness.fold_draws import draw_folds
from scoring.warm import warm
from tests.benchmarks import challenge_data

ROOT = Path(__file__).parents[2]
FOLDS = 200


class TimedBlock(fold_block.FoldBlock):
    """A block that measures how long the recording of its graph takes."""

    recordings: list[float] = []

    def record_epoch(self, stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
        """See :meth:`scoring.engines.fold_block.FoldBlock.record_epoch`."""
        begun = time.perf_counter()
        graph = super().record_epoch(stream)
        torch.cuda.synchronize()
        self.recordings.append(time.perf_counter() - begun)
        return graph


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder for the generated files; kept, and used again")
    parser.add_argument("--rounds", type=int, default=3, help="turns of the two engines")
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--folds", type=int, default=FOLDS)
    options = parser.parse_args(arguments)
    warm()
    found = machine()
    _say(
        f"Measured on {datetime.now(UTC):%Y-%m-%d} with `python -m tests.benchmarks.bench_gpu` on {found['processor']},"
        f" {options.threads} of {available_cores()} cores, {platform.system()}; torch {torch.__version__};"
        f" load average at the start {os.getloadavg()[0]:.1f}."
    )
    if not torch.cuda.is_available():
        _say("PyTorch finds no CUDA device here, so this is a small comparison on the CPU.\n")
        _print_table(on_cpu(options))
        return
    properties = torch.cuda.get_device_properties(0)
    _say(f"GPU: {properties.name}, {properties.total_memory / 1e9:.0f} GB; CUDA {torch.version.cuda}.\n")
    fold_block.FoldBlock = TimedBlock  # type: ignore[misc]
    _print_table(on_gpu(options))


def on_cpu(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Compare the engines alternately on 3,000 x 1,024, four tasks and eight folds, by CPU time, which other processes hardly change."""
    unit = _unit(3000, "rrrc", folds=8, seed=1)
    engines: dict[str, Engine] = {
        "local": make_engine("local", threads=options.threads),
        "torch": TorchEngine(device="cpu", threads=options.threads),
    }
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    scores: dict[str, np.ndarray] = {}
    for name, engine in engines.items():
        engine.score(replace(unit, recipe=replace(unit.recipe, epochs=1)))
        scores[name] = np.empty(0)
    for _ in range(options.rounds):
        for name, engine in engines.items():
            begun = time.process_time()
            scores[name] = engine.score(unit)
            seconds[name].append(time.process_time() - begun)
    for name, times in seconds.items():
        yield f"{name}, 3,000 × 1,024, 4 tasks, 8 folds, processor time", _spread(times)
    ratios = [slow / quick for slow, quick in zip(seconds["torch"], seconds["local"], strict=True)]
    yield "torch takes, times local (median of the turns)", f"{statistics.median(ratios):.1f}"
    yield "largest difference of a fold score", _difference(scores["torch"], scores["local"])


def on_gpu(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Measure the job of 2025: nine tasks on five row sets of 1,024 dimensions."""
    units = [
        _unit(samples, _types(row_set), folds=options.folds, seed=row_set)
        for row_set, samples in enumerate(challenge_data.ROW_SETS)
    ]
    threads = options.threads
    kernel, gpu = make_engine("local", threads=threads), TorchEngine(device="cuda", threads=threads)
    expected = np.concatenate([scores.ravel() for scores in kernel.score_all(units)])
    walls: list[float] = []
    for _ in range(1 + options.rounds):
        TimedBlock.recordings.clear()
        torch.cuda.reset_peak_memory_stats()
        begun = time.perf_counter()
        found = np.concatenate([scores.ravel() for scores in gpu.score_all(units)])
        walls.append(time.perf_counter() - begun)
    yield f"probes, {options.folds} folds, first time in a process", f"{walls[0]:.2f} s"
    yield "probes, later", _spread(walls[1:])
    yield "of these, drawing random numbers on the CPU", f"{_drawing(units, threads):.2f} s"
    yield f"of these, recording {len(TimedBlock.recordings)} graphs", f"{sum(TimedBlock.recordings):.3f} s"
    yield "largest difference of a fold score", _difference(found, expected)
    yield "peak memory on the device", f"{torch.cuda.max_memory_allocated() / 1e9:.2f} GB"
    estimates = (footprint(unit).shared + options.folds * footprint(unit).per_fold for unit in units)
    yield "estimated memory of the largest row set", f"{max(estimates) / 1e9:.2f} GB"
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.data or Path(temporary) / "data"
        challenge_data.generate(folder)
        jobs: dict[str, list[dict[str, float]]] = {"torch": [], "local": []}
        for _ in range(options.rounds):
            for engine, runs in jobs.items():
                runs.append(_cold(engine, folder, options))
    for engine, runs in jobs.items():
        for part in ("wall", "probes"):
            yield f"job in a new process, {engine}, {part}", _spread([run[part] for run in runs])
    ratios = [slow["wall"] / quick["wall"] for slow, quick in zip(jobs["local"], jobs["torch"], strict=True)]
    yield "job: local takes, times torch (median of the turns)", f"{statistics.median(ratios):.2f}"


def _drawing(units: list[Unit], threads: int) -> float:
    """Measure the time for only the random numbers of all units."""
    begun = time.perf_counter()
    for unit in units:
        samples, dim = unit.rows.shape
        draw_folds(
            unit.split_seeds,
            unit.training_seeds,
            rows=samples,
            tested=held_out(samples, unit.recipe.test_size),
            dim=dim,
            epochs=unit.recipe.epochs,
            threads=threads,
        )
    return time.perf_counter() - begun


def _cold(engine: str, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Run the job in a new process, from CSV to JSON."""
    command = [sys.executable, "-m", "tests.benchmarks.scoring_job", "challenge", str(folder)]
    command += [str(options.folds), str(options.threads), str(folder / f"{engine}.json"), engine]
    begun = time.perf_counter()
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - begun
    return {"wall": wall, "probes": json.loads(answer.stdout)["times"]["probes"]}


def _types(row_set: int) -> str:
    """Return the kinds of a row set's tasks, one letter each."""
    return "".join(kind[0] for _, kind, place in challenge_data.TASKS if place == row_set)


def _unit(samples: int, types: str, *, folds: int, seed: int) -> Unit:
    """Make a row set whose tasks can partly be learned."""
    random = np.random.default_rng(seed)
    rows = random.standard_normal((samples, challenge_data.DIM), dtype=np.float32)
    signal = rows[:, : len(types)].T + 0.3 * random.standard_normal((len(types), samples), dtype=np.float32)
    low, high = signal.min(axis=1, keepdims=True), signal.max(axis=1, keepdims=True)
    classification = np.array([kind == "c" for kind in types])
    targets = np.where(classification[:, None], signal > 0, (signal - low) / (high - low))
    seeds = random.integers(0, 2**32, size=(2, folds), dtype=np.uint32)
    return Unit(
        rows=rows,
        targets=targets.astype(np.float32),
        classification=classification,
        split_seeds=seeds[0],
        training_seeds=seeds[1],
        recipe=Recipe(),
    )


def _difference(found: np.ndarray, expected: np.ndarray) -> str:
    """Compare by the engine's tolerance; a sample at the threshold may change F1 by one count."""
    apart = np.abs(found - expected) / np.maximum(1, np.abs(expected))
    return f"{apart.max():.1e}; {int((apart > TOLERANCE).sum())} of {apart.size:,} above {TOLERANCE:g}"


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s ({min(seconds):.2f}–{max(seconds):.2f})"


def _print_table(rows: Iterator[tuple[str, str]]) -> None:
    _say("| what | measured |\n|---|---|")
    for what, measured in rows:
        _say(f"| {what} | {measured} |")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
