"""The linear probe of NeuCo-Bench, with the same scores (paper Section 3.2, A.1), and networks with hidden layers (B.3.3).

For regressions and binary classifications, one random stream runs through all tasks and folds, as in NeuCo-Bench. NeuCo-Bench has no tasks
with several classes or labels. They are trained in PyTorch by the same recipe, with one output per class and a seed for each fold, so they
do not advance the stream of the other tasks. So are networks with hidden layers.

The paper does not give the widths of its networks, only their sizes: about 170 and 464 times the linear probe's parameters. The default
widths give these ratios for embeddings of 1,024 dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, field_validator

from scoring.documents import not_a_switch, whole
from scoring.errors import needs_extra
from scoring.kernel.train import FoldTrainer, draws_per_fold
from scoring.metrics import best_score
from scoring.probes.probe import TEST_SIZE, Fold, FoldResult, Probe, ProbeInput
from scoring.protocol import LEAST_RATE, MOST_NUMBERS, MOST_RATE, MOST_REPEATS, Recipe
from scoring.randomness.fold_draws import STATE_SIZE, skip, start
from scoring.tasks import TaskType

if TYPE_CHECKING:
    from scoring.probes.network import Network

WIDTHS = {1: (170,), 2: (400, 162)}


Width = Annotated[int, Field(ge=1, le=MOST_NUMBERS)]


class TrainingParameters(BaseModel, extra="forbid"):
    """Hyper-parameters of training by gradient steps, with NeuCo-Bench's defaults.

    Text that is a number is accepted, because YAML reads ``1e-3``, as NeuCo-Bench's users write it, as text. ``device`` has no effect.
    """

    epochs: int = whole(10, MOST_REPEATS)
    batch_size: int = whole(64, MOST_NUMBERS)
    learning_rate: float = Field(
        0.001, ge=LEAST_RATE, le=MOST_RATE, description=f"a number from {LEAST_RATE:g} to {MOST_RATE:,.0f}"
    )
    device: str | None = None
    _numbers = field_validator("epochs", "batch_size", "learning_rate", mode="before")(not_a_switch)


class NetworkParameters(TrainingParameters):
    """The linear probe's parameters, and the hidden layers."""

    hidden_layers: Literal[1, 2] = Field(1, description="1 or 2")
    hidden_widths: list[Width] | None = Field(
        None,
        min_length=1,
        max_length=8,
        description=f"a list of one to eight whole numbers from 1 to {MOST_NUMBERS:,}",
    )


class LinearProbe(Probe):
    """One linear layer, trained with AdamW; the best epoch counts."""

    parameters: ClassVar[type[BaseModel]] = TrainingParameters
    has_epochs = True
    libraries_for_columns = ("torch",)
    hidden: tuple[int, ...] = ()

    def __init__(self, params: Mapping[str, Any], *, seed: int, threads: int | None) -> None:
        super().__init__(params, seed=seed, threads=threads)
        self._recipe = self.params.model_dump(include={"epochs", "batch_size", "learning_rate"})
        self._stream = np.empty(STATE_SIZE, dtype=np.uint32)
        start(self._stream, seed)

    def hyperparameters(self, folds: Sequence[FoldResult]) -> Mapping[str, object]:
        """See :meth:`scoring.probes.probe.Probe.hyperparameters`."""
        return {**self._recipe, **({"hidden_widths": list(self.hidden)} if self.hidden else {})}

    @contextmanager
    def fitter(
        self, tasks: Sequence[ProbeInput], folds: int, *, details: bool
    ) -> Iterator[Callable[[Fold], list[FoldResult]]]:
        """See :meth:`scoring.probes.probe.Probe.fitter`."""
        [data] = tasks
        if self.hidden or data.kind.has_columns:
            with self._network().fitter(data, details=details) as fit:
                yield fit
        else:
            yield self._in_kernel(data, folds, details=details)

    def refit(self, data: ProbeInput) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """See :meth:`scoring.probes.probe.Probe.refit`."""
        return self._network().refit(data)

    def _network(self) -> Network:
        with needs_extra("research", "A probe with hidden layers or several outputs"):
            from scoring.probes.network import Network

            return Network(self)

    def _in_kernel(
        self, data: ProbeInput, folds: int, *, details: bool
    ) -> Callable[[Fold], list[FoldResult]]:
        """Note the stream at the start of each fold, and advance it past the task; fit with the compiled kernel."""
        trainer = FoldTrainer(data.rows, Recipe(test_size=TEST_SIZE, **self._recipe))
        trainer.stop = self.stop
        targets = np.ascontiguousarray(data.targets, dtype=np.float32).reshape(1, -1)
        kinds = np.array([data.kind is TaskType.CLASSIFICATION])
        streams, draws = [], draws_per_fold(data.rows.shape[1], len(data.rows), self._recipe["epochs"])
        for _ in range(folds):
            streams.append(self._stream.copy())
            skip(self._stream, draws)

        def fit(fold: Fold) -> list[FoldResult]:
            trace = trainer.train(targets, kinds, fold, streams[fold.number], losses=details, best_state=True)
            trained = fold.train if details else fold.train[:0]
            # Without @, because OpenBLAS's AVX-512 kernel for five columns can raise FE_INVALID over values outside the matrix.
            fitted = np.einsum("nd,d->n", data.rows[trained], trace.weights[0], dtype=np.float64)
            result = FoldResult(
                score=best_score(trace.history),
                test=fold.test,
                predictions=trace.predictions[0].astype(np.float64),
                train=trained,
                train_predictions=fitted + trace.biases[0],
                history=tuple(trace.history.ravel().tolist()),
                train_losses=tuple(trace.train_losses.ravel().tolist()),
                test_losses=tuple(trace.test_losses.ravel().tolist()),
            )
            return [result]

        return fit


class MlpProbe(LinearProbe):
    """A network with hidden layers and ReLU, trained like the linear probe."""

    parameters = NetworkParameters
    libraries = ("torch",)

    def __init__(self, params: Mapping[str, Any], *, seed: int, threads: int | None) -> None:
        super().__init__(params, seed=seed, threads=threads)
        self.hidden = tuple(self.params.hidden_widths or WIDTHS[self.params.hidden_layers])
