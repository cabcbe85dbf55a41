"""The protocol as it is usually written in PyTorch: DataLoader, samplers, torchmetrics. The engines are held to its scores.

Random numbers are drawn in this order for one fold of one task (paper Section 3.2, A.1):

1. ``torch.manual_seed(training_seed)``
2. ``torch.nn.Linear(N, 1)``: N draws for the weights, one for the bias.
3. In each epoch, before training: one int64 (the seed that a DataLoader draws for its workers, unused), then ``randperm`` of the training
   part; before validation the same again for the test part, whose order does not matter.

All tasks on a row set start from the same training seed, so they share initial weights and orders.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import ShuffleSplit
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset
from torchmetrics.classification import BinaryF1Score
from torchmetrics.regression import R2Score

from scoring.engines import Unit
from scoring.protocol import Recipe


def usual_scores(unit: Unit) -> NDArray[np.float64]:
    """Score all tasks and folds of a unit, T x K."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # products are too small for several threads
    try:
        return np.array(
            [
                [usual_loop(unit, task, fold) for fold in range(len(unit.split_seeds))]
                for task in range(len(unit.targets))
            ]
        )
    finally:
        torch.set_num_threads(threads)


def usual_loop(unit: Unit, task: int, fold: int) -> float:
    """Score one fold with scikit-learn's splits, DataLoaders, samplers and torchmetrics, as NeuCo-Bench does."""
    splitter = ShuffleSplit(
        n_splits=1, test_size=unit.recipe.test_size, random_state=int(unit.split_seeds[fold])
    )
    train, test = next(splitter.split(unit.rows))
    torch.manual_seed(int(unit.training_seeds[fold]))
    data = TensorDataset(torch.from_numpy(unit.rows), torch.from_numpy(unit.targets[task]))
    return train_probe(
        data,
        train.tolist(),
        test.tolist(),
        classification=bool(unit.classification[task]),
        recipe=unit.recipe,
    )


def train_probe(
    data: TensorDataset, train: list[int], test: list[int], *, classification: bool, recipe: Recipe
) -> float:
    """Train a linear probe from torch's current random state; return the best held-out score, NaN if none is finite."""
    loaders = [
        DataLoader(data, batch_size=recipe.batch_size, sampler=SubsetRandomSampler(indices))
        for indices in (train, test)
    ]
    layer = torch.nn.Linear(data.tensors[0].shape[1], 1)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=recipe.learning_rate)
    loss_function = torch.nn.BCEWithLogitsLoss() if classification else torch.nn.MSELoss()
    metric = BinaryF1Score() if classification else R2Score()
    best = -math.inf
    for _ in range(recipe.epochs):
        for rows, labels in loaders[0]:
            optimizer.zero_grad()
            loss_function(layer(rows).view(-1), labels).backward()
            optimizer.step()
        with torch.no_grad():
            batches = [(layer(rows).view(-1), labels) for rows, labels in loaders[1]]
        predictions, labels = (torch.cat(parts) for parts in zip(*batches, strict=True))
        best = max(best, metric(predictions, labels).item())  # NaN never wins
    return best if best > -math.inf else math.nan
