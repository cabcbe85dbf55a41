"""Measure scoring of a challenge-size submission: jobs in new processes against the plain PyTorch loop.

Run with ``python -m tests.benchmarks.bench_scoring`` on an idle machine. Jobs and loop take turns, so that a busy machine slows both, and
ratios are taken turn by turn.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.benchmarks import challenge_data
from tests.benchmarks.challenge_data import DIM, ChallengeData

FOLDS, DEVELOPMENT_FOLDS, EPOCHS = 200, 40, 20
JOBS = {"challenge": FOLDS, "replay": FOLDS, "development": DEVELOPMENT_FOLDS}
"""The jobs, with the folds of each."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="turns of jobs and plain loop")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--job", nargs=2, metavar=("JOB", "FOLDER"), help="only do a job, as in each new process"
    )
    options = parser.parse_args()
    if options.job:
        _job(options.job[0], challenge_data.generate(Path(options.job[1])), options.threads)
        return
    from scoring.engines.registry import warm
    from scoring.scorecard import machine, versions

    say(f"{machine()} {versions()}, load {os.getloadavg()[0]:.1f}")
    warm()
    seconds: dict[str, list[float]] = {name: [] for name in (*JOBS, "loop")}
    with tempfile.TemporaryDirectory() as temporary:
        challenge_data.generate(Path(temporary))
        for _ in range(options.rounds):
            for name in JOBS:
                command = [sys.executable, "-m", __spec__.name, "--job", name, temporary]
                begun = time.perf_counter()
                done = subprocess.run(
                    [*command, f"--threads={options.threads}"], capture_output=True, check=True, text=True
                )
                seconds[name].append(time.perf_counter() - begun)
                say(f"{name}: {seconds[name][-1]:.2f} s, {json.loads(done.stdout) / 1e6:.0f} MB")
            seconds["loop"].append(FOLDS * _one_fold_in_the_loop())
            say(f"plain loop: {seconds['loop'][-1]:.0f} s, extrapolated from one fold of each task")
    for name, measured in seconds.items():
        ratio = statistics.median(slow / quick for slow, quick in zip(seconds["loop"], measured, strict=True))
        say(
            f"{name}: median {statistics.median(measured):.2f} s ({min(measured):.2f}–{max(measured):.2f}), {ratio:.0f}×"
        )


def _job(name: str, data: ChallengeData, threads: int) -> None:
    """Score the submission from CSV to JSON, and print the peak memory."""
    sys.modules["scipy"] = None  # type: ignore[assignment] - only tests install it, and numba would import it
    from scoring.scorecard import peak_memory_bytes

    document = _replayed(data, threads) if name == "replay" else _scored(name, data, threads)
    (data.ids.parent / f"{name}.json").write_text(json.dumps(document))
    say(str(peak_memory_bytes()))


def _scored(name: str, data: ChallengeData, threads: int) -> object:
    """Score with secret seeds, as the worker does."""
    from scoring.engines import make_engine
    from scoring.evaluate import score_embeddings
    from scoring.inputs.tables import read_submission
    from scoring.protocol import Protocol, ids_hash
    from scoring.randomness import phase_key, secret_commitment
    from scoring.tasks import load_tasks

    ids, key = tuple(data.ids.read_text().split()), phase_key(b"benchmark", name)
    embeddings = read_submission(data.submission, ids, DIM, max_expanded_bytes=4 << 30)
    protocol = Protocol(
        phase=name,
        folds=JOBS[name],
        embedding_dim=DIM,
        ids_hash=ids_hash(ids),
        secret_commitment=secret_commitment(key),
    )
    tasks = load_tasks(data.tasks if name == "challenge" else data.development_tasks, ids)
    engine = make_engine("local", threads=threads)
    return score_embeddings(embeddings, tasks, protocol, key, engine=engine).to_json()


def _replayed(data: ChallengeData, threads: int) -> object:
    """Score with NeuCo-Bench's stream, as `neuco-worker score` does."""
    from scoring.neuco_bench.configuration import parse_settings
    from scoring.neuco_bench.labels import read_annotations
    from scoring.neuco_bench.material import read_material
    from scoring.neuco_bench.results import as_json, summary_document
    from scoring.neuco_bench.run import score_run

    recipe = {"epochs": EPOCHS, "batch_size": 64, "learning_rate": 0.001}
    document = {"k_folds": FOLDS, "embedding_dim": DIM, "probe_type": "linear", "probe_params": recipe}
    settings = parse_settings({**document, "enable_plots": False})
    material = read_material(data.submission, read_annotations(data.tasks), settings)
    report = score_run(material, settings, threads=threads)
    return as_json(summary_document(report, settings, experiment="replay"))


def _one_fold_in_the_loop() -> float:
    """Measure one fold of each task in the usual PyTorch loop, with one torch thread, which is the fastest setting."""
    import torch

    from scoring.engines import Unit
    from scoring.kernel import aligned
    from scoring.protocol import Recipe
    from scoring.reference import fold_score

    torch.set_num_threads(1)
    total = 0.0
    for _, kind, row_set in challenge_data.TASKS:
        random = np.random.default_rng(row_set)
        rows = aligned((challenge_data.ROW_SETS[row_set], DIM))
        rows[:] = random.standard_normal(rows.shape, dtype=np.float32)
        unit = Unit(
            rows=rows,
            targets=(rows[:, :1].T > 0).astype(np.float32),
            classification=np.array([kind == "cls"]),
            split_seeds=np.zeros(1, dtype=np.uint32),
            training_seeds=np.zeros(1, dtype=np.uint32),
            recipe=Recipe(epochs=EPOCHS),
        )
        begun = time.perf_counter()
        fold_score(unit, 0, 0)
        total += time.perf_counter() - begun
    return total


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
