"""The protocol as it is usually written in PyTorch: DataLoader, samplers, torchmetrics."""

from __future__ import annotations

import math

import torch
from sklearn.model_selection import ShuffleSplit
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset
from torchmetrics.classification import BinaryF1Score
from torchmetrics.regression import R2Score

from scoring.engines import Unit


def usual_loop(unit: Unit, task: int, fold: int) -> float:
    """Score one fold with scikit-learn's splits, DataLoaders, samplers and torchmetrics, as NeuCo-Bench does."""
    recipe = unit.recipe
    data = TensorDataset(torch.from_numpy(unit.rows), torch.from_numpy(unit.targets[task]))
    splitter = ShuffleSplit(n_splits=1, test_size=recipe.test_size, random_state=int(unit.split_seeds[fold]))
    train, test = next(splitter.split(unit.rows))
    torch.manual_seed(int(unit.training_seeds[fold]))
    loaders = [
        DataLoader(data, batch_size=recipe.batch_size, sampler=SubsetRandomSampler(indices))
        for indices in (train.tolist(), test.tolist())
    ]
    layer = torch.nn.Linear(unit.rows.shape[1], 1)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=recipe.learning_rate)
    classification = bool(unit.classification[task])
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
        best = max(best, metric(predictions, labels).item())
    return best
