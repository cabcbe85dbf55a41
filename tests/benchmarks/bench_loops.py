"""Measure the compiled kernel against what one can write in PyTorch: on one thread, in turns, for all tasks of one row set.

Run with ``python -m tests.benchmarks.bench_loops`` on an idle machine. Figures are processor time per fold of a task.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from scoring.engines import Unit
from scoring.engines.base import TOLERANCE
from scoring.engines.local import LocalEngine
from scoring.engines.reference import ReferenceEngine
from scoring.engines.torch import TorchEngine
from scoring.metrics import best_score, f1, r2
from scoring.protocol import Recipe
from scoring.randomness import held_out
from scoring.scorecard import machine, versions
from tests.benchmarks.bench_scoring import say
from tests.scoring.engines.units import make_unit, part


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in {"rows": 2600, "dims": 1024, "folds": 40, "rounds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    torch.set_num_threads(1)
    unit = make_unit(samples=options.rows, dim=options.dims, folds=options.folds, recipe=Recipe(epochs=20))
    few, one = part(unit, folds=slice(4)), part(unit, folds=slice(1))
    batched = TorchEngine(device="cpu", chunk=20, threads=1)
    ways: dict[str, tuple[Callable[[Unit], NDArray[np.float64]], Unit]] = {
        "kernel": (LocalEngine(threads=1).score, unit),
        "PyTorch, batched over folds and tasks": (batched.score, unit),
        "PyTorch, tensors": (tensor_loop, few),
        "PyTorch, DataLoader (the reference)": (ReferenceEngine().score, one),
    }
    say(f"{machine()} {versions('torch')}, load {os.getloadavg()[0]:.1f}, {vars(options)}")
    expected = LocalEngine(threads=1).score(unit)  # also compiles or loads the kernel
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, (way, work) in ways.items():
            begun = time.process_time()
            scores = way(work)
            spent[name].append((time.process_time() - begun) / scores.size)
            same = expected[:, : scores.shape[1]]
            largest = np.max(np.abs(scores - same) / np.maximum(1, np.abs(same)))
            if largest > TOLERANCE:
                say(f"{name}: a fold differs by {largest:.1e}")
    for name, seconds in spent.items():
        ratio = statistics.median(a / b for a, b in zip(seconds, spent["kernel"], strict=True))
        low, high = 1e3 * min(seconds), 1e3 * max(seconds)
        say(f"{name}: {1e3 * statistics.median(seconds):.1f} ms ({low:.1f}–{high:.1f}), {ratio:.1f}×")


def tensor_loop(unit: Unit) -> NDArray[np.float64]:
    """Score folds in a loop over batches that are rows of a tensor, without DataLoader, with the optimizer's fastest setting."""
    rows, samples = torch.from_numpy(unit.rows), len(unit.rows)
    tested = held_out(samples, unit.recipe.test_size)
    scores = np.empty((len(unit.targets), len(unit.split_seeds)))
    for task, fold in np.ndindex(scores.shape):
        is_class = bool(unit.classification[task])
        loss_function = torch.nn.BCEWithLogitsLoss() if is_class else torch.nn.MSELoss()
        labels = torch.from_numpy(unit.targets[task])
        order = torch.from_numpy(np.random.RandomState(unit.split_seeds[fold]).permutation(samples))
        test, train = order[:tested], order[tested:]
        held, truth = rows[test], unit.targets[task][test]
        torch.manual_seed(int(unit.training_seeds[fold]))
        layer = torch.nn.Linear(rows.shape[1], 1)
        optimizer = torch.optim.AdamW(layer.parameters(), lr=unit.recipe.learning_rate, fused=True)
        history = []
        for _ in range(unit.recipe.epochs):
            torch.empty((), dtype=torch.int64).random_()  # DataLoader draws it, too
            for batch in train[torch.randperm(len(train))].split(unit.recipe.batch_size):
                optimizer.zero_grad()
                loss_function(layer(rows[batch]).view(-1), labels[batch]).backward()
                optimizer.step()
            torch.empty((), dtype=torch.int64).random_()
            torch.randperm(tested)
            with torch.no_grad():
                outputs = layer(held).view(-1).numpy()
            history.append((f1 if is_class else r2)(outputs, truth))
        scores[task, fold] = best_score(np.array(history))
    return scores


if __name__ == "__main__":
    main()
