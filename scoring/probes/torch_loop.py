"""Train networks with hidden layers in PyTorch. The recipe is the linear probe's: AdamW and mini-batches; the best epoch counts.

Each fold has its own seed, derived from the run's seed, the task's name and the fold, so no task changes another's scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scoring.probes.fold_record import FoldRecord
from scoring.probes.multi_output import fold_seed
from scoring.probes.probe import (
    FoldResult,
    ProbeInput,
    ProbeSettings,
    TaskKind,
    TrainingParameters,
    shuffle_splits,
)

if TYPE_CHECKING:
    import torch


def train_folds(
    data: ProbeInput,
    parameters: TrainingParameters,
    *,
    hidden: Sequence[int],
    folds: int,
    settings: ProbeSettings,
    details: bool,
    progress: Callable[[int], None],
    device: str = "cpu",
) -> list[FoldResult]:
    """Train a network with these hidden layers on every fold; see :meth:`scoring.probes.probe.Probe.train`."""
    import torch

    rows, targets = (values.to(torch.device(device)) for values in _tensors(data))
    results = []
    with _one_thread():
        for fold, split in enumerate(shuffle_splits(len(rows), folds, settings.seed)):
            generator = torch.Generator().manual_seed(fold_seed(settings.seed, data.name, fold))
            results.append(
                _train(
                    data,
                    split,
                    rows=rows,
                    targets=targets,
                    parameters=parameters,
                    hidden=hidden,
                    generator=generator,
                    details=details,
                )
            )
            progress(1)
    return results


def train_on_all(
    data: ProbeInput, parameters: TrainingParameters, *, hidden: Sequence[int], seed: int
) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Train on all samples for all epochs, and return weight and bias of each layer; without a test part there is no best epoch."""
    import torch

    generator = torch.Generator().manual_seed(fold_seed(seed, data.name, -1))
    rows, targets = _tensors(data)
    net = network(rows.shape[1], hidden, data.outputs, generator)
    with _one_thread():
        for _ in _epochs(
            net,
            rows,
            targets,
            torch.arange(len(rows)),
            kind=data.kind,
            parameters=parameters,
            generator=generator,
        ):
            pass
    return [
        (layer.weight.detach().numpy(), layer.bias.detach().numpy())
        for layer in net
        if isinstance(layer, torch.nn.Linear)
    ]


def _tensors(data: ProbeInput) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows, and targets in the type that the loss needs."""
    import torch

    kind = torch.int64 if data.kind is TaskKind.MULTICLASS else torch.float32
    return torch.from_numpy(np.ascontiguousarray(data.rows)), torch.as_tensor(data.targets, dtype=kind)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch to one thread; mini-batches are too small for several, and results would depend on their number."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def network(dim: int, hidden: Sequence[int], outputs: int, generator: torch.Generator) -> torch.nn.Sequential:
    """Make linear layers with ReLU between them and the initial weights of ``torch.nn.Linear``: uniform in ±1/sqrt(inputs)."""
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
    data: ProbeInput,
    split: NDArray[np.int32],
    *,
    rows: torch.Tensor,
    targets: torch.Tensor,
    parameters: TrainingParameters,
    hidden: Sequence[int],
    generator: torch.Generator,
    details: bool,
) -> FoldResult:
    import torch

    record = FoldRecord(data, split)
    train, test = (
        torch.from_numpy(part.astype(np.int64)).to(rows.device) for part in (record.train, record.test)
    )
    net = network(rows.shape[1], hidden, data.outputs, generator).to(rows.device)
    loss_function = _loss_function(data.kind)
    kept = None
    for losses in _epochs(
        net, rows, targets, train, kind=data.kind, parameters=parameters, generator=generator
    ):
        with torch.no_grad():
            outputs = net(rows[test])
            test_loss = float(loss_function(_shaped(outputs, data.kind), targets[test])) if details else 0.0
        is_best = record.add(
            outputs.cpu().numpy(), (float(torch.stack(losses).mean()), test_loss) if details else None
        )
        if is_best and details:
            kept = {name: value.clone() for name, value in net.state_dict().items()}
    if kept is None:
        return record.result(None)
    net.load_state_dict(kept)
    with torch.no_grad():
        return record.result(net(rows[train]).cpu().numpy())


def _epochs(
    net: torch.nn.Sequential,
    rows: torch.Tensor,
    targets: torch.Tensor,
    train: torch.Tensor,
    *,
    kind: TaskKind,
    parameters: TrainingParameters,
    generator: torch.Generator,
) -> Iterator[list[torch.Tensor]]:
    """Train on these rows; yield the losses of the batches after each epoch."""
    import torch

    optimizer = torch.optim.AdamW(net.parameters(), lr=parameters.learning_rate)
    loss_function = _loss_function(kind)
    for _ in range(parameters.epochs):
        losses = []
        order = train[torch.randperm(len(train), generator=generator).to(rows.device)]
        for batch in torch.split(order, parameters.batch_size):
            optimizer.zero_grad()
            loss = loss_function(_shaped(net(rows[batch]), kind), targets[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        yield losses


def _loss_function(kind: TaskKind) -> torch.nn.Module:
    import torch

    if kind is TaskKind.REGRESSION:
        return torch.nn.MSELoss()
    return torch.nn.CrossEntropyLoss() if kind is TaskKind.MULTICLASS else torch.nn.BCEWithLogitsLoss()


def _shaped(outputs: torch.Tensor, kind: TaskKind) -> torch.Tensor:
    return outputs.view(-1) if kind in {TaskKind.REGRESSION, TaskKind.BINARY} else outputs
