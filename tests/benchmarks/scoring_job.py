"""One evaluation in its own process, from CSV to scores as JSON, with the time of each part.

``python -m tests.benchmarks.scoring_job MODE FOLDER FOLDS THREADS OUTPUT [ENGINE]`` with MODE one of challenge, development, replay; replay
always uses the compiled kernel.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.challenge_data import DIM, ChallengeData, generate

LIMIT = 4 * 2**30  # most bytes that the submission may expand to


def main(mode: str, folder: Path, folds: int, threads: int, output: Path, engine: str = "local") -> None:
    """Do the job and write its scores; print the times."""
    begun = time.perf_counter()
    sys.modules["scipy"] = None  # type: ignore[assignment] - only tests install it, and numba would import it (0.15 s)
    import numpy  # noqa: F401 - part of the job

    from scoring.kernel import train  # noqa: F401

    times = {"imports": time.perf_counter() - begun}
    if mode == "replay":
        document = replay(mode, generate(folder), folds, threads, times)
    else:
        document = challenge(mode, generate(folder), folds, threads, times, engine)
    output.write_text(json.dumps(document))
    from scoring.scorecard import peak_memory_bytes

    times["inside"] = time.perf_counter() - begun
    sys.stdout.write(json.dumps({"times": times, "peak": peak_memory_bytes()}) + "\n")


def challenge(
    mode: str, data: ChallengeData, folds: int, threads: int, times: dict[str, float], engine: str = "local"
) -> dict[str, Any]:
    """Score with secret seeds, as the worker does."""
    from scoring.engines import make_engine
    from scoring.evaluate import score_embeddings
    from scoring.inputs.submission import read_submission
    from scoring.protocol import Protocol, ids_hash
    from scoring.randomness import phase_key, secret_commitment
    from scoring.tasks import load_tasks

    begun = time.perf_counter()
    ids = tuple(data.ids.read_text().split())
    embeddings = read_submission(data.submission, ids, DIM, max_expanded_bytes=LIMIT)
    times["reading"] = time.perf_counter() - begun
    begun = time.perf_counter()
    tasks = load_tasks(data.tasks if mode == "challenge" else data.development_tasks, ids)
    times["labels"] = time.perf_counter() - begun
    begun = time.perf_counter()
    key = phase_key(b"benchmark", mode)
    protocol = Protocol(
        phase=mode,
        folds=folds,
        embedding_dim=DIM,
        ids_hash=ids_hash(ids),
        secret_commitment=secret_commitment(key),
    )
    card = score_embeddings(embeddings, tasks, protocol, key, engine=make_engine(engine, threads=threads))
    times["probes"] = sum(task.seconds for task in card.tasks)
    times["other scoring"] = time.perf_counter() - begun - times["probes"]
    return card.to_json()


def replay(
    mode: str, data: ChallengeData, folds: int, threads: int, times: dict[str, float]
) -> dict[str, Any]:
    """Score with NeuCo-Bench's stream, as `neuco-worker score` does."""
    from scoring.neuco_bench.configuration import parse_settings
    from scoring.neuco_bench.labels import read_annotations
    from scoring.neuco_bench.results import finite, summary_document, task_document
    from scoring.neuco_bench.run import read_material, score_run

    begun = time.perf_counter()
    probe = {"epochs": 20, "batch_size": 64, "learning_rate": 0.001}
    settings = parse_settings(
        {
            "k_folds": folds,
            "embedding_dim": DIM,
            "probe_type": "linear",
            "probe_params": probe,
            "enable_plots": False,
        }
    )
    material = read_material(data.submission, read_annotations(data.tasks), settings)
    times["reading"] = time.perf_counter() - begun  # includes the labels
    begun = time.perf_counter()
    report = score_run(material, settings, threads=threads)
    times["probes"] = sum(task.seconds for task in report.tasks)
    document = {
        "summary": summary_document(report, settings, experiment=mode),
        "tasks": [
            task_document(task, settings.model_copy(update={"output_fold_results": True}))
            for task in report.tasks
        ],
    }
    times["other scoring"] = time.perf_counter() - begun - times["probes"]
    found: dict[str, Any] = finite(document)
    return found


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]), *sys.argv[6:])
