"""The loop that defines a score, as anybody who knows PyTorch would write it. The compiled kernel is the same loop, faster.

For one fold of one task, random numbers are drawn in this order (paper Section 3.2, A.1):

1. ``torch.manual_seed(training_seed)``
2. ``torch.nn.Linear(N, 1)``: N draws for the weights, one for the bias.
3. In each epoch, before training: one int64 (the seed that a DataLoader draws for its workers, unused), then ``randperm`` of the training
   part; before validation the same again for the test part, whose order does not matter.

All tasks on the same ids begin with the same seeds, so they share splits, initial weights and orders.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

from scoring.engines import Unit
from scoring.metrics import best_score, f1, r2
from scoring.protocol import Recipe
from scoring.randomness import Splitter


def fold_score(unit: Unit, task: int, fold: int) -> float:
    """Score one fold of one task: split the rows, train a linear probe on nine tenths, and test it on the rest after each epoch."""
    splitter = Splitter(len(unit.rows), unit.recipe.test_size, unit.groups)
    split = splitter.split(int(unit.split_seeds[fold]))
    torch.manual_seed(int(unit.training_seeds[fold]))
    return train_probe(
        TensorDataset(torch.tensor(unit.rows), torch.tensor(unit.targets[task])),
        split.train.tolist(),
        split.test.tolist(),
        classification=bool(unit.classification[task]),
        recipe=unit.recipe,
    )


def train_probe(
    data: TensorDataset, train: list[int], test: list[int], *, classification: bool, recipe: Recipe
) -> float:
    """Train a linear probe from torch's current random state; return the best held-out score, NaN if none is finite."""
    training, testing = (
        DataLoader(data, batch_size=recipe.batch_size, sampler=SubsetRandomSampler(rows))
        for rows in (train, test)
    )
    layer = torch.nn.Linear(data.tensors[0].shape[1], 1)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=recipe.learning_rate)
    loss_function = torch.nn.BCEWithLogitsLoss() if classification else torch.nn.MSELoss()
    metric = f1 if classification else r2
    history = []
    for _ in range(recipe.epochs):
        for rows, labels in training:
            optimizer.zero_grad()
            loss_function(layer(rows).view(-1), labels).backward()
            optimizer.step()
        with torch.no_grad():
            batches = [(layer(rows).view(-1), labels) for rows, labels in testing]
        predictions, truth = (torch.cat(parts).numpy() for parts in zip(*batches, strict=True))
        history.append(metric(predictions, truth))
    return best_score(np.array(history))
