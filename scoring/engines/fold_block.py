"""A block of folds of one row set, which PyTorch trains together on one device.

Shapes: F folds, T tasks, n rows of W values, m of them in a training part and t in a test part, b in a batch. A row has N values, a 1, and
zeros as padding. So the bias is one of the weights, one batched product gives the outputs of all tasks on all folds, and another one the
gradients. torch is imported inside the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scoring.engines.base import Unit
from scoring.engines.fold_memory import padded_width
from scoring.errors import Cancelled
from scoring.metrics import R2_TOLERANCE, SIGMOID_HALF
from scoring.protocol import Recipe
from scoring.randomness.fold_draws import FoldDraws

if TYPE_CHECKING:
    import torch

_BETA_1, _BETA_2, _EPSILON, _WEIGHT_DECAY = 0.9, 0.999, 1e-8, 0.01  # torch's defaults of AdamW


class DeviceRows:
    """The rows and labels of a unit on a device, which all blocks of its folds use.

    Attributes:
        rows: float32, n x W.
        targets: float32, T x n.
        classification: bool, T x 1.
    """

    def __init__(self, unit: Unit, device: torch.device) -> None:
        import torch

        samples, dim = unit.rows.shape
        self.rows = torch.zeros(samples, padded_width(dim), device=device)
        self.rows[:, :dim] = torch.from_numpy(np.array(unit.rows)).to(device)
        self.rows[:, dim] = 1
        self.targets = torch.from_numpy(np.array(unit.targets)).to(device)
        self.classification = torch.from_numpy(np.array(unit.classification)).to(device)[:, None]


class FoldBlock:
    """The probes of a block of folds, with the state of their training.

    Args:
        data: Rows and labels.
        draws: Splits, initial weights and orders of the folds.
        recipe: Hyper-parameters.
    """

    def __init__(self, data: DeviceRows, draws: FoldDraws, recipe: Recipe) -> None:
        import torch

        self._data, self._recipe = data, recipe
        device = data.rows.device
        tasks, width = len(data.targets), data.rows.shape[1]
        folds, _, trained = draws.orders.shape
        self._orders = torch.from_numpy(draws.orders).to(device)
        self._order = torch.empty_like(self._orders[:, 0])  # of the current epoch

        self._weights = torch.zeros(folds, tasks, width, device=device)
        self._weights[:, :, : draws.weights.shape[1]] = torch.from_numpy(draws.weights).to(device)[:, None]
        self._first = torch.zeros_like(self._weights)
        self._second = torch.zeros_like(self._weights)
        self._gathered = torch.empty(folds * min(recipe.batch_size, trained), width, device=device)
        self._schedules = _schedules(recipe, trained).to(device)
        self._schedule = torch.empty_like(self._schedules[0])  # of the current epoch
        # The derivative of MSE by an output is 2 (output - label), that of BCE-with-logits is sigmoid(output) - label.
        self._slopes = torch.where(data.classification, 1.0, 2.0)

        self._test = torch.from_numpy(draws.tests.astype(np.int64)).to(device)[:, None].expand(-1, tasks, -1)
        labels = data.targets.expand(folds, -1, -1).gather(2, self._test)
        self._positive, self._labels = labels > 0.5, labels.double()
        self._total = ((self._labels - self._labels.mean(dim=2, keepdim=True)) ** 2).sum(dim=2)
        self._best = torch.full((folds, tasks), -torch.inf, dtype=torch.float64, device=device)

    def train(self, cancelled: Callable[[], bool]) -> NDArray[np.float64]:
        """Return F x T best scores over the epochs, NaN where none is finite.

        On CUDA, the first epoch is the warm-up that recording a CUDA graph needs, and all others replay that graph, because launching the
        kernels one by one takes longer than running them. ``cancelled`` is asked after each step, or after each replayed epoch.

        Raises:
            Cancelled: If ``cancelled`` said so.
        """
        import torch

        def ask() -> None:
            if cancelled():
                raise Cancelled()

        with torch.no_grad():
            if self._weights.is_cuda:
                self._train_by_graph(ask)
            else:
                for epoch in range(self._recipe.epochs):
                    self.begin(epoch)
                    self.run_epoch(ask)
            best = self._best.cpu().numpy()
        return np.where(best > -np.inf, best, np.nan)

    def _train_by_graph(self, ask: Callable[[], None]) -> None:
        import torch

        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.begin(0)
            self.run_epoch(ask)
        stream.synchronize()
        if self._recipe.epochs > 1:
            graph = self.record_epoch(stream)
            with torch.cuda.stream(stream):
                for epoch in range(1, self._recipe.epochs):
                    self.begin(epoch)
                    graph.replay()
                    stream.synchronize()
                    ask()

    def record_epoch(self, stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
        """Record an epoch without running it."""
        import torch

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            self.run_epoch(lambda: None)
        return graph

    def begin(self, epoch: int) -> None:
        """Copy the order and the schedule of an epoch to the buffers that :meth:`run_epoch` reads."""
        self._order.copy_(self._orders[:, epoch])
        self._schedule.copy_(self._schedules[epoch])

    def run_epoch(self, ask: Callable[[], None]) -> None:
        """Take all steps of an epoch and validate.

        For the CUDA graph, no branch may depend on a value on the device, and nothing may be copied from the host.
        """
        import torch

        folds, trained = self._order.shape
        labels = torch.index_select(self._data.targets, 1, self._order.view(-1))
        labels = labels.view(-1, folds, trained).transpose(0, 1)
        size = self._recipe.batch_size
        for step, begin in enumerate(range(0, trained, size)):
            part = slice(begin, begin + size)
            self._step(self._order[:, part], labels[:, :, part], self._schedule[step])
            ask()
        self._validate()

    def _step(self, batch: torch.Tensor, labels: torch.Tensor, schedule: torch.Tensor) -> None:
        """Take one AdamW step on every fold and task.

        Args:
            batch: Row numbers, F x b.
            labels: F x T x b.
            schedule: Schedule of this step, see :func:`_schedules`.
        """
        import torch

        folds, size = batch.shape
        rows = torch.index_select(self._data.rows, 0, batch.reshape(-1), out=self._gathered[: folds * size])
        rows = rows.view(folds, size, -1)
        outputs = torch.bmm(self._weights, rows.transpose(1, 2))
        expected = torch.where(self._data.classification, torch.sigmoid(outputs), outputs)
        gradients = torch.bmm((expected - labels).mul_(self._slopes / size), rows)

        step_size, spread_scale, epsilon = schedule
        self._weights.mul_(1 - self._recipe.learning_rate * _WEIGHT_DECAY)
        self._first.lerp_(gradients, 1 - _BETA_1)
        self._second.mul_(_BETA_2).addcmul_(gradients, gradients, value=1 - _BETA_2)
        spread = torch.addcmul(epsilon, self._second.sqrt(), spread_scale)
        self._weights.addcmul_(torch.div(self._first, spread), step_size, value=-1)

    def _validate(self) -> None:
        """Keep the held-out scores, by the rules of :mod:`scoring.metrics`, that are better than the best so far; NaN is never better."""
        import torch

        folds, tasks, width = self._weights.shape
        # Predicting all rows needs no copies of rows, so it takes less time and memory than predicting the test parts alone.
        outputs = (self._weights.view(-1, width) @ self._data.rows.T).view(folds, tasks, -1)
        outputs = outputs.gather(2, self._test)
        kinds = self._data.classification[:, 0]
        scores = torch.where(kinds, _f1(outputs, self._positive), self._r2(outputs.double()))
        self._best.copy_(torch.where(scores > self._best, scores, self._best))

    def _r2(self, predictions: torch.Tensor) -> torch.Tensor:
        residual = ((self._labels - predictions) ** 2).sum(dim=2)
        score = (1 - residual / self._total).masked_fill(self._total <= R2_TOLERANCE, 0.0)
        return score.masked_fill(residual <= R2_TOLERANCE, 1.0)


def _schedules(recipe: Recipe, trained: int) -> torch.Tensor:
    """Return AdamW's values that depend on the step number, E x steps x 3: step size, factor of the second moment's root, epsilon."""
    import torch

    steps = torch.arange(1, recipe.epochs * -(-trained // recipe.batch_size) + 1, dtype=torch.float64)
    step_size = recipe.learning_rate / (1 - _BETA_1**steps)
    spread_scale = 1 / torch.sqrt(1 - _BETA_2**steps)
    schedule = torch.stack([step_size, spread_scale, torch.full_like(steps, _EPSILON)], dim=1)
    return schedule.float().view(recipe.epochs, -1, 3)


def _f1(logits: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    import torch

    are_probabilities = ((logits >= 0) & (logits <= 1)).all(dim=2, keepdim=True)
    positive = (logits > 0.5) | ((logits > SIGMOID_HALF) & ~are_probabilities)
    hits = (positive & truth).sum(dim=2).double()
    misses = (positive ^ truth).sum(dim=2).double()
    return torch.where(hits + misses > 0, 2 * hits / (2 * hits + misses), torch.zeros_like(hits))
