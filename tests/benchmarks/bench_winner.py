"""How often other secret splits have another winner, and what `verify` estimates of that from the folds of one draw.

The teams of a small challenge (digits that ship with the software) send the pixels with random noise, each with a little more than the
previous one. The same files are scored with the real scorer under many secrets. The script measures how often two draws have different
winners. The estimate is the share of the bootstrap's replicates in which the winner is not first, as a board keeps it; the script prints
its mean over the draws, and the range of the middle 80 %.

Run with ``python -m tests.benchmarks.bench_winner [--draws 60] [--folds 40]``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking import FoldTable, rank
from leaderboard.ranking.uncertainty import bootstrap
from scoring.engines import make_engine
from scoring.evaluate import score_embeddings
from scoring.inputs.embeddings import Embeddings
from scoring.protocol import Protocol, Recipe, ids_hash
from scoring.quality import quality
from scoring.randomness import phase_key, secret_commitment
from scoring.tasks import Task, TaskType
from worker.organizer.demo import data, methods

NOISE = 4.0  # of the best team; pixels are at most 16
# Number of teams, and the difference in noise between two of them.
FIELDS = ((2, 0.5), (2, 2.0), (5, 0.0), (5, 0.5), (5, 1.0), (5, 2.0), (5, 4.0))

Files = Sequence[NDArray[np.float32]]


def teams(number: int, apart: float, images: methods.Images) -> Files:
    """Return the files of a field's teams."""
    pixels = methods.raw_pixels(images)
    return [
        pixels
        + np.float32(NOISE + apart * team)
        * np.random.default_rng(team).standard_normal(pixels.shape, dtype=np.float32)
        for team in range(number)
    ]


def draw(files: Files, phase: data.PhaseData, folds: int, secret: int) -> FoldTable:
    """Score files under one secret."""
    key = phase_key(secret.to_bytes(32, "big"), "dev")
    tasks = [
        Task(
            name=task.name,
            type=TaskType.CLASSIFICATION if "__cls" in task.name else TaskType.REGRESSION,
            ids=task.ids,
            labels=np.array(task.labels),
            version="1",
            row_set=ids_hash(task.ids),
        )
        for task in phase.tasks
    ]
    protocol = Protocol(
        phase="dev",
        folds=folds,
        embedding_dim=methods.DIMENSION,
        ids_hash=ids_hash(phase.ids),
        secret_commitment=secret_commitment(key),
        recipe=Recipe(learning_rate=0.01, epochs=5),
    )
    engine = make_engine("local", threads=1)
    cards = [
        score_embeddings(Embeddings.from_rows(phase.ids, file), tasks, protocol, key, engine=engine)
        for file in files
    ]
    columns = zip(*(card.tasks for card in cards), strict=True)
    return FoldTable(
        row_sets=tuple(task.row_set for task in sorted(tasks, key=lambda task: task.name)),
        folds=tuple(np.array([score.folds for score in column], np.float64) for column in columns),
        seed="dev",
    )


def winner_and_estimate(table: FoldTable) -> tuple[int, float]:
    """Return the winner of a draw, and the estimated share of other draws with another winner."""
    scores = np.array(
        [[quality(folds.tolist()).q for folds in rows] for rows in zip(*table.folds, strict=True)]
    )
    everybody = np.ones(len(scores), bool)
    winner = rank(scores, weighs=everybody, numbered=everybody).ranks.index(1)
    luck = bootstrap(table, epsilon=Recipe.epsilon, weighs=everybody, numbered=everybody)
    return winner, 1 - luck.p_first[winner]


def main() -> None:
    """Draw and print."""
    parser = argparse.ArgumentParser(description="Measure how often other splits have another winner.")
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--folds", type=int, default=40)
    options = parser.parse_args()
    phase, _ = data.load()
    sys.stdout.write(
        f"{options.draws} draws, {options.folds} folds\n| teams | noise between two | winner changes | estimated |\n|---|---|---|---|\n"
    )
    for number, apart in FIELDS:
        files = teams(number, apart, phase.images)
        found = [
            winner_and_estimate(draw(files, phase, options.folds, secret)) for secret in range(options.draws)
        ]
        times = np.bincount([winner for winner, _ in found])
        pairs = options.draws * (options.draws - 1)
        measured = 1 - float((times * (times - 1)).sum()) / pairs
        estimates = [estimate for _, estimate in found]
        low, high = np.quantile(estimates, [0.1, 0.9])
        sys.stdout.write(
            f"| {number} | {apart:g} | {measured:.2f} | {np.mean(estimates):.2f} ({low:.2f} to {high:.2f}) |\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
