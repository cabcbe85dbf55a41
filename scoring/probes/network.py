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

from scoring.errors import OrganizerError
from scoring.probes.fold_record import FoldRecord
from scoring.probes.probe import Fold, FoldResult, ProbeInput, TaskKind

Tensors = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """How networks are trained.

    Attributes:
        hidden: Widths of the hidden layers; none for a linear probe.
        epochs: Passes over the training rows.
        batch_size: Rows per step.
        learning_rate: AdamW's.
        device: ``cpu``, ``auto`` or a GPU.
        seed: The run's seed.
        stop: One byte that is 1 once results no longer matter.
    """

    hidden: tuple[int, ...]
    epochs: int
    batch_size: int
    learning_rate: float
    device: str
    seed: int
    stop: NDArray[np.uint8]

    @contextmanager
    def fitter(self, data: ProbeInput, *, details: bool) -> Iterator[Callable[[Fold], FoldResult]]:
        """See :meth:`scoring.probes.probe.Probe.fitter`."""
        tensors = self._tensors(data)
        with _one_thread():
            yield lambda fold: self._fit(data, tensors, fold, details=details)

    def refit(self, data: ProbeInput) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Train on all samples for all epochs; without a test part there is no best epoch."""
        net, generator = self._network(data, -1)
        with _one_thread():
            for _ in self._epochs(
                data.kind, net, self._tensors(data), torch.arange(len(data.rows)), generator
            ):
                pass
        layers = [layer for layer in net if isinstance(layer, torch.nn.Linear)]
        return [(layer.weight.detach().cpu().numpy(), layer.bias.detach().cpu().numpy()) for layer in layers]

    def _usable_device(self) -> torch.device:
        """Return the device.

        Raises:
            OrganizerError: If there is none of this name here.
        """
        automatic = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            return torch.empty(0, device=automatic if self.device == "auto" else self.device).device
        except (RuntimeError, AssertionError) as error:  # a torch without CUDA raises AssertionError
            raise OrganizerError(
                f"probe_params.device {self.device!r} cannot be used here.",
                cure="Set it to cpu or auto.",
                code="probe.device",
            ) from error

    def _tensors(self, data: ProbeInput) -> Tensors:
        """Return rows, and targets in the type that the loss needs."""
        kind, device = (
            torch.int64 if data.kind is TaskKind.MULTICLASS else torch.float32,
            self._usable_device(),
        )
        rows = torch.from_numpy(np.ascontiguousarray(data.rows))
        return rows.to(device), torch.as_tensor(data.targets, dtype=kind).to(device)

    def _network(self, data: ProbeInput, fold: int) -> tuple[torch.nn.Sequential, torch.Generator]:
        """Make a network with the initial weights of ``torch.nn.Linear``, uniform in ±1/sqrt(inputs), and the generator of the orders."""
        generator = torch.Generator().manual_seed(fold_seed(self.seed, data.name, fold))
        layers: list[torch.nn.Module] = []
        for inputs, width in pairwise((data.rows.shape[1], *self.hidden, data.outputs)):
            layer = torch.nn.Linear(inputs, width)
            with torch.no_grad():
                for parameter in (layer.weight, layer.bias):
                    parameter.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)
            layers += [layer, torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1]).to(self._usable_device()), generator

    def _fit(self, data: ProbeInput, tensors: Tensors, fold: Fold, *, details: bool) -> FoldResult:
        record, (rows, targets) = FoldRecord(data, fold), tensors
        train, test = (
            torch.from_numpy(part.astype(np.int64)).to(rows.device) for part in (fold.train, fold.test)
        )
        net, generator = self._network(data, fold.number)
        fitted = None
        for losses in self._epochs(data.kind, net, tensors, train, generator):
            with torch.no_grad():
                outputs = net(rows[test])
                both = (float(torch.stack(losses).mean()), float(_loss(data.kind, outputs, targets[test])))
                if record.add(outputs.cpu().numpy(), both if details else None) and details:
                    fitted = net(rows[train]).cpu().numpy()
        return record.result(fitted)

    def _epochs(
        self,
        kind: TaskKind,
        net: torch.nn.Sequential,
        tensors: Tensors,
        train: torch.Tensor,
        generator: torch.Generator,
    ) -> Iterator[list[torch.Tensor]]:
        """Train on these rows; yield the losses of the batches after each epoch."""
        rows, targets = tensors
        optimizer = torch.optim.AdamW(net.parameters(), lr=self.learning_rate)
        for _ in range(self.epochs):
            losses = []
            order = train[torch.randperm(len(train), generator=generator).to(train.device)]
            for batch in torch.split(order, self.batch_size):
                optimizer.zero_grad()
                loss = _loss(kind, net(rows[batch]), targets[batch])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                losses.append(loss.detach())
            if self.stop[0]:
                return
            yield losses


def fold_seed(seed: int, task: str, fold: int) -> int:
    """Return a fold's 32-bit seed."""
    digest = hashlib.sha256(f"neuco-worker probe 1\0{seed}\0{task}\0{fold}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch to one thread; mini-batches are too small for several, and results would depend on their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _loss(kind: TaskKind, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean loss: squared error, cross entropy of several classes, or binary cross entropy."""
    if kind is TaskKind.REGRESSION:
        return functional.mse_loss(outputs.view(-1), targets)
    if kind is TaskKind.MULTICLASS:
        return functional.cross_entropy(outputs, targets)
    return functional.binary_cross_entropy_with_logits(outputs.view(targets.shape), targets)
