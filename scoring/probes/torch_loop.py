"""Probes that PyTorch trains: hidden layers. The recipe is the linear probe's: AdamW, mini-batches, the best epoch kept.

Each fold starts from a seed of its own, drawn from the run's seed, the task's name and the fold, so no task changes another's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scoring.errors import Cancelled
from scoring.probes.measures import score
from scoring.probes.probe import Exercise, FoldResult, ProbeSettings, TaskKind, parted, shuffle_splits
from scoring.probes.several import fold_seed

if TYPE_CHECKING:
    import torch

    from scoring.probes.linear import TrainingParameters


def train_folds(
    exercise: Exercise,
    parameters: TrainingParameters,
    *,
    hidden: Sequence[int],
    folds: int,
    settings: ProbeSettings,
    details: bool,
    progress: Callable[[int], None],
    cancelled: Callable[[], bool],
    device: str = "cpu",
) -> tuple[FoldResult, ...]:
    """Train a network with these hidden layers on every fold; see :meth:`scoring.probes.probe.Probe.train`."""
    import torch

    place = torch.device(device)
    rows = torch.from_numpy(np.ascontiguousarray(exercise.rows)).to(place)
    kind = torch.int64 if exercise.kind is TaskKind.MULTICLASS else torch.float32
    targets = torch.as_tensor(exercise.targets, dtype=kind).to(place)
    results = []
    with _one_thread():
        for fold, split in enumerate(shuffle_splits(len(rows), folds, settings.seed)):
            generator = torch.Generator().manual_seed(fold_seed(settings.seed, exercise.name, fold))
            results.append(
                _train(
                    exercise,
                    split,
                    rows=rows,
                    targets=targets,
                    parameters=parameters,
                    hidden=hidden,
                    generator=generator,
                    details=details,
                    cancelled=cancelled,
                )
            )
            progress(1)
    return tuple(results)


def train_on_all(
    exercise: Exercise, parameters: TrainingParameters, *, hidden: Sequence[int], seed: int
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Train on all samples for all epochs and return weight and bias of each layer; nothing is held out that could choose an epoch."""
    import torch

    generator = torch.Generator().manual_seed(fold_seed(seed, exercise.name, -1))
    kind = torch.int64 if exercise.kind is TaskKind.MULTICLASS else torch.float32
    rows = torch.from_numpy(np.ascontiguousarray(exercise.rows))
    targets = torch.as_tensor(exercise.targets, dtype=kind)
    net = network(rows.shape[1], hidden, exercise.outputs, generator)
    optimizer = torch.optim.AdamW(net.parameters(), lr=parameters.learning_rate)
    loss_function = _loss_function(exercise.kind)
    with _one_thread():
        for _ in range(parameters.epochs):
            for batch in torch.split(torch.randperm(len(rows), generator=generator), parameters.batch_size):
                optimizer.zero_grad()
                loss_function(_shaped(net(rows[batch]), exercise.kind), targets[batch]).backward()
                optimizer.step()
    return [
        (layer.weight.detach().numpy(), layer.bias.detach().numpy())
        for layer in net
        if isinstance(layer, torch.nn.Linear)
    ]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch to one thread: for mini-batches its threads wait for each other longer than they work, and results depend on them."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def network(dim: int, hidden: Sequence[int], outputs: int, generator: torch.Generator) -> torch.nn.Sequential:
    """Make linear layers with ReLU between them, started as ``torch.nn.Linear`` starts: uniform in ±1/sqrt(inputs)."""
    import torch

    widths = (dim, *hidden, outputs)
    layers: list[torch.nn.Module] = []
    for number, (inputs, width) in enumerate(pairwise(widths)):
        layer = torch.nn.Linear(inputs, width)
        bound = inputs**-0.5
        with torch.no_grad():
            for parameter in (layer.weight, layer.bias):
                parameter.uniform_(-bound, bound, generator=generator)
        layers += [layer, torch.nn.ReLU()] if number < len(hidden) else [layer]
    return torch.nn.Sequential(*layers)


def _train(
    exercise: Exercise,
    split: NDArray[np.int32],
    *,
    rows: torch.Tensor,
    targets: torch.Tensor,
    parameters: TrainingParameters,
    hidden: Sequence[int],
    generator: torch.Generator,
    details: bool,
    cancelled: Callable[[], bool],
) -> FoldResult:
    import torch

    train, test = parted(split)
    train_rows, test_rows = (
        torch.from_numpy(part.astype(np.int64)).to(rows.device) for part in (train, test)
    )
    net = network(rows.shape[1], hidden, exercise.outputs, generator).to(rows.device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=parameters.learning_rate)
    loss_function = _loss_function(exercise.kind)
    best, kept, kept_predictions = float("-inf"), None, np.full((len(test), exercise.outputs), np.nan)
    history, train_losses, test_losses = [], [], []
    for _ in range(parameters.epochs):
        losses = []
        order = train_rows[torch.randperm(len(train), generator=generator).to(rows.device)]
        for batch in torch.split(order, parameters.batch_size):
            optimizer.zero_grad()
            loss = loss_function(_shaped(net(rows[batch]), exercise.kind), targets[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        with torch.no_grad():
            outputs = net(rows[test_rows])
            if details:
                train_losses.append(float(torch.stack(losses).mean()))
                test_losses.append(float(loss_function(_shaped(outputs, exercise.kind), targets[test_rows])))
        predictions = outputs.cpu().numpy().astype(np.float64)
        reached = score(exercise.kind, _flat(predictions, exercise), exercise.targets[test])
        history.append(reached)
        if reached > best:
            best, kept_predictions = reached, predictions
            kept = {name: value.clone() for name, value in net.state_dict().items()} if details else None
        if cancelled():
            raise Cancelled()
    train_predictions = np.empty((0, exercise.outputs))
    if kept is not None:
        net.load_state_dict(kept)
        with torch.no_grad():
            train_predictions = net(rows[train_rows]).cpu().numpy().astype(np.float64)
    return FoldResult(
        score=best if best > float("-inf") else float("nan"),
        test=test,
        predictions=_flat(kept_predictions, exercise),
        train=train if kept is not None else train[:0],
        train_predictions=_flat(train_predictions, exercise),
        history=tuple(history),
        train_losses=tuple(train_losses),
        test_losses=tuple(test_losses),
    )


def _loss_function(kind: TaskKind) -> torch.nn.Module:
    import torch

    if kind is TaskKind.REGRESSION:
        return torch.nn.MSELoss()
    return torch.nn.CrossEntropyLoss() if kind is TaskKind.MULTICLASS else torch.nn.BCEWithLogitsLoss()


def _shaped(outputs: torch.Tensor, kind: TaskKind) -> torch.Tensor:
    return outputs.view(-1) if kind in {TaskKind.REGRESSION, TaskKind.BINARY} else outputs


def _flat(predictions: NDArray[np.float64], exercise: Exercise) -> NDArray[np.float64]:
    return predictions if exercise.kind in {TaskKind.MULTICLASS, TaskKind.MULTILABEL} else predictions[:, 0]
