"""One evaluation in a process of its own: CSV in, scores as JSON out, and how long each part took.

``python -m tests.benchmarks.scoring_job MODE FOLDER FOLDS THREADS OUTPUT`` with MODE one of challenge, development, replay.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.challenge_data import DIM, ChallengeData, generate

LIMIT = 4 * 2**30  # bytes that the submission may expand to


def main(mode: str, folder: Path, folds: int, threads: int, output: Path) -> None:
    """Do the job and write its scores; print the times."""
    begun = time.perf_counter()
    sys.modules["scipy"] = None  # type: ignore[assignment] - only tests install it, and numba would import it (0.15 s)
    import numpy  # noqa: F401 - part of the job

    from scoring import kernel  # noqa: F401

    times = {"imports": time.perf_counter() - begun}
    document = (replay if mode == "replay" else challenge)(mode, generate(folder), folds, threads, times)
    output.write_text(json.dumps(document))
    from scoring.provenance import peak_memory_bytes

    times["inside"] = time.perf_counter() - begun
    sys.stdout.write(json.dumps({"times": times, "peak": peak_memory_bytes()}) + "\n")


def challenge(
    mode: str, data: ChallengeData, folds: int, threads: int, times: dict[str, float]
) -> dict[str, Any]:
    """Score with secret seeds, as the worker does."""
    from scoring.engines import make_engine
    from scoring.evaluate import score_embeddings
    from scoring.protocol import Protocol, ids_hash
    from scoring.reading import read_submission
    from scoring.seeds import phase_key, secret_commitment
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
    card = score_embeddings(embeddings, tasks, protocol, key, engine=make_engine("local", threads=threads))
    times["probes"] = sum(task.seconds for task in card.tasks)
    times["other scoring"] = time.perf_counter() - begun - times["probes"]
    return card.to_json()


def replay(
    mode: str, data: ChallengeData, folds: int, threads: int, times: dict[str, float]
) -> dict[str, Any]:
    """Score with NeuCo-Bench's stream."""
    import numpy as np

    from scoring.protocol import Recipe
    from scoring.quality import quality
    from scoring.reading import read_submission
    from scoring.replay import ReplayTask, replay_scores
    from scoring.tasks import TaskType

    begun = time.perf_counter()
    ids = tuple(data.ids.read_text().split())
    embeddings = read_submission(data.submission, ids, DIM, max_expanded_bytes=LIMIT)
    times["reading"] = time.perf_counter() - begun
    begun = time.perf_counter()
    position = {identifier: row for row, identifier in enumerate(embeddings.ids)}
    tasks = []
    for path in sorted(data.tasks.iterdir()):
        name, kind = path.stem.split("__")
        with path.open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        tasks.append(
            ReplayTask(
                name=name,
                type=TaskType(kind),
                rows=np.array([position[row["id"]] for row in rows]),
                labels=np.array([float(row["label"]) for row in rows]),
            )
        )
    times["labels"] = time.perf_counter() - begun
    begun = time.perf_counter()
    scores = replay_scores(embeddings.matrix, tasks, folds=folds, recipe=Recipe(), threads=threads)
    times["probes"] = time.perf_counter() - begun
    return {name: {"q": quality(folds).q, "folds": folds} for name, folds in scores.items()}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
