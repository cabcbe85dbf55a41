"""Train linear layers with ReLU between them in PyTorch, with AdamW and mini-batches; the best epoch counts.

Each fold has its own seed, derived from the run's seed, the task's name and the fold, so no task changes another's scores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from scoring.probes.measures import ProbeState, best_of
from scoring.probes.probe import Fold, FoldResult, Probe, ProbeInput
from scoring.tasks import TaskType

Tensors = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Network:
    """Trains the networks of a probe, whose hidden layers may be none."""

    probe: Probe

    @contextmanager
    def fitter(self, data: ProbeInput, *, details: bool) -> Iterator[Callable[[Fold], list[FoldResult]]]:
        """See :meth:`scoring.probes.probe.Probe.fitter`."""
        with _own_settings():
            tensors = self._tensors(data)
            yield lambda fold: [best_of(data, fold, self._states(data, tensors, fold, details=details))]

    def refit(self, data: ProbeInput) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Train on all samples for all epochs; without a test part there is no best epoch."""
        with _own_settings():
            *_, (net, _) = self._epochs(data, self._tensors(data), np.arange(len(data.rows)), -1)
        layers = [layer for layer in net if isinstance(layer, torch.nn.Linear)]
        return [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in layers]

    def _tensors(self, data: ProbeInput) -> Tensors:
        """Return rows, and targets in the type that the loss needs."""
        kind = torch.int64 if data.kind is TaskType.MULTICLASS else torch.float32
        return torch.from_numpy(np.ascontiguousarray(data.rows)), torch.as_tensor(data.targets, dtype=kind)

    def _states(
        self, data: ProbeInput, tensors: Tensors, fold: Fold, *, details: bool
    ) -> Iterator[ProbeState]:
        rows, targets = tensors
        test, fitted = fold.test, fold.train if details else fold.train[:0]
        for net, losses in self._epochs(data, tensors, fold.train, fold.number):
            with torch.no_grad():
                outputs = net(rows[test])
                pair = float(torch.stack(losses).mean()), float(_loss(data.kind, outputs, targets[test]))
                yield ProbeState(
                    outputs=outputs.numpy(),
                    fitted=net(rows[fitted]).numpy(),
                    losses=pair if details else (),
                )

    def _epochs(
        self, data: ProbeInput, tensors: Tensors, part: NDArray[np.integer], fold: int
    ) -> Iterator[tuple[torch.nn.Sequential, list[torch.Tensor]]]:
        """Train on these rows; yield the network and the losses of the batches after each epoch."""
        rows, targets = tensors
        generator = torch.Generator().manual_seed(fold_seed(self.probe.seed, data.name, fold))
        net = self._network(data, generator)
        train = torch.from_numpy(part.astype(np.int64))
        optimizer = torch.optim.AdamW(net.parameters(), lr=self.probe.params.learning_rate)
        for _ in range(self.probe.params.epochs):
            losses = []
            order = train[torch.randperm(len(train), generator=generator)]
            for batch in torch.split(order, self.probe.params.batch_size):
                optimizer.zero_grad()
                loss = _loss(data.kind, net(rows[batch]), targets[batch])
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
            if self.probe.stop[0]:
                return
            yield net, losses

    def _network(self, data: ProbeInput, generator: torch.Generator) -> torch.nn.Sequential:
        """Make a network with the initial weights of ``torch.nn.Linear``, uniform in ±1/sqrt(inputs)."""
        layers: list[torch.nn.Module] = []
        for inputs, width in pairwise((data.rows.shape[1], *(self.probe.hidden or ()), data.outputs)):
            # Without drawing initial weights from the caller's generator, only to replace them.
            layer = torch.nn.utils.skip_init(torch.nn.Linear, inputs, width, dtype=torch.float32)
            with torch.no_grad():
                for parameter in (layer.weight, layer.bias):
                    parameter.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)
            layers += [layer, torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1])


def fold_seed(seed: int, task: str, fold: int) -> int:
    """Return a fold's 32-bit seed."""
    digest = hashlib.sha256(f"neuco-worker probe 1\0{seed}\0{task}\0{fold}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


@contextmanager
def _own_settings() -> Iterator[None]:
    """Train on the CPU with gradients, whatever a caller has chosen for its own work, such as ``torch.no_grad``.

    Mini-batches are too small for several threads of torch, and results would depend on their number.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.device("cpu"), torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_num_threads(before)


def _loss(kind: TaskType, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean loss: squared error, cross entropy of several classes, or binary cross entropy."""
    if kind is TaskType.REGRESSION:
        return functional.mse_loss(outputs.view(-1), targets)
    if kind is TaskType.MULTICLASS:
        return functional.cross_entropy(outputs, targets)
    return functional.binary_cross_entropy_with_logits(outputs.view(targets.shape), targets)
